package spec

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/reusecheck/reusecheck"
)

// Check holds a stack to a system's properties in random histories. The number
// of histories is rapid's -rapid.checks; rapid shrinks and prints a failing one.
// Without properties it takes all of the system's that the stack can show.
func Check(t *testing.T, sys *System, stack func() (reusecheck.Stack, error), props ...*Property) {
	t.Helper()
	rapid.Check(t, Histories(sys, sys.World(), stack, props...))
}

// Histories is the random state machine behind [Check], for [rapid.Check] and
// [rapid.MakeFuzz]: every verb of the world is an action, every step is judged.
func Histories(sys *System, world *World, stack func() (reusecheck.Stack, error), props ...*Property) func(*rapid.T) {
	return func(t *rapid.T) {
		s, err := stack()
		if err != nil {
			t.Fatalf("no stack to check: %v", err)
		}
		h := &history{t: t, m: NewMachine(sys, s, props...), gen: sys.NewGenerator(world)}
		h.trace.Config = h.gen.Start(h)
		err = h.m.Reset(h.trace.Config)
		if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
			t.Skip("the stack has no such world: ", lacks)
		}
		if err != nil {
			t.Fatalf("the stack cannot be reset: %v", err)
		}
		actions := map[string]func(*rapid.T){}
		for _, v := range append(h.gen.Verbs(), reusecheck.VSocket) {
			actions[v.String()] = func(*rapid.T) { h.act(v) }
		}
		t.Repeat(actions)
	}
}

type history struct {
	t     *rapid.T
	m     *Machine
	gen   Generator
	trace reusecheck.Trace
	over  bool
	idle  int // actions in a row that had no socket to act on
}

// patience is how many actions in a row may have nothing to act on and be drawn
// again. Rapid fails a history that skips for much longer, and the bytes of a
// fuzzer may well ask for the same impossible action for ever.
const patience = 20

// Intn lets rapid make the generator's choices.
func (h *history) Intn(n int) int {
	if n == 1 {
		return 0
	}
	return rapid.IntRange(0, n-1).Draw(h.t, "choice")
}

func (h *history) act(v reusecheck.Verb) {
	if h.over {
		return // not a skip: with nothing but skips rapid gives up on the history
	}
	op, ok := h.gen.Of(v, h, h.m.Live())
	if !ok {
		if h.idle++; h.idle < patience {
			h.t.Skip("no socket for ", v)
		}
		return
	}
	h.idle = 0
	o, found, err := h.m.Step(op)
	if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
		h.over = true
		return
	}
	if err != nil {
		h.t.Fatalf("the stack failed: %v", err)
	}
	Append(&h.trace, op, o)
	if len(found) > 0 {
		h.t.Fatalf("%s\n\n%s", Sentence(o, found[0]), h.trace.String())
	}
	h.over = o.Diverged()
}
