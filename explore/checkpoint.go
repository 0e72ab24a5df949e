package explore

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// saved is an exploration between two levels. Kinds are saved in the order of
// their numbers, so that stored states mean the same.
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
	Words   [shardCount][]uint64
	Parents [shardCount][]ref
	Classes []class
	Steps   []savedStep
}

type savedStep struct {
	Kind  int
	Count int64
	At    Candidate
}

const savedFormat = 2

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
	var s saved
	if err := gob.NewDecoder(f).Decode(&s); err != nil {
		return false, fmt.Errorf("%s is no checkpoint: %w", r.Checkpoint, err)
	}
	if s.Format != savedFormat || s.Of != r.identity() {
		return false, fmt.Errorf("%s is the checkpoint of another exploration; give another file or remove it", r.Checkpoint)
	}
	r.load(&s)
	return true, nil
}

func (r *run) load(s *saved) {
	for _, w := range s.Kinds {
		r.ws[0].step.kinds.of(w)
	}
	for _, w := range s.Cached {
		r.ws[0].step.ports.of(w)
	}
	for i := range r.store.shards {
		sh := &r.store.shards[i]
		for k, p := range s.Parents[i] {
			words := s.Words[i][k*r.store.width : (k+1)*r.store.width]
			r.store.add(sh, hash(words), words, parent{at: p})
		}
		s.Words[i], s.Parents[i] = nil, nil
	}
	r.stats, r.before, r.violations = s.Stats, s.Seconds, s.Wrong
	r.done.Store(s.Done)
	r.level[1] = s.Level
	for _, c := range s.Classes {
		r.classes[c] = struct{}{}
	}
	for _, m := range s.Steps {
		r.kindsMet[m.Kind] = firstStep{m.Count, m.At}
	}
	r.saved = time.Now()
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
	for _, k := range r.e.registry.kinds {
		s.Kinds = append(s.Kinds, k.word)
	}
	for _, k := range r.e.ports.kinds {
		s.Cached = append(s.Cached, k.word)
	}
	for i := range r.store.shards {
		sh := &r.store.shards[i]
		for at := range sh.n {
			s.Words[i] = append(s.Words[i], sh.read(at, r.store.width)...)
			s.Parents[i] = append(s.Parents[i], sh.parent(at))
		}
	}
	for c := range r.classes {
		s.Classes = append(s.Classes, c)
	}
	for k := range r.kindsMet {
		if m := &r.kindsMet[k]; m.count > 0 {
			s.Steps = append(s.Steps, savedStep{k, m.count, m.at})
		}
	}
	r.saved = time.Now()
	return writeWhole(r.Checkpoint, &s)
}

// writeWhole puts a file in place whole or not at all.
func writeWhole(path string, s *saved) (err error) {
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
	if err = gob.NewEncoder(f).Encode(s); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
