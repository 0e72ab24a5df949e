package explore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// packed is the system whose states this engine knows as words.
var packed = spec.TCP

// Search is an exploration of every reachable state of a small world.
type Search struct {
	Kernel     *model.Profile
	World      *spec.World
	Sockets    int              // at most so many at once, accepted children included
	Properties []*spec.Property // none: all of spec.TCP's
	Workers    int              // at least 1
	Memory     int64            // bytes for states; 0 is DefaultMemory
	// Unreduced tells apart what is interchangeable.
	Unreduced bool
	// Progress, when given, is told now and then how far the search is.
	Progress func(Stats)
	// Checkpoint, when given, is a file that the search is saved to between
	// levels, and taken up from if it is there.
	Checkpoint string
	Every      time.Duration // how often it is saved; 0 is DefaultEvery

	thorough    bool
	beyond      bool // goes on after a grant that the oracle would have refused
	socketsOnly bool // no symmetry but that of sockets is looked for
}

// The defaults of a search.
const (
	DefaultMemory = 4 << 30
	DefaultEvery  = 30 * time.Second
)

// Stats says how far an exploration is, or was.
type Stats struct {
	States      int64          `json:"states"`
	Transitions int64          `json:"transitions"`
	Depth       int            `json:"depth"` // steps to the farthest state
	Seconds     float64        `json:"seconds"`
	Bytes       int64          `json:"bytes"` // of memory, for states
	Symmetries  int            `json:"symmetries"`
	Kinds       int            `json:"kinds"` // different sockets
	Frontier    int64          `json:"frontier"`
	Skipped     map[string]int `json:"skipped,omitempty"`
	// Complete says that every reachable state was visited. If not,
	// Uncovered are the states met whose steps were not all performed.
	Complete  bool  `json:"complete"`
	Uncovered int64 `json:"uncovered,omitempty"`
	Covered   int   `json:"covered"` // every history of so many steps is covered
}

// Rate is transitions a second.
func (s Stats) Rate() float64 { return float64(s.Transitions) / max(s.Seconds, 1e-9) }

// Step is a step of a kind that was met, in its first circumstances: a history
// that ends with it.
type Step struct {
	Verb   rc.Verb
	Answer rc.Answer // without the port picked
	Reason rc.Reason
	Count  int64
	Depth  int
	Trace  *rc.Trace
}

// Outcome is what an exploration came to.
type Outcome struct {
	Stats
	// Steps are the kinds of steps that were performed, each with a witness.
	Steps []Step
	// Violations is how many transitions violate some property.
	Violations int64
}

// Candidate is a transition that violates a property: one of its class.
type Candidate struct {
	Depth int
	From  ref
	Slot  uint8
	Act   uint16
	Fresh bool
	State model.State // where it starts
	Wrong uint8
}

// run is a search under way.
type run struct {
	*Search
	e       *engine
	layout  layout
	store   *store
	ws      []*worker
	stats   Stats
	start   time.Time
	saved   time.Time
	before  float64 // seconds of the runs that a checkpoint comes from
	resumed bool    // from a checkpoint
	level   [2][shardCount]uint32
	// classes of violations and kinds of steps that were met.
	classes    map[class]Candidate
	kindsMet   [stepKinds]firstStep
	violations int64
	done       atomic.Int64 // transitions so far, for progress
}

type firstStep struct {
	count int64
	at    Candidate
}

func (s *Search) engine(ctx context.Context) (*engine, error) {
	if why := Packable(packed, s.World); why != "" {
		return nil, fmt.Errorf("the states of this world have no words: %s", why)
	}
	n := s.Sockets
	if n < 1 || n > model.MaxSockets {
		return nil, fmt.Errorf("%d sockets cannot be explored: give a number from 1 to %d", n, model.MaxSockets)
	}
	e := &engine{kernel: s.Kernel, world: s.World, config: config(packed, s.World), sockets: n, menu: newMenu(packed, s.World),
		passive: passive(s.World), reduce: !s.Unreduced, thorough: s.thorough, beyond: s.beyond}
	e.registry, e.ports = newRegistry(), newRegistry()
	e.group = []*model.Renaming{model.NoRenaming()}
	props := s.Properties
	if len(props) == 0 {
		props = packed.Properties
	}
	for _, p := range props {
		e.precise = e.precise || p == spec.Precise
	}
	if e.reduce && !s.socketsOnly {
		g, err := symmetries(ctx, e, s.Workers)
		if err != nil {
			return nil, err
		}
		e.group = g
	}
	return e, nil
}

// Run explores until every state is known, memory runs out, the context ends or
// yield returns an error. Each candidate is the first of its class, shortest
// first; Trace makes a history of it.
func (s *Search) Run(ctx context.Context, yield func(*History) error) (*Outcome, error) {
	r, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if r.resumed {
		if err := r.retell(yield); err != nil {
			return nil, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			break
		}
		n := r.open()
		if n == 0 {
			r.stats.Complete = !r.store.full.Load() && r.store.dropped() == 0
			break
		}
		found, err := r.expandLevel(ctx)
		if err != nil {
			return nil, err
		}
		if ctx.Err() == nil {
			if err := r.tell(found, yield); err != nil {
				return nil, err
			}
		}
		if r.store.full.Load() || ctx.Err() != nil {
			break
		}
		if err := r.save(r.Every < 0); err != nil {
			return nil, err
		}
	}
	return r.end()
}

func (s *Search) begin(ctx context.Context) (*run, error) {
	e, err := s.engine(ctx)
	if err != nil {
		return nil, err
	}
	return s.beginWith(e)
}

func (s *Search) beginWith(e *engine) (*run, error) {
	r := &run{Search: s, e: e, start: time.Now(), saved: time.Now(), classes: map[class]Candidate{}}
	for range max(1, s.Workers) {
		st, err := e.stepper()
		if err != nil {
			return nil, err
		}
		r.ws = append(r.ws, newWorker(r, st))
	}
	r.layout = newLayout(e, r.ws[0].step.codec)
	for _, w := range r.ws {
		w.words = make([]uint64, r.layout.width)
		if e.pairwise(w.step.codec) {
			w.fast = newFast(w)
		}
	}
	memory := s.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	r.store = newStore(r.layout.width, memory)
	r.stats.Symmetries = len(e.group)
	if resumed, err := r.resume(); err != nil || resumed {
		return r, err
	}
	w := r.ws[0]
	var st model.State
	w.canon.of(&st)
	if err := w.put(&st, noRef, 0); err != nil {
		return nil, err
	}
	w.flushAll()
	return r, nil
}

// open makes the states that the last level added the next one, and gives their
// number.
func (r *run) open() (n int64) {
	sizes := r.store.sizes()
	r.level[0], r.level[1] = r.level[1], sizes
	for i := range sizes {
		n += int64(sizes[i] - r.level[0][i])
	}
	r.stats.Frontier = n
	r.store.nextLevel()
	return n
}

// blockLen is how many states a worker takes at a time.
const blockLen = 256

type block struct {
	shard    uint32
	from, to uint32
}

// expandLevel performs every step of every state of the level.
func (r *run) expandLevel(ctx context.Context) (map[class]Candidate, error) {
	var blocks []block
	for i := range r.level[0] {
		for at := r.level[0][i]; at < r.level[1][i]; at += blockLen {
			blocks = append(blocks, block{uint32(i), at, min(at+blockLen, r.level[1][i])})
		}
	}
	// The directories of chunks may move while others insert: read by these.
	var chunks [shardCount][][]uint64
	for i := range r.store.shards {
		chunks[i] = r.store.shards[i].chunks
	}
	var next, finished atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(r.ws))
	for k, w := range r.ws {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := next.Add(1) - 1
				if i >= int64(len(blocks)) || ctx.Err() != nil || r.store.full.Load() {
					break
				}
				if errs[k] = w.work(blocks[i], chunks[blocks[i].shard]); errs[k] != nil {
					next.Store(int64(len(blocks)))
					break
				}
				finished.Add(int64(blocks[i].to - blocks[i].from))
			}
			w.flushAll()
		}()
	}
	stop := r.report(&wg)
	defer stop()
	wg.Wait()
	found := map[class]Candidate{}
	for k, w := range r.ws {
		if errs[k] != nil {
			return nil, errs[k]
		}
		w.merge(r, found)
	}
	if left := r.stats.Frontier - finished.Load(); left > 0 || r.store.full.Load() {
		r.stats.Uncovered = left
		return found, nil
	}
	r.stats.Covered++
	if r.store.states() > sum(r.level[1]) {
		r.stats.Depth++
	}
	return found, nil
}

func sum(n [shardCount]uint32) (t int64) {
	for _, v := range n {
		t += int64(v)
	}
	return t
}

// report tells of progress while a level is expanded.
func (r *run) report(wg *sync.WaitGroup) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Add(1)
	go func() {
		defer told.Done()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s := r.stats
				s.Transitions = r.done.Load()
				s.Seconds = r.seconds()
				s.Bytes = r.store.bytes.Load()
				r.Progress(s)
			}
		}
	}()
	return func() { close(done); told.Wait() }
}

func (r *run) seconds() float64 { return r.before + time.Since(r.start).Seconds() }

func (r *run) end() (*Outcome, error) {
	s := &r.stats
	s.States, s.Transitions, s.Bytes = r.store.states(), r.done.Load(), r.store.bytes.Load()
	s.Kinds = len(r.e.registry.kinds)
	s.Seconds = r.seconds()
	s.Uncovered += r.store.dropped()
	if !s.Complete && s.Uncovered == 0 {
		s.Uncovered = r.store.states() - sum(r.level[1])
	}
	s.Skipped = r.skipped()
	o := &Outcome{Stats: *s, Violations: r.violations}
	steps, err := r.witnesses()
	o.Steps = steps
	return o, err
}
