package explore

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// shared are worlds that both engines explore.
var shared = []struct {
	kernel, world string
	sockets       int
}{
	{"6.18", "tcp4 addr=0.0.0.0,127.0.0.1 reuseaddr reuseport listen close", 2},
	{"6.18", "v4 dev=1 set-dev set-opt", 1},
	{"5.4", "tcp4 addr=127.0.0.1 reuseport uid=2 set-uid listen close", 2},
	{"6.1-every-wildcard", "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,:: v6only close", 3},
	{"6.18", "tcp6 addr=::,::1,::ffff:127.0.0.1 v6only listen close", 2},
	{"6.18", "tcp4 addr=127.0.0.1 reuseaddr autobind-reuse auto listen close ports=2", 2},
	{"6.12", "tcp4 addr=127.0.0.1 listen connect disconnect shutdown close ports=2", 2},
	{"6.18", "tcp4 addr=127.0.0.1 reuseaddr listen connect timewait expire close ports=2", 2},
	{"6.18", "tcp4 addr=127.0.0.1 reuseport listen inherit other-port rivals timewait expire close ports=2", 2},
	{"6.1", "tcp4 addr=127.0.0.1 reuseport listen inherit rivals close", 3},
	{"6.18", "tcp4 addr=127.0.0.1,127.0.0.2 listen inherit close", 3},
}

// seenStep is what a step from a state comes to, sockets' names aside.
type seenStep struct {
	from   model.State
	verb   rc.Verb
	answer rc.Answer
	reason rc.Reason
	agrees bool
}

// bare is a packed state as the kernel alone has it, one for all names.
func bare(c *canon, st *model.State) model.State {
	b := *st
	for i := range b.Socks {
		b.Socks[i] &= 1<<model.PastShift - 1
		b.Ends[i] &= 1<<model.PastShift - 1
		if model.Pristine(b.Socks[i]) {
			b.Socks[i] = 0
		}
	}
	for i := range b.Ports {
		b.Ports[i] &= 1<<model.GhostShift - 1
	}
	c.of(&b)
	return b
}

// packedStates are the states and steps that the engine for packed states meets.
func packedStates(t *testing.T, r *run) (map[model.State]bool, map[seenStep]bool) {
	states, steps := map[model.State]bool{}, map[seenStep]bool{}
	c := &r.ws[0].canon
	visit(r, func(st *model.State) {
		from := bare(c, st)
		states[from] = true
		at := *st
		err := r.ws[0].step.expand(&at, func(tr *transition) error {
			steps[seenStep{from, tr.op.Verb, nameless(tr.res.Answer), tr.res.Reason, tr.wrong&disagrees == 0}] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return states, steps
}

// nameless is an answer without the name that it gives.
func nameless(a rc.Answer) rc.Answer {
	a.Who = min(a.Who, 0)
	return a
}

// walkedStates are those that a walk meets, packed.
func walkedStates(t *testing.T, w *Walk, r *run) (map[model.State]bool, map[seenStep]bool) {
	states, steps := map[model.State]bool{}, map[seenStep]bool{}
	var from model.State
	var held map[rc.ID]bool
	w.Workers = 1
	w.watch = func(a *act, o *spec.Observation, _ []spec.Violation, _ stateKey) {
		if op := a.last(); len(a.ops) == 1 && !held[op.Sock] {
			return // of a socket that is gone or as it was made, which the other engine forgets
		}
		steps[seenStep{from, a.last().Verb, nameless(o.Got.Answer), o.Got.Reason, o.Verdict.Agrees}] = true
	}
	x, err := w.begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := int32(0); i < int32(len(x.states)); i++ {
		from, held = packedAfter(t, r, x.path(i))
		states[from] = true
		found := x.ws[0].expand(i)
		if err := x.merge(i, &found, func(*History) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return states, steps
}

// packedAfter packs the state that a walk's history leads to, and says which of its
// sockets have a place in it. A walk never gives a name twice, and a packed state has
// few: each new socket takes the first slot that is free.
func packedAfter(t *testing.T, r *run, path []*act) (model.State, map[rc.ID]bool) {
	t.Helper()
	stack := r.Kernel.New()
	if err := stack.Reset(r.e.config); err != nil {
		t.Fatal(err)
	}
	slot := map[rc.ID]rc.ID{}
	fill := func(id rc.ID) rc.ID {
		used := map[rc.ID]bool{}
		stack.Sockets(func(s *rc.Socket) bool { used[s.ID] = true; return true })
		for i := rc.ID(0); ; i++ {
			if !used[i] {
				maps.DeleteFunc(slot, func(_, at rc.ID) bool { return at == i })
				slot[id] = i
				return i
			}
		}
	}
	for _, a := range path {
		for i, op := range a.ops {
			seen := rc.Answer{}
			if i == len(a.ops)-1 {
				seen = a.seen
			}
			switch op.Verb {
			case rc.VSocket:
				op.Sock = fill(op.Sock)
			case rc.VInherit:
				op.Sock, op.Child = slot[op.Sock], fill(op.Child)
			default:
				op.Sock = slot[op.Sock]
			}
			if _, err := stack.DoAs(op, seen); err != nil {
				t.Fatal(err)
			}
		}
	}
	var st model.State
	if err := r.ws[0].step.codec.Pack(stack, &st); err != nil {
		t.Fatal(err)
	}
	held := map[rc.ID]bool{}
	for id, i := range slot {
		held[id] = st.Socks[i] != 0 && !model.Pristine(st.Socks[i])
	}
	return bare(&r.ws[0].canon, &st), held
}

func TestTheTwoEnginesMeetTheSameStatesAndSteps(t *testing.T) {
	for _, c := range shared {
		t.Run(fmt.Sprintf("%s/%s/%d", c.kernel, c.world, c.sockets), func(t *testing.T) {
			t.Parallel()
			s := search(t, c.kernel, c.world, c.sockets, spec.Sound, spec.Complete)
			s.socketsOnly = true
			r := finish(t, s)
			states, steps := packedStates(t, r)
			walked, took := walkedStates(t, walkOf(t, packed, c.kernel, c.world, c.sockets), r)
			if d := cmp.Diff(states, walked); d != "" || len(states) < 3 {
				t.Errorf("%d states are packed, %d are walked", len(states), len(walked))
			}
			if d := cmp.Diff(steps, took); d != "" {
				t.Errorf("%d steps are packed, %d are walked: %.2000s", len(steps), len(took), d)
			}
		})
	}
}
