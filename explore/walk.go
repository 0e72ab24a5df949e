package explore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// Walk is an exploration of every reachable state of a small world that knows
// nothing of the system: a state is kept as the shortest history that leads to
// it, and told from others by what stack, oracle and ghost write down of it (see
// [spec.Stated]), hashed to 128 bits. To expand a state its history is played
// again. It is slower than [Search], which takes what [Packable] says, and takes
// any system and world.
//
// Sockets are interchangeable, and so are namespaces; addresses, users and
// devices, processors and ports are all told apart.
type Walk struct {
	System     *spec.System
	Stack      func() (rc.Stack, error) // one for each worker
	World      *spec.World
	Sockets    int              // at most so many at once, accepted children included
	Depth      int              // at most so many steps, 0 for as many as there are
	Properties []*spec.Property // none: all of the system's
	Workers    int              // at least 1
	Memory     int64            // bytes for states; 0 is DefaultMemory
	// Every asks for every violation, not only for the first of its kind.
	Every bool
	// Progress, when given, is told now and then how far the walk is.
	Progress func(Stats)

	byName bool // for tests: sockets and namespaces are told apart by their names
	// watch, for tests, is told of every step and the state that it leads to.
	watch func(a *act, o *spec.Observation, found []spec.Violation, to stateKey)
}

// MaxWalkSockets is the most sockets that a walk has at once.
const MaxWalkSockets = 16

// What a state and an act take of the memory, about.
const (
	walkedBytes = 56
	actBytes    = 640
)

type stateKey [16]byte

// reached is how a state was first reached.
type reached struct {
	parent int32 // -1 for the start
	act    int32
}

// walking is a walk under way.
type walking struct {
	*Walk
	config  rc.Config
	menu    *menu
	ws      []*walker
	seen    map[stateKey]int32 // the number of each state
	states  []reached
	acts    []act
	actOf   map[string]int32
	classes map[wrong]bool
	steps   map[walkedKind]*Step
	stats   Stats
	broken  int64
	start   time.Time
	full    bool
}

// wrong is a class of violations of which the first is told.
type wrong struct {
	violation spec.Violation
	verb      rc.Verb
}

type walkedKind struct {
	verb   rc.Verb
	kind   rc.Kind
	reason rc.Reason
}

// Run explores until every state is known, the depth is reached, memory runs out,
// the context ends or yield returns an error. Each history that it yields ends
// with the first violation of its kind, shortest first.
func (w *Walk) Run(ctx context.Context, yield func(*History) error) (*Outcome, error) {
	r, err := w.begin()
	if err != nil {
		return nil, err
	}
	for from := 0; ; {
		to := len(r.states)
		r.stats.Frontier = int64(to - from)
		if from == to {
			r.stats.Complete = !r.full && r.stats.Uncovered == 0
			break
		}
		if w.Depth > 0 && r.stats.Covered == w.Depth {
			r.stats.Uncovered = int64(to - from)
			break
		}
		done, err := r.level(ctx, from, to, yield)
		if err != nil {
			return nil, err
		}
		if done < to || r.full {
			r.stats.Uncovered += int64(to - done)
			break
		}
		r.stats.Covered++
		if len(r.states) > to {
			r.stats.Depth++
		}
		from = to
	}
	return r.end(), nil
}

func (w *Walk) begin() (*walking, error) {
	if w.Sockets < 1 || w.Sockets > MaxWalkSockets {
		return nil, fmt.Errorf("%d sockets cannot be explored: give a number from 1 to %d", w.Sockets, MaxWalkSockets)
	}
	if err := Fits(w.System, w.World); err != nil {
		return nil, err
	}
	r := &walking{Walk: w, config: walkConfig(w.System, w.World), menu: newMenu(w.System, w.World), seen: map[stateKey]int32{}, actOf: map[string]int32{},
		classes: map[wrong]bool{}, steps: map[walkedKind]*Step{}, start: time.Now()}
	for range max(1, w.Workers) {
		x, err := newWalker(r)
		if err != nil {
			return nil, err
		}
		r.ws = append(r.ws, x)
	}
	if err := r.ws[0].replay(nil); err != nil {
		return nil, err
	}
	key, err := r.ws[0].key()
	if err != nil {
		return nil, err
	}
	r.seen[key] = 0
	r.states = append(r.states, reached{-1, -1})
	return r, nil
}

// Fits says what of a world a system has not.
func Fits(sys *spec.System, w *spec.World) error {
	families := slices.Clone(w.Families)
	for _, op := range w.Base {
		if op.Verb == rc.VSocket {
			families = append(families, op.Family)
		}
	}
	own := sys.World()
	for _, f := range families {
		if !slices.Contains(own.Families, f) {
			return fmt.Errorf("the world has %s sockets, which system %s has not", f, sys.Name)
		}
	}
	for _, v := range rc.Verbs() {
		if w.Verbs[v] && !own.Verbs[v] {
			return fmt.Errorf("the world has %s steps, which system %s has not", v, sys.Name)
		}
	}
	switch {
	case len(w.CPUs) > 0 && len(own.CPUs) == 0:
		return fmt.Errorf("the world has processors, which system %s has not", sys.Name)
	case w.Unaccepted && !(own.Unaccepted && own.Verbs[rc.VInherit]):
		return fmt.Errorf("the world has connections that nobody accepts, which system %s has not", sys.Name)
	}
	return nil
}

// picks reports whether the stack picks ports in a world.
func picks(w *spec.World) bool {
	return w.AutoPorts || w.Verbs[rc.VConnect] || w.Options.Has(rc.NoPort)
}

// walkConfig is the namespace that a world's histories start in.
func walkConfig(sys *spec.System, w *spec.World) rc.Config {
	cfg := config(sys, w)
	if !picks(w) {
		cfg.Ports = rc.PortRange{}
	}
	return cfg
}

// walkBatch is how many states are expanded before what they lead to is entered.
const walkBatch = 512

// level expands the states from one number to another, and says how far it came.
func (r *walking) level(ctx context.Context, from, to int, yield func(*History) error) (int, error) {
	for from < to && ctx.Err() == nil && !r.full {
		n := min(walkBatch, to-from)
		results := make([]expansion, n)
		var next atomic.Int64
		var wg sync.WaitGroup
		for _, x := range r.ws {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					i := int(next.Add(1) - 1)
					if i >= n || ctx.Err() != nil {
						return
					}
					results[i] = x.expand(int32(from + i))
				}
			}()
		}
		wg.Wait()
		if ctx.Err() != nil {
			return from, nil
		}
		for i := range results {
			if err := r.merge(int32(from+i), &results[i], yield); err != nil {
				return from, err
			}
		}
		from += n
		if r.Progress != nil {
			s := r.stats
			s.States, s.Seconds, s.Bytes = int64(len(r.states)), time.Since(r.start).Seconds(), r.bytes()
			r.Progress(s)
		}
	}
	return from, nil
}

func (r *walking) bytes() int64 {
	return int64(len(r.states))*walkedBytes + int64(len(r.acts))*actBytes
}

// merge enters what one state leads to.
func (r *walking) merge(at int32, x *expansion, yield func(*History) error) error {
	if x.err != nil {
		return x.err
	}
	r.stats.Transitions += x.transitions
	r.broken += x.violations
	for what, n := range x.skipped {
		if r.stats.Skipped == nil {
			r.stats.Skipped = map[string]int{}
		}
		r.stats.Skipped[what] += n
	}
	for i := range x.steps {
		r.note(at, &x.steps[i])
	}
	limit := r.Memory
	if limit == 0 {
		limit = DefaultMemory
	}
	for i := range x.next {
		n := &x.next[i]
		if _, met := r.seen[n.key]; met {
			continue
		}
		if r.bytes() >= limit {
			r.full = true
			r.stats.Uncovered++
			continue
		}
		r.seen[n.key] = int32(len(r.states))
		r.states = append(r.states, reached{at, r.intern(&n.act)})
	}
	for i := range x.wrongs {
		f := &x.wrongs[i]
		c := wrong{f.violation, f.act.last().Verb}
		if r.classes[c] && !r.Every {
			continue
		}
		r.classes[c] = true
		if err := yield(r.history(at, &f.act)); err != nil {
			return err
		}
	}
	return nil
}

func (r *walking) note(at int32, s *stepCounted) {
	if known := r.steps[s.kind]; known != nil {
		known.Count += s.count
		return
	}
	h := r.history(at, &s.act)
	st := &Step{Verb: s.kind.verb, Reason: s.kind.reason, Count: s.count, Depth: h.Depth, Trace: h.Trace}
	if s.kind.kind != rc.Failed {
		st.Answer = rc.Success
	}
	r.steps[s.kind] = st
}

// intern gives an act its number.
func (r *walking) intern(a *act) int32 {
	text := a.text()
	if n, met := r.actOf[text]; met {
		return n
	}
	n := int32(len(r.acts))
	r.acts, r.actOf[text] = append(r.acts, *a), n
	return n
}

// path is the history of a state.
func (r *walking) path(at int32) []*act {
	var p []*act
	for ; r.states[at].parent >= 0; at = r.states[at].parent {
		p = append(p, &r.acts[r.states[at].act])
	}
	for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// history is the trace of a state and one more act. Only where the stack may
// choose, the choice is stated.
func (r *walking) history(at int32, last *act) *History {
	t := &rc.Trace{Config: r.config}
	for _, op := range r.World.Base {
		spec.Append(t, op, nil)
	}
	path := append(r.path(at), last)
	for _, a := range path {
		for _, op := range a.ops {
			spec.Append(t, op, nil)
		}
		t.Steps[len(t.Steps)-1].Want = a.seen
	}
	return &History{Depth: len(path), Trace: t, States: int64(len(r.states))}
}

func (r *walking) end() *Outcome {
	s := &r.stats
	s.States, s.Bytes, s.Seconds = int64(len(r.states)), r.bytes(), time.Since(r.start).Seconds()
	s.Symmetries = 1
	o := &Outcome{Stats: *s, Violations: r.broken}
	for _, st := range r.steps {
		o.Steps = append(o.Steps, *st)
	}
	sortSteps(o.Steps)
	return o
}

func stateKeyOf(text []byte) (k stateKey) {
	sum := sha256.Sum256(text)
	copy(k[:], sum[:])
	return k
}
