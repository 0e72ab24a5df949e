package spec_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// naive is a stack of namespaces without a shared table: a TCP stack for each, in
// a map. Its flaws are those that a purge can have.
type naive struct {
	flaws
	own    *model.TCP
	worlds map[rc.ID]*model.TCP // those that live
	dead   []*model.TCP         // those of which something is left
	in     map[rc.ID]rc.ID      // the namespace of each socket that is not in the trace's own
	tables bool                 // a namespace gets a table of its own unless it is told
	apart  map[rc.ID]bool       // those that have one
}

type flaws struct {
	always  bool    // every table is walked in both passes, as kernels from 6.9 on do
	own     bool    // ... but only those of the namespaces' own, as from 6.1 on
	thrice  bool    // every walk is made three times
	skip    [2]bool // the family that no pass is made for: IPv4, IPv6
	first   bool    // only the first of a batch is purged
	all     bool    // the purge asks for no namespace
	reborn  bool    // a new namespace gets the memory of one that is gone
	forgets bool    // IPv6 sockets are not counted
}

func newNaive(f flaws) func() (rc.Stack, error) {
	return func() (rc.Stack, error) { return &naive{flaws: f}, nil }
}

// world618 makes the worlds of a naive stack; a search makes some hundred thousand.
var world618 = model.MustParse("6.18")

func newTCP() *model.TCP { return world618.New() }

func (n *naive) Reset(c rc.Config) error {
	n.own, n.worlds, n.in, n.dead, n.apart = newTCP(), map[rc.ID]*model.TCP{}, map[rc.ID]rc.ID{}, nil, map[rc.ID]bool{}
	n.tables = len(c.Sysctl) > 0
	return nil
}

func (n *naive) world(id rc.ID) *model.TCP {
	if net, ok := n.in[id]; ok {
		return n.worlds[net]
	}
	return n.own
}

func (n *naive) Do(op rc.Op) (rc.Result, error) {
	switch op.Verb {
	case rc.VNetns:
		n.worlds[op.Sock] = newTCP()
		n.apart[op.Sock] = op.Table == rc.OwnTable || op.Table == rc.TableAsSet && n.tables
		if n.reborn && len(n.dead) > 0 {
			n.worlds[op.Sock] = n.dead[0]
			n.dead = n.dead[1:]
		}
		return rc.Result{Answer: rc.Success, Decider: rc.NoID}, nil
	case rc.VExit:
		return rc.Result{Answer: n.exit(op.Batch), Decider: rc.NoID}, nil
	case rc.VSocket:
		if op.HasNet {
			n.in[op.Sock] = op.Net
			op.HasNet, op.Net = false, 0
		}
	case rc.VInherit:
		if net, ok := n.in[op.Sock]; ok {
			n.in[op.Child] = net
		}
	}
	return n.world(op.Sock).Do(op)
}

// waiting are a world's TIME_WAIT sockets of one family.
func waiting(w *model.TCP, six bool) (ids []rc.ID) {
	w.Sockets(func(s *rc.Socket) bool {
		if s.State == rc.TimeWait && s.Family.Is6() == six {
			ids = append(ids, s.ID)
		}
		return true
	})
	return ids
}

func purge(w *model.TCP, six bool) {
	for _, id := range waiting(w, six) {
		_, _ = w.Do(rc.Expire(id))
	}
}

func (n *naive) exit(batch []rc.ID) rc.Answer {
	a := rc.Answer{Kind: rc.Exited}
	for pass, six := range []bool{true, false} {
		shared := int32(0)
		for i, id := range batch {
			walk := n.always || n.flaws.own && n.apart[id] || len(waiting(n.worlds[id], six)) > 0
			switch {
			case !walk:
			case n.apart[id]:
				a.Walks++
			default:
				shared = 1
			}
			if !n.skip[1-pass] && (!n.first || i == 0) {
				purge(n.worlds[id], six)
			}
		}
		if a.Walks += shared; n.all && a.Walks > 0 {
			purge(n.own, six)
			for _, w := range n.worlds {
				purge(w, six)
			}
		}
	}
	if n.thrice {
		a.Walks *= 3
	}
	for _, id := range batch {
		w := n.worlds[id]
		delete(n.worlds, id)
		if left := len(waiting(w, true)) + len(waiting(w, false)); left > 0 {
			a.Left += int32(left)
			n.dead = append(n.dead, w)
		}
		n.closeAll(w)
	}
	return a
}

func (n *naive) closeAll(w *model.TCP) {
	var ids []rc.ID
	w.Sockets(func(s *rc.Socket) bool {
		if s.ID >= 0 && s.State != rc.TimeWait {
			ids = append(ids, s.ID)
		}
		return true
	})
	for _, id := range ids {
		_, _ = w.Do(rc.Close(id))
	}
}

func (n *naive) Sockets(yield func(*rc.Socket) bool) {
	for _, w := range slices.Concat([]*model.TCP{n.own}, slices.Collect(maps.Values(n.worlds)), n.dead) {
		w.Sockets(yield)
	}
}

func (n *naive) CacheOf(uint16) rc.Cache { return rc.Cache{} }

func (n *naive) Check() error {
	var fs rc.Faults
	for id, w := range n.worlds {
		if n.forgets && len(waiting(w, true)) > 0 {
			fs = append(fs, rc.Fault{Kind: "a socket is not counted", Sock: id, Text: "a socket is not counted"})
		}
	}
	if len(fs) == 0 {
		return nil
	}
	return fs
}

// kinds searches a stack and counts what it finds by property, kind and tags.
func kinds(t *testing.T, stack func() (rc.Stack, error), checks int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	s := spec.Search{System: spec.TimeWait, Stack: stack, Seed: 3, Checks: checks, Workers: 1, PerFinding: 1}
	stats, err := s.Run(context.Background(), func(f spec.Failure) bool {
		found[f.Violation.Property+": "+f.Violation.Kind] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []rc.Verb{rc.VNetns, rc.VExit, rc.VTimeWait, rc.VExpire, rc.VConnect, rc.VInherit} {
		if stats.Verbs[v] == 0 {
			t.Errorf("no history has a step %s", v)
		}
	}
	return found
}

func TestAPurgeThatIsFlawedIsFoundAndOneThatIsNotIsNot(t *testing.T) {
	const (
		left  = "purge: TIME_WAIT sockets of the batch are left"
		taken = "purge: TIME_WAIT sockets of another namespace are gone"
		none  = "precise: a table is walked although no namespace of the batch has TIME_WAIT sockets"
		own   = "precise: a namespace's own table is walked although it has no TIME_WAIT sockets"
		mixed = "precise: a table is walked of which no namespace of the batch has TIME_WAIT sockets, beside one of which some have"
		more  = "precise: a table is walked more than once a pass"
	)
	for _, tt := range []struct {
		name string
		flaws
		want []string
	}{
		{"a purge without a flaw", flaws{}, nil},
		{"one that walks always", flaws{always: true}, []string{none, own, mixed}},
		{"one that walks the namespaces' own tables always", flaws{own: true}, []string{own, mixed}},
		{"one that walks three times", flaws{thrice: true}, []string{more, own, mixed}},
		{"one that skips IPv4", flaws{skip: [2]bool{true, false}}, []string{left}},
		{"one that skips IPv6", flaws{skip: [2]bool{false, true}}, []string{left}},
		{"one that skips all but the first of a batch", flaws{first: true}, []string{left}},
		{"one that takes what is not of the batch", flaws{all: true}, []string{taken}},
		{"one whose leftovers are taken for another's", flaws{skip: [2]bool{true, true}, reborn: true},
			[]string{left, none, own, "purge: bind refused because of a namespace that is gone"}},
		{"one that does not count IPv6", flaws{forgets: true}, []string{
			"structure: timewait: a socket is not counted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := slices.Sorted(maps.Keys(kinds(t, newNaive(tt.flaws), 1500)))
			slices.Sort(tt.want)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +found):\n%s", d)
			}
		})
	}
}

// twice walks each table two times.
type twice struct{ *model.TimeWait }

func (s twice) Do(op rc.Op) (rc.Result, error) {
	got, err := s.TimeWait.Do(op)
	if got.Kind == rc.Exited {
		got.Walks *= 2
	}
	return got, err
}

func TestNoMoreThanOneWalkOfATableIsAllowedForEachPassThatIsMade(t *testing.T) {
	for kernel, say := range map[string]string{
		"6.18":                         `"exit n" walks 2 times in one pass, and each of them needs one walk of a table at most.`,
		"6.1-tw-one-pass-tw-exclusive": `"exit n" walks 4 times in 2 passes, and each of them needs one walk of a table at most.`,
	} {
		stack, err := model.MustParse(kernel).Stack(rc.TimeWaitExit)
		if err != nil {
			t.Fatal(err)
		}
		inner := stack.(*model.TimeWait)
		tr := rc.MustParse("system timewait\nnetns n\nsocket l tcp4 netns=n\nbind l 127.0.0.1:40000\nlisten l\ninherit l a 127.0.0.1\ntimewait a\nexit n\n")
		for _, s := range []rc.Stack{inner, twice{inner}} {
			said := ""
			err := spec.NewMachine(spec.TimeWait, s).Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
				for _, v := range found {
					said += spec.Sentence(o, v)
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if s != rc.Stack(inner) {
				want = say
			}
			if said != want {
				t.Errorf("%s: %q is said, not %q", kernel, said, want)
			}
		}
	}
}

func TestANeedlessWalkOfOneOwnTableIsSeenBesideThatOfAnotherWhichIsNot(t *testing.T) {
	const trace = "system timewait\nsysctl net.ipv4.tcp_child_ehash_entries 64\nnetns m\nnetns n\nsocket l tcp4 netns=n\nbind l 127.0.0.1:40000\n" +
		"listen l\ninherit l a 127.0.0.1\ntimewait a\nexit m,n\n"
	for kernel, want := range map[string]string{"6.18": "a namespace's own table is walked although it has no TIME_WAIT sockets", "6.18-tw-own-always-tw-always": ""} {
		stack, err := model.MustParse(kernel).Stack(rc.TimeWaitExit)
		if err != nil {
			t.Fatal(err)
		}
		kind := ""
		err = spec.NewMachine(spec.TimeWait, stack).Replay(rc.MustParse(trace), func(_ int, _ *spec.Observation, found []spec.Violation) bool {
			for _, v := range found {
				kind += v.Kind
			}
			return true
		})
		if err != nil || kind != want {
			t.Errorf("%s: %q and %v, not %q", kernel, kind, err, want)
		}
	}
}

func TestWhatAnExitShowsIsSaidInWords(t *testing.T) {
	const pair = "netns n\nsocket l tcp6 netns=n\nbind l [::]:40000\nlisten l\ninherit l a 127.0.0.1\ntimewait a\nclose l\n"
	for _, tt := range []struct {
		name, trace string
		flaws
		want string
	}{
		{"left", pair + "exit n", flaws{skip: [2]bool{true, true}},
			`"exit n" returns and leaves 1 of the TIME_WAIT sockets that its namespaces had (a: tcp6 [::ffff:127.0.0.1]:40000)`},
		{"taken", pair + "netns m\nsocket k tcp6 netns=m\nbind k [::]:40000\nlisten k\ninherit k b 127.0.0.1\ntimewait b\nexit m", flaws{all: true},
			`"exit m" also ends a: tcp6 [::ffff:127.0.0.1]:40000, which belongs to another namespace`},
		{"needless", "netns n\nexit n", flaws{always: true},
			`"exit n" walks through whole tables 2 times, although the namespace has no TIME_WAIT socket: the count would tell. ` +
				`Kernels from 6.1 to 6.8 asked it and left the walk out, which 2a750d6a5b36 gave up: half-open requests of the kernel's ` +
				`own listeners, which a walk drops too, are in no count.`},
		{"reborn", pair + "exit n\nnetns m\nsocket b tcp4 netns=m\nbind b 127.0.0.1:40000", flaws{skip: [2]bool{true, true}, reborn: true},
			`"bind b 127.0.0.1:40000" is refused with EADDRINUSE although its namespace has nothing that stands against it`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := rc.Parse("test", []byte("system timewait\n\n"+tt.trace))
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			err = spec.NewMachine(spec.TimeWait, &naive{flaws: tt.flaws}).Replay(tr, func(i int, o *spec.Observation, found []spec.Violation) bool {
				if i == len(tr.Steps)-1 && len(found) > 0 {
					said = spec.Sentence(o, found[0])
				}
				return true
			})
			if err != nil || !strings.HasPrefix(said, tt.want) {
				t.Errorf("said %q, %v\nwant %q", said, err, tt.want)
			}
		})
	}
}

func TestNamespacesConformToThemselves(t *testing.T) {
	sys, err := spec.Conformance(spec.TimeWait, newNaive(flaws{}))
	if err != nil {
		t.Fatal(err)
	}
	run := func(f flaws) (n int) {
		s := spec.Search{System: sys, Stack: newNaive(f), Seed: 5, Checks: 300, Workers: 1}
		if _, err := s.Run(context.Background(), func(spec.Failure) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := run(flaws{}); n > 0 {
		t.Errorf("a stack differs from itself %d times", n)
	}
	if n := run(flaws{always: true}); n == 0 {
		t.Errorf("a stack that walks more is not told from one that does not")
	}
}

func TestARandomMachineHoldsNamespacesToTheirProperties(t *testing.T) {
	rapid.Check(t, spec.Histories(spec.TimeWait, spec.TimeWaitWorld(), newNaive(flaws{})))
}

// skips is a kernel that leaves needless walks out, of its own tables too.
const skips = "6.1-tw-own-always-tw-always-tw-one-pass-tw-exclusive"

func TestEachEraOfTheKernelShowsWhatItIsKnownFor(t *testing.T) {
	const (
		none  = "precise: a table is walked although no namespace of the batch has TIME_WAIT sockets"
		own   = "precise: a namespace's own table is walked although it has no TIME_WAIT sockets"
		mixed = "precise: a table is walked of which no namespace of the batch has TIME_WAIT sockets, beside one of which some have"
	)
	want := map[string][]string{
		"two walks, always":    {none},
		"the skip as proposed": nil,
		"the skip as merged":   nil,
		"own tables always":    {own},
		"no skip":              {none, own, mixed},
		"one pass":             {none, own, mixed},
		"exits exclusive":      {none, own, mixed},
	}
	eras := model.Eras()
	for _, e := range eras {
		slices.Sort(want[e.Name])
		if d := cmp.Diff(want[e.Name], slices.Sorted(maps.Keys(kinds(t, stackOf(spec.TimeWait, e.Kernel), 600)))); d != "" {
			t.Errorf("%s, %s (-want +found):\n%s", e.Name, e.Kernel, d)
		}
	}
	if len(eras) != len(want) {
		t.Errorf("%d eras, of which %d are known here", len(eras), len(want))
	}
}

// FuzzTimeWaitHistories is the random state machine as a native fuzz target.
func FuzzTimeWaitHistories(f *testing.F) {
	stubborn(f)
	f.Fuzz(rapid.MakeFuzz(spec.Histories(spec.TimeWait, spec.TimeWaitWorld(), stackOf(spec.TimeWait, skips))))
}

// mute is a naive stack as a kernel is: it counts nothing and cannot be looked
// into, but what is in TIME_WAIT can be seen.
type mute struct{ of *naive }

func (s mute) Reset(c rc.Config) error { return s.of.Reset(c) }

func (s mute) Do(op rc.Op) (rc.Result, error) {
	got, err := s.of.Do(op)
	if got.Kind != rc.Exited {
		return got, err
	}
	got.Walks, got.Left, got.HasWaiting = rc.Uncounted, rc.Uncounted, true
	s.of.Sockets(func(s *rc.Socket) bool {
		if s.State == rc.TimeWait {
			got.Waiting = append(got.Waiting, s.ID)
		}
		return true
	})
	return got, err
}

func TestAKernelThatCountsNothingIsHeldToWhatItLeavesOthers(t *testing.T) {
	conformance, err := spec.Conformance(spec.TimeWait, stackOf(spec.TimeWait, "6.18"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		flaws
		want []string
	}{
		{"a purge without a flaw", flaws{}, nil},
		{"one that takes what is not of the batch", flaws{all: true}, []string{"waiting: TIME_WAIT sockets of another namespace are gone"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := map[string]bool{}
			s := spec.Search{
				System: conformance, Seed: 3, Checks: 3000, Workers: 1, PerFinding: 1,
				Stack: func() (rc.Stack, error) { return mute{&naive{flaws: tt.flaws}}, nil },
			}
			stats, err := s.Run(context.Background(), func(f spec.Failure) bool {
				found[f.Violation.Property+": "+f.Violation.Kind] = true
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := stats.Verbs[rc.VExit]; n == 0 || stats.Uncounted != n {
				t.Errorf("%d of %d exits are said to be uncounted", stats.Uncounted, n)
			}
			if d := cmp.Diff(tt.want, slices.Sorted(maps.Keys(found))); d != "" {
				t.Errorf("(-want +found):\n%s", d)
			}
		})
	}
}
