package explore

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// store holds every state that was met, whole: no hash stands for a state. It
// is split into shards by the states' hashes, each behind a lock of its own.
type store struct {
	width  int // words a state
	limit  int64
	bytes  atomic.Int64
	full   atomic.Bool // the limit was reached: new states are dropped
	shards [shardCount]shard
}

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	chunkBits  = 8 // states a chunk
	chunkLen   = 1 << chunkBits
)

type shard struct {
	mu      sync.Mutex
	chunks  [][]uint64
	parents [][]ref
	n       uint32
	first   uint32   // of this level's states
	keys    []uint64 // the contents of their parents
	index   []slot   // open addressing, a power of two
	dropped int64
	_       [64]byte
}

// slot is a part of the hash, and the place of the state plus one.
type slot struct{ tag, at uint32 }

// ref names a stored state: shard and place.
type ref uint32

const noRef ref = 1<<32 - 1

func (r ref) parts() (shard, at uint32) { return uint32(r) & (shardCount - 1), uint32(r) >> shardBits }

func newStore(width int, limit int64) *store {
	s := &store{width: width, limit: limit}
	for i := range s.shards {
		s.shards[i].index = make([]slot, 64)
	}
	s.bytes.Store(shardCount * 64 * 8)
	return s
}

func hash(words []uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h ^= w
		h *= 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}

// read gives the words of a state.
func (sh *shard) read(at uint32, width int) []uint64 {
	c := sh.chunks[at>>chunkBits]
	o := int(at&(chunkLen-1)) * width
	return c[o : o+width : o+width]
}

func (sh *shard) parent(at uint32) ref { return sh.parents[at>>chunkBits][at&(chunkLen-1)] }

// batch is states on their way into one shard.
type batch struct {
	hashes  []uint64
	words   []uint64
	parents []parent
}

// parent is the state that another was reached from, and its contents: of
// several at one depth the least counts, whoever comes first.
type parent struct {
	at  ref
	key uint64
}

const batchLen = 128

// insert adds those of a batch that are new and gives their number.
func (s *store) insert(i int, b *batch) (added int) {
	sh := &s.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for k, h := range b.hashes {
		if s.add(sh, h, b.words[k*s.width:(k+1)*s.width], b.parents[k]) {
			added++
		}
	}
	b.hashes, b.words, b.parents = b.hashes[:0], b.words[:0], b.parents[:0]
	return added
}

func (s *store) add(sh *shard, h uint64, words []uint64, p parent) bool {
	mask := uint64(len(sh.index) - 1)
	tag := uint32(h >> 32)
	i := h >> shardBits & mask
	for ; sh.index[i].at != 0; i = (i + 1) & mask {
		if sh.index[i].tag == tag && equal(sh.read(sh.index[i].at-1, s.width), words) {
			sh.prefer(sh.index[i].at-1, p)
			return false
		}
	}
	if s.full.Load() {
		sh.dropped++
		return false
	}
	at := sh.n
	if at&(chunkLen-1) == 0 {
		s.grow(chunkLen * int64(s.width*8+4))
		sh.chunks = append(sh.chunks, make([]uint64, chunkLen*s.width))
		sh.parents = append(sh.parents, make([]ref, chunkLen))
	}
	copy(sh.read(at, s.width), words)
	sh.parents[at>>chunkBits][at&(chunkLen-1)] = p.at
	sh.keys = append(sh.keys, p.key)
	sh.n++
	sh.index[i] = slot{tag, at + 1}
	if uint64(sh.n)*4 > uint64(len(sh.index))*3 {
		s.rehash(sh)
	}
	return true
}

// prefer takes p as the parent of a state of this level if it comes before the
// one that is noted.
func (sh *shard) prefer(at uint32, p parent) {
	if at >= sh.first && p.key < sh.keys[at-sh.first] {
		sh.keys[at-sh.first] = p.key
		sh.parents[at>>chunkBits][at&(chunkLen-1)] = p.at
	}
}

// nextLevel begins a level: states that come now are its own.
func (s *store) nextLevel() {
	for i := range s.shards {
		s.shards[i].first, s.shards[i].keys = s.shards[i].n, s.shards[i].keys[:0]
	}
}

// grow counts memory, and closes the store when it comes to the limit.
func (s *store) grow(n int64) {
	if s.bytes.Add(n) > s.limit {
		s.full.Store(true)
	}
}

// rehash doubles a shard's index. Where its memory would pass the limit the
// store is closed instead.
func (s *store) rehash(sh *shard) {
	n := len(sh.index)
	if s.bytes.Load()+int64(n)*16 > s.limit || sh.n >= 1<<(32-shardBits)-chunkLen {
		s.full.Store(true)
		if uint64(sh.n)*16 < uint64(n)*15 {
			return
		}
	}
	s.grow(int64(n) * 8)
	old := sh.index
	sh.index = make([]slot, 2*n)
	mask := uint64(2*n - 1)
	for _, o := range old {
		if o.at == 0 {
			continue
		}
		i := hash(sh.read(o.at-1, s.width)) >> shardBits & mask
		for sh.index[i].at != 0 {
			i = (i + 1) & mask
		}
		sh.index[i] = o
	}
}

func equal(a, b []uint64) bool {
	for i, w := range b {
		if a[i] != w {
			return false
		}
	}
	return true
}

// sizes are the shards' numbers of states.
func (s *store) sizes() (n [shardCount]uint32) {
	for i := range s.shards {
		n[i] = s.shards[i].n
	}
	return n
}

func (s *store) states() (n int64) {
	for i := range s.shards {
		n += int64(s.shards[i].n)
	}
	return n
}

func (s *store) dropped() (n int64) {
	for i := range s.shards {
		n += s.shards[i].dropped
	}
	return n
}

// words gives a stored state. Not while others insert.
func (s *store) words(r ref) []uint64 {
	sh, at := r.parts()
	return s.shards[sh].read(at, s.width)
}

func (s *store) parent(r ref) ref {
	sh, at := r.parts()
	return s.shards[sh].parent(at)
}

// ParseSize reads an amount of memory in bytes: a whole number with K, M, G or
// nothing behind, or KiB, MiB, GiB, B.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGiB")
	shift, known := map[string]int{"": 0, "B": 0, "K": 10, "KiB": 10, "M": 20, "MiB": 20, "G": 30, "GiB": 30}[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known || n == 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is no amount of memory: give one such as 2G", text)
	}
	return int64(n) << shift, nil
}
