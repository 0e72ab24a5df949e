package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func search(t testing.TB, kernel, world string, sockets int, props ...*spec.Property) *Search {
	t.Helper()
	w, err := ParseWorld(world)
	if err != nil {
		t.Fatal(err)
	}
	return &Search{Kernel: model.MustParse(kernel), World: w, Sockets: sockets, Workers: 2, Properties: props, Memory: 1 << 30}
}

// small are worlds that are explored without symmetry too.
var small = []struct {
	kernel, world string
	sockets       int
	symmetries    int
}{
	{"6.18", "v4", 3, 2},
	{"6.18+first-bind-fix", "v4 uid=2", 2, 4},
	{"5.4", "v4 uid=2", 2, 4},
	{"6.18", "v4 dev=2 set-dev", 2, 4},
	{"6.18", "users", 2, 4},
	{"6.18", "tcp4 tcp6 addr=0.0.0.0,::,::1,::ffff:127.0.0.1 v6only reuseport dev=2 close", 2, 2},
	{"6.1", "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,::,::ffff:0.0.0.0,::ffff:127.0.0.1 v6only listen close", 2, 1},
	{"6.1-every-wildcard", "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,127.0.0.2,:: v6only close", 3, 2},
	{"6.1-mapped-twin", "tcp4 tcp6 addr=127.0.0.1,::ffff:127.0.0.1 reuseaddr listen close", 3, 1},
	{"6.18", "tcp4 addr=127.0.0.1,127.0.0.2,0.0.0.0 reuseaddr listen connect inherit timewait expire shutdown disconnect close auto", 2, 1},
	{"6.18", "tcp4 addr=0.0.0.0,127.0.0.1 reuseport uid=2 listen inherit close set-opt", 2, 2},
	{"6.18", "tcp4 addr=127.0.0.1 reuseaddr dev=3 listen connect close", 2, 2},
	{"6.18+exact-strict-match", "tcp4 addr=0.0.0.0,127.0.0.1 reuseaddr reuseport dev=2 close", 3, 2},
}

// visit calls f for every stored state of a finished run.
func visit(r *run, f func(st *model.State)) {
	var st model.State
	for i := range r.store.shards {
		for at := range r.store.shards[i].n {
			r.layout.read(r.ws[0].step, r.store.shards[i].read(at, r.store.width), &st)
			f(&st)
		}
	}
}

func finish(t testing.TB, s *Search) *run {
	t.Helper()
	r, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r.open() > 0 {
		if _, err := r.expandLevel(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// judged is all that is said about a violating step, up to renaming.
type judged struct {
	from    model.State
	verb    rc.Verb
	reason  rc.Reason
	path    rc.Path
	wrong   uint8
	reasons uint64
}

// orbits are the representatives of a run's states, and the violations in them.
func orbits(t *testing.T, r *run, c *canon) (map[model.State]bool, map[judged]bool) {
	states, wrong := map[model.State]bool{}, map[judged]bool{}
	visit(r, func(st *model.State) {
		from := *st
		c.of(&from)
		states[from] = true
		at := *st
		err := r.ws[0].step.expand(&at, func(tr *transition) error {
			if tr.wrong != 0 {
				wrong[judged{from, tr.op.Verb, tr.res.Reason, tr.res.Path, tr.wrong, tr.reasons}] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return states, wrong
}

func TestSymmetryChangesNoVerdictAndCountsEveryOrbitOnce(t *testing.T) {
	for _, c := range small {
		t.Run(fmt.Sprintf("%s/%s/%d", c.kernel, c.world, c.sockets), func(t *testing.T) {
			t.Parallel()
			reduced := finish(t, search(t, c.kernel, c.world, c.sockets))
			if n := len(reduced.e.group); n != c.symmetries {
				t.Errorf("there are %d symmetries, not %d", n, c.symmetries)
			}
			whole := search(t, c.kernel, c.world, c.sockets)
			whole.Unreduced = true
			all := finish(t, whole)
			least := &reduced.ws[0].canon
			some, someWrong := orbits(t, reduced, least)
			every, everyWrong := orbits(t, all, least)
			if d := cmp.Diff(every, some); d != "" {
				t.Errorf("%d orbits without symmetry, %d with it", len(every), len(some))
			}
			if int64(len(some)) != reduced.store.states() {
				t.Errorf("%d states are stored for %d orbits", reduced.store.states(), len(some))
			}
			if d := cmp.Diff(everyWrong, someWrong); d != "" {
				t.Errorf("%d violations without symmetry, %d with it", len(everyWrong), len(someWrong))
			}
		})
	}
}

// TestALoadedStateIsTheStateThatWasPacked walks at random, and does every step on
// the stack that has come all the way and on one that was loaded just before.
func TestALoadedStateIsTheStateThatWasPacked(t *testing.T) {
	for _, c := range small {
		t.Run(fmt.Sprintf("%s/%s", c.kernel, c.world), func(t *testing.T) {
			t.Parallel()
			s := search(t, c.kernel, c.world, 4)
			s.Unreduced = true // a step knows nothing of symmetry
			e, err := s.engine(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st, err := e.stepper()
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(20) {
				walk(t, st, rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func walk(t *testing.T, s *stepper, rnd *rand.Rand) {
	whole := s.e.kernel.New()
	if err := whole.Reset(s.e.config); err != nil {
		t.Fatal(err)
	}
	var st model.State
	for range 14 {
		type step struct {
			fresh      bool
			create, op rc.Op
			res        rc.Result
			next       model.State
		}
		var steps []step
		err := s.expand(&st, func(tr *transition) error {
			if !tr.diverged && tr.next != st {
				steps = append(steps, step{tr.act.fresh, tr.create, tr.op, tr.res, tr.next})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) == 0 {
			return
		}
		n := steps[rnd.IntN(len(steps))]
		if n.fresh {
			if _, err := whole.Do(n.create); err != nil {
				t.Fatal(err)
			}
		}
		got, err := whole.Do(n.op)
		if err != nil {
			t.Fatal(err)
		}
		// Owners are met in another order where no answer depends on it.
		got.Visited, n.res.Visited, got.Decider, n.res.Decider = 0, 0, 0, 0
		got.AddrAfter, n.res.AddrAfter = rc.Pair{}, rc.Pair{}
		if !got.HasCache || got.Reason >= rc.RefuseNotShared {
			got.Reason, n.res.Reason = 0, 0
		}
		if d := cmp.Diff(got, n.res, cmp.Comparer(alike)); d != "" {
			t.Fatalf("%s is answered otherwise on the loaded stack: %s", n.op, d)
		}
		var packed model.State
		if err := s.codec.Pack(whole, &packed); err != nil {
			t.Fatal(err)
		}
		for i := range packed.Socks {
			if w := packed.Socks[i]; model.Pristine(w) {
				packed.Socks[i] = 0
			}
		}
		bare := n.next
		for i := range bare.Socks {
			bare.Socks[i] &= 1<<model.PastShift - 1
			bare.Ends[i] &= 1<<model.PastShift - 1
		}
		for i := range bare.Ports {
			bare.Ports[i] &= 1<<model.GhostShift - 1
		}
		if packed != bare {
			t.Fatalf("after %s the stack that has come all the way packs otherwise than the loaded one", n.op)
		}
		st = n.next
	}
}

// alike compares what rules read of two caches: of an ANY key the user only.
func alike(a, b rc.Cache) bool {
	a, b = a.WithoutKey(), b.WithoutKey()
	if a.FastReusePort == rc.FastAny {
		a = rc.Cache{Exists: a.Exists, FastReuse: a.FastReuse, FastReusePort: a.FastReusePort, UID: a.UID}
		b = rc.Cache{Exists: b.Exists, FastReuse: b.FastReuse, FastReusePort: b.FastReusePort, UID: b.UID}
	}
	return a == b
}

// TestKindsShareTheStepsOfTheirSocket asks the menu for sockets that differ in
// anything that a socket has, and holds it to what it says without a memory.
func TestKindsShareTheStepsOfTheirSocket(t *testing.T) {
	addrs := []netip.AddrPort{{}, netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("0.0.0.0:40000")}
	for _, words := range []string{
		"tcp4 addr=127.0.0.1,0.0.0.0 reuseaddr reuseport uid=2 dev=2 listen close shutdown disconnect connect inherit timewait expire set-opt set-uid set-dev ports=2",
		"tcp4 addr=127.0.0.1,0.0.0.0 listen close inherit auto other-port ports=2",
	} {
		w, err := ParseWorld(words)
		if err != nil {
			t.Fatal(err)
		}
		m, r := newMenu(packed, w), newRegistry()
		rnd := rand.New(rand.NewPCG(1, 1))
		for range 400 {
			s := rc.Socket{ID: rc.ID(rnd.IntN(3)), Opts: rc.Opt(rnd.IntN(4)), UID: w.UIDs[rnd.IntN(len(w.UIDs))], Dev: w.Devs[rnd.IntN(len(w.Devs))],
				State: rc.State(rnd.IntN(4)), Local: addrs[rnd.IntN(len(addrs))], Peer: addrs[rnd.IntN(len(addrs))],
				PortLocked: rnd.IntN(2) > 0, AddrLocked: rnd.IntN(2) > 0, ByConnect: rnd.IntN(2) > 0}
			if d := cmp.Diff(m.of(&s), r.steps(m, &s), cmp.AllowUnexported(action{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
				t.Fatalf("%+v: %s", s, d)
			}
		}
	}
}

func TestTheNumberOfWorkersChangesNothing(t *testing.T) {
	var first []string
	for workers := 1; workers <= 3; workers++ {
		s := search(t, "6.18", "v4 uid=2", 3)
		s.Workers = workers
		var got []string
		o, err := s.Run(context.Background(), func(h *History) error {
			got = append(got, h.Trace.String())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(o.States, o.Transitions, o.Depth, o.Violations))
		for _, st := range o.Steps {
			got = append(got, fmt.Sprint(st.Verb, st.Reason, st.Count, st.Depth)+st.Trace.String())
		}
		if workers == 1 {
			first = got
		} else if d := cmp.Diff(first, got); d != "" {
			t.Errorf("with %d workers: %s", workers, d)
		}
	}
}

// TestEveryHistoryShowsWhatTheExplorerSawInIt explores thoroughly, so it fails too
// where the relation judges otherwise than the whole oracle.
func TestEveryHistoryShowsWhatTheExplorerSawInIt(t *testing.T) {
	for _, c := range small {
		t.Run(fmt.Sprintf("%s/%s", c.kernel, c.world), func(t *testing.T) {
			t.Parallel()
			s := search(t, c.kernel, c.world, c.sockets)
			s.thorough = true
			j := NewJudge(s.Kernel, nil)
			o, err := s.Run(context.Background(), func(h *History) error {
				if err := h.Trace.Validate(); err != nil {
					t.Fatalf("%v\n%s", err, h.Trace)
				}
				fails, err := j.Failures(h)
				if err == nil && len(fails) == 0 {
					t.Errorf("the last step of this history violates nothing:\n%s", h.Trace)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if !o.Complete {
				t.Error("the exploration is not complete")
			}
		})
	}
}

func TestAStoreThatIsFullSaysWhatWasNotCovered(t *testing.T) {
	s := search(t, "6.18", "v4 uid=2", 3)
	s.Memory = 200 << 10
	o, err := s.Run(context.Background(), func(*History) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if o.Complete || o.Uncovered == 0 || o.Covered == 0 || o.Covered > o.Depth {
		t.Errorf("complete %v, %d states uncovered, %d of %d steps covered", o.Complete, o.Uncovered, o.Covered, o.Depth)
	}
}

// A refused connect from a port that nobody is told may have ended a TIME_WAIT
// socket: the stack knows, the oracle cannot.
func TestAStateThatTheWordsCannotTellIsCountedAndNotTakenForAnother(t *testing.T) {
	s := search(t, "6.18", "tcp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 reuseaddr auto listen connect timewait disconnect shutdown close", 2)
	o, err := s.Run(context.Background(), func(*History) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if n := o.Skipped["an owner that the stack has lost and of which the oracle cannot know"]; n != 2 || !o.Complete {
		t.Errorf("%d transitions are not judged, want 2: %v", n, o.Skipped)
	}
}
