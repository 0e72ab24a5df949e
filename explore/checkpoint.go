package explore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// saved is an exploration between two levels, but for its states. Kinds are saved
// in the order of their numbers, so that stored states mean the same.
type saved struct {
	Format  int
	Of      string // what is explored: nothing else can be resumed from it
	Seconds float64
	Stats   Stats
	Done    int64
	Wrong   int64
	Level   [shardCount]uint32
	Kinds   []uint64
	Cached  []uint64 // the kinds of ports
	Told    []savedClass
	Steps   []savedStep

	shards [shardCount]savedShard // each a value of its own, in this order
}

// savedShard is a shard's states, and what each was reached from.
type savedShard struct {
	Words   []uint64
	Parents []ref
}

// savedClass is a class of violations with the one that was told.
type savedClass struct {
	Class class
	At    Candidate
}

type savedStep struct {
	Kind  int
	Count int64
	At    Candidate
}

const savedFormat = 3

// identity is what must be the same for a checkpoint to be taken up.
func (r *run) identity() string {
	w := r.World
	return fmt.Sprint(r.Kernel, r.e.sockets, r.e.precise, r.e.reduce, w.Families, w.Addrs, w.Ports, w.Options, w.UIDs, w.Devs,
		w.Verbs, w.Fields, w.AutoPorts, w.OtherPort, w.Rivals, w.Sysctls)
}

// resume takes up the checkpoint if there is one.
func (r *run) resume() (bool, error) {
	if r.Checkpoint == "" {
		return false, nil
	}
	f, err := os.Open(r.Checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	s, err := readSaved(f)
	switch {
	case errors.Is(err, errOtherFormat):
	case err != nil:
		return false, fmt.Errorf("%s is no checkpoint: %w", r.Checkpoint, err)
	case s.Of == r.identity():
		return true, r.load(s)
	}
	return false, fmt.Errorf("%s is the checkpoint of another exploration; give another file or remove it", r.Checkpoint)
}

func (r *run) load(s *saved) error {
	for _, w := range s.Kinds {
		r.ws[0].step.kinds.of(w)
	}
	for _, w := range s.Cached {
		r.ws[0].step.ports.of(w)
	}
	for i := range r.store.shards {
		sh := &r.store.shards[i]
		if len(s.shards[i].Words) != len(s.shards[i].Parents)*r.store.width {
			return fmt.Errorf("%s is a checkpoint whose states are of another size; give another file or remove it", r.Checkpoint)
		}
		for k, p := range s.shards[i].Parents {
			words := s.shards[i].Words[k*r.store.width : (k+1)*r.store.width]
			r.store.add(sh, hash(words), words, parent{at: p})
		}
		s.shards[i] = savedShard{}
	}
	r.stats, r.before, r.violations = s.Stats, s.Seconds, s.Wrong
	r.done.Store(s.Done)
	r.level[1] = s.Level
	for _, c := range s.Told {
		r.classes[c.Class] = c.At
	}
	for _, m := range s.Steps {
		r.kindsMet[m.Kind] = firstStep{m.Count, m.At}
	}
	r.resumed, r.saved = true, time.Now()
	return nil
}

// save writes a checkpoint, if one is due.
func (r *run) save(force bool) error {
	every := r.Every
	if every == 0 {
		every = DefaultEvery
	}
	if r.Checkpoint == "" || !force && time.Since(r.saved) < every {
		return nil
	}
	s := saved{Format: savedFormat, Of: r.identity(), Seconds: r.seconds(), Stats: r.stats, Done: r.done.Load(), Wrong: r.violations, Level: r.level[1]}
	s.Stats.Skipped = r.skipped()
	for _, k := range r.e.registry.kinds {
		s.Kinds = append(s.Kinds, k.word)
	}
	for _, k := range r.e.ports.kinds {
		s.Cached = append(s.Cached, k.word)
	}
	for c, at := range r.classes {
		s.Told = append(s.Told, savedClass{c, at})
	}
	for k := range r.kindsMet {
		if m := &r.kindsMet[k]; m.count > 0 {
			s.Steps = append(s.Steps, savedStep{k, m.count, m.at})
		}
	}
	r.saved = time.Now()
	return replaceFile(r.Checkpoint, func(w io.Writer) error { return writeSaved(w, &s, r.shard) })
}

// shard is what is saved of a shard.
func (r *run) shard(i int) (s savedShard) {
	sh := &r.store.shards[i]
	for at := range sh.n {
		s.Words = append(s.Words, sh.read(at, r.store.width)...)
		s.Parents = append(s.Parents, sh.parent(at))
	}
	return s
}

// skipped are the transitions that were not judged, those before a checkpoint too.
func (r *run) skipped() map[string]int {
	all := maps.Clone(r.stats.Skipped)
	for _, w := range r.ws {
		for what, n := range w.step.skipped {
			if all == nil {
				all = map[string]int{}
			}
			all[what] += n
		}
	}
	return all
}

// savedMagic begins a checkpoint, and a checksum of the rest ends it: a file that
// a full disk or a hand has changed would be explored on as if it were whole.
const savedMagic = "reusecheck checkpoint\n"

func newSum() checksum { return crc64.New(crc64.MakeTable(crc64.ECMA)) }

type checksum interface {
	io.Writer
	Sum64() uint64
}

// writeSaved writes one shard after the other, so that no two copies of all states
// are ever in memory.
func writeSaved(w io.Writer, s *saved, shard func(int) savedShard) error {
	sum := newSum()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	if _, err := out.WriteString(savedMagic); err != nil {
		return err
	}
	enc := gob.NewEncoder(out)
	if err := enc.Encode(s); err != nil {
		return err
	}
	for i := range shardCount {
		if err := enc.Encode(shard(i)); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return binary.Write(w, binary.BigEndian, sum.Sum64())
}

var errOtherFormat = errors.New("another version of the checker wrote it")

// readSaved reads a checkpoint, of which the whole is checked before any part.
func readSaved(f io.ReadSeeker) (*saved, error) {
	const sumLen = 8
	end, err := f.Seek(-sumLen, io.SeekEnd)
	if err != nil {
		return nil, errors.New("it is too short")
	}
	var want uint64
	if err := binary.Read(f, binary.BigEndian, &want); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	head := make([]byte, len(savedMagic))
	if _, err := io.ReadFull(f, head); err != nil || !bytes.Equal(head, []byte(savedMagic)) {
		return nil, errors.New("it does not begin as one")
	}
	sum := newSum()
	sum.Write(head)
	rest := end - int64(len(head))
	if rest < 0 {
		return nil, errors.New("it is too short")
	}
	if _, err := io.CopyN(sum, f, rest); err != nil {
		return nil, err
	}
	if sum.Sum64() != want {
		return nil, errors.New("it is not as it was written: its checksum is another")
	}
	if _, err := f.Seek(int64(len(head)), io.SeekStart); err != nil {
		return nil, err
	}
	return decodeSaved(io.LimitReader(f, rest))
}

func decodeSaved(in io.Reader) (*saved, error) {
	dec := gob.NewDecoder(bufio.NewReader(in))
	s := &saved{}
	if err := dec.Decode(s); err != nil {
		return nil, err
	}
	if s.Format != savedFormat {
		return nil, errOtherFormat
	}
	for i := range s.shards {
		if err := dec.Decode(&s.shards[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// replaceFile puts a file in place whole or not at all.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".checkpoint.*")
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("the checkpoint cannot be written: %w", err)
		}
	}()
	if err = write(f); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
