package spec

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"

	"github.com/reusecheck/reusecheck"
)

// Search is a random search through the histories of one stack.
type Search struct {
	System     *System
	Stack      func() (reusecheck.Stack, error) // one for each worker
	World      *World                           // nil: the system's own
	Properties []*Property                      // none: all of the system's
	Seed       uint64
	Checks     int // histories to try; 0 for no end but the context's
	Steps      int // operations in each
	Workers    int // at least 1
	// PerFinding bounds the failures that are reported of one kind: the
	// same property, kind and tags. The rest is only counted.
	PerFinding int
	// Progress, when given, is told now and then how far the search is.
	Progress func(Stats)
}

// Stats counts what a search did.
type Stats struct {
	Histories  int
	Steps      int
	Granted    int // steps answered ok
	Violations int // steps that showed one, counted once for each property
	Verbs      [16]int
	Uncounted  int // exits of which the stack could not count everything
	// Skipped counts histories that ended early because the stack cannot do
	// something here, by what that is.
	Skipped map[string]int
}

func (s *Stats) add(t Stats) {
	s.Histories += t.Histories
	s.Steps += t.Steps
	s.Granted += t.Granted
	s.Violations += t.Violations
	s.Uncounted += t.Uncounted
	for i, n := range t.Verbs {
		s.Verbs[i] += n
	}
	for what, n := range t.Skipped {
		s.skip(what, n)
	}
}

func (s *Stats) skip(what string, n int) {
	if s.Skipped == nil {
		s.Skipped = map[string]int{}
	}
	s.Skipped[what] += n
}

// Failure is a history that shows a violation at its last step.
type Failure struct {
	History   int
	Violation Violation
	Trace     *reusecheck.Trace
}

// block is how many histories a worker takes at a time. Blocks are reported in
// order, so that the number of workers changes nothing.
const block = 256

type blockResult struct {
	stats Stats
	found []hit
	err   error
}

type hit struct {
	history, steps int
	violation      Violation
}

// Run searches until the checks are done, the context ends or yield returns
// false. Failures come in the order of their histories: the same seed gives the
// same ones, whatever the number of workers.
func (s *Search) Run(ctx context.Context, yield func(Failure) bool) (Stats, error) {
	workers := max(1, s.Workers)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	blocks := make([]chan blockResult, workers)
	var wg sync.WaitGroup
	defer wg.Wait()
	for w := range workers {
		out := make(chan blockResult, 1)
		blocks[w] = out
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer close(out)
			s.work(ctx, w, workers, out)
		}()
	}
	defer stop()
	var total Stats
	seen := map[Violation]int{}
	var again *player
	for i := 0; ; i++ {
		r, ok := <-blocks[i%workers]
		if !ok {
			return total, nil
		}
		total.add(r.stats)
		if r.err != nil {
			return total, r.err
		}
		if s.Progress != nil {
			s.Progress(total)
		}
		for _, h := range r.found {
			if seen[h.violation]++; s.PerFinding > 0 && seen[h.violation] > s.PerFinding {
				continue
			}
			if again == nil {
				p, err := s.player()
				if err != nil {
					return total, err
				}
				again = p
			}
			t, err := again.record(h.history, h.steps)
			if err != nil {
				return total, err
			}
			if !yield(Failure{h.history, h.violation, t}) {
				return total, nil
			}
		}
	}
}

// work plays every workers-th block and sends its results in order.
func (s *Search) work(ctx context.Context, w, workers int, out chan<- blockResult) {
	send := func(r blockResult) bool {
		select {
		case out <- r:
			return r.err == nil
		case <-ctx.Done():
			return false
		}
	}
	p, err := s.player()
	if err != nil {
		send(blockResult{err: err})
		return
	}
	for b := w; s.Checks == 0 || b*block < s.Checks; b += workers {
		end := (b + 1) * block
		if s.Checks > 0 {
			end = min(end, s.Checks)
		}
		var r blockResult
		seen := map[Violation]int{}
		for h := b * block; h < end && r.err == nil && ctx.Err() == nil; h++ {
			r.err = p.play(h, s.steps(), func(step int, o *Observation, found []Violation) {
				for _, v := range found {
					r.stats.Violations++
					if seen[v]++; s.PerFinding == 0 || seen[v] <= s.PerFinding {
						r.found = append(r.found, hit{h, step + 1, v})
					}
				}
			}, &r.stats)
		}
		if ctx.Err() != nil || !send(r) {
			return
		}
	}
}

func (s *Search) steps() int {
	switch {
	case s.Steps > 0:
		return s.Steps
	case s.System.Steps > 0:
		return s.System.Steps
	}
	return DefaultSteps
}

// DefaultSteps is the length of a random history, socket lines included.
const DefaultSteps = 20

// player plays histories by number.
type player struct {
	search  *Search
	machine *Machine
	gen     Generator
	pcg     *rand.PCG
	cfg     reusecheck.Config
	ops     []reusecheck.Op
}

// StuckError is a stack that could not perform a step at all.
type StuckError struct {
	History int
	Trace   *reusecheck.Trace // its last step is the one
	Err     error
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("the stack failed at the last step of history %d: %v\n\n%s", e.History, e.Err, e.Trace)
}

func (e *StuckError) Unwrap() error { return e.Err }

// trace writes down the history at hand.
func (p *player) trace() *reusecheck.Trace {
	t := &reusecheck.Trace{Config: p.cfg}
	for _, op := range p.ops {
		Append(t, op, nil)
	}
	return t
}

func (s *Search) player() (*player, error) {
	stack, err := s.Stack()
	if err != nil {
		return nil, err
	}
	w := s.World
	if w == nil {
		w = s.System.World()
	}
	return &player{search: s, machine: NewMachine(s.System, stack, s.Properties...), gen: s.System.NewGenerator(w), pcg: rand.NewPCG(0, 0)}, nil
}

// Intn makes a player the source of its own choices.
func (p *player) Intn(n int) int {
	hi, _ := bits.Mul64(p.pcg.Uint64(), uint64(n))
	return int(hi)
}

func (p *player) play(history, steps int, found func(int, *Observation, []Violation), stats *Stats) error {
	p.pcg.Seed(p.search.Seed, uint64(history)+1)
	p.cfg = p.gen.Start(p)
	stats.Histories++
	err := p.machine.Reset(p.cfg)
	if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
		stats.skip(lacks.What, 1)
		return nil
	}
	if err != nil {
		return err
	}
	p.ops = p.ops[:0]
	for i := range steps {
		op := p.gen.Next(p, p.machine.Live())
		p.ops = append(p.ops, op)
		o, vs, err := p.machine.Step(op)
		if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
			stats.skip(lacks.What, 1)
			return nil
		}
		if err != nil {
			return &StuckError{History: history, Trace: p.trace(), Err: err}
		}
		stats.Steps++
		stats.Verbs[op.Verb]++
		if o.Got.Kind == reusecheck.OK || o.Got.Kind == reusecheck.Exited {
			stats.Granted++
		}
		if !o.Got.Counted() {
			stats.Uncounted++
		}
		if len(vs) > 0 {
			found(i, o, vs)
		}
		if o.Diverged() {
			return nil
		}
	}
	return nil
}

// record plays a history again and writes down its first steps.
func (p *player) record(history, steps int) (*reusecheck.Trace, error) {
	p.pcg.Seed(p.search.Seed, uint64(history)+1)
	t := &reusecheck.Trace{Config: p.gen.Start(p)}
	if err := p.machine.Reset(t.Config); err != nil {
		return nil, err
	}
	for range steps {
		op := p.gen.Next(p, p.machine.Live())
		o, _, err := p.machine.Step(op)
		if err != nil {
			return nil, err
		}
		Append(t, op, o)
	}
	return t, nil
}

// Append adds a step to a trace, with the answers that were observed; o is nil
// for a step that came to none.
func Append(t *reusecheck.Trace, op reusecheck.Op, o *Observation) {
	if id, ok := op.Defines(); ok {
		for int(id) >= len(t.Names) {
			t.Names = append(t.Names, reusecheck.ID(len(t.Names)).String())
		}
	}
	st := reusecheck.Step{Op: op}
	if o != nil && (op.Verb != reusecheck.VSocket || o.Got.Answer != reusecheck.Success) { // a socket made goes without saying
		if o.Got.Counted() { // a trace has no words for what is not
			st.Want = o.Got.Answer
		}
	}
	if o != nil && !o.Verdict.Agrees {
		st.Oracle = o.Verdict.Want
	}
	t.Steps = append(t.Steps, st)
}
