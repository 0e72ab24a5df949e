package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func walkOf(t *testing.T, sys *spec.System, kernel, world string, sockets int) *Walk {
	t.Helper()
	p, err := model.ParseOf(sys.Name, kernel)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ParseWorld(world)
	if err != nil {
		t.Fatal(err)
	}
	return &Walk{System: sys, World: w, Sockets: sockets, Workers: 2, Stack: func() (rc.Stack, error) { return p.Stack(sys.Name) }}
}

// found shrinks what an engine finds, as the command does.
func found(t *testing.T, sys *spec.System, stack func() (rc.Stack, error), run func(context.Context, func(*History) error) (*Outcome, error)) ([]*shrink.Finding, *Outcome) {
	t.Helper()
	s, err := stack()
	if err != nil {
		t.Fatal(err)
	}
	judge, finder := JudgeOf(sys, s, nil), &shrink.Finder{System: sys, Stack: stack}
	o, err := run(context.Background(), func(h *History) error {
		fails, err := judge.Failures(h)
		if len(fails) == 0 {
			t.Errorf("no violation shows at the end of\n%s", h.Trace)
		}
		for _, f := range fails {
			if _, err := finder.Find(context.Background(), f); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return finder.Known(), o
}

type finding = shrink.Finding

func titles(ns []*shrink.Finding) (s []string) {
	for _, n := range ns {
		s = append(s, n.Title()+"\n"+n.Trace.String())
	}
	slices.Sort(s)
	return s
}

func TestAWalkThroughTCPFindsWhatItsOwnEngineFinds(t *testing.T) {
	for _, tt := range []struct {
		kernel, world string
		sockets       int
	}{
		{"6.18", "tcp4 addr=0.0.0.0,127.0.0.1 reuseaddr reuseport listen close", 2},
		{"6.1-failed-connect-bucket", "tcp4 addr=0.0.0.0,127.0.0.1 connect listen close ports=2", 1},
		{"6.1-bucket-dual-stack", "tcp4 tcp6 addr=::,127.0.0.1 v6only close", 2},
		{"5.4-timewait-reuseport", "tcp4 addr=127.0.0.1 reuseport uid=2 listen inherit timewait close", 2},
	} {
		w := walkOf(t, spec.TCP, tt.kernel, tt.world, tt.sockets)
		s := search(t, tt.kernel, tt.world, tt.sockets)
		mine, all := found(t, spec.TCP, w.Stack, w.Run)
		its, _ := found(t, spec.TCP, w.Stack, s.Run)
		if !all.Complete || len(its) == 0 {
			t.Errorf("%s in %q: complete is %v, %d findings", tt.kernel, tt.world, all.Complete, len(its))
		}
		if d := cmp.Diff(titles(its), titles(mine)); d != "" {
			t.Errorf("%s in %q (-its own engine +a walk):\n%s", tt.kernel, tt.world, d)
		}
	}
}

// walks are small worlds that only a walk explores.
var walks = []struct {
	sys           *spec.System
	kernel, world string
	sockets       int
}{
	{spec.UDP, "6.18", "tuple", 1},
	{spec.UDP, "6.18", "udp4 udp6 addr=::,127.0.0.1 reuseport connect disconnect close send set-opt", 1},
	{spec.UDP, "5.4", "udp4 addr=127.0.0.1 reuseport connect disconnect close send", 2},
	{spec.UDP, "6.18", "udp4 addr=127.0.0.1,127.0.0.2 dev=1 connect close send", 2},
	{spec.UDP, "6.18", "udp4 addr=0.0.0.0,127.0.0.1 reuseaddr close send", 2},
	{spec.UDP, "6.18", "udp4 addr=127.0.0.1 reuseport set-opt close send", 2},
	{spec.UDP, "6.12", "udp4 addr=127.0.0.1 reuseaddr connect disconnect send cpu=1 set-cpu", 1},
	{spec.TCP, "6.12", "tcp4 addr=127.0.0.1 listen connect unaccepted disconnect ports=2", 2},
	{spec.TCP, "6.1", "tcp4 addr=127.0.0.1 reuseport cpu=1 set-cpu listen inherit rivals close", 2},
	{spec.TCP, "6.18", "tcp4 addr=127.0.0.1 reuseaddr autobind-reuse auto close ports=4", 2},
	{spec.TimeWait, "6.18", "exits", 2},
	{spec.TimeWait, "6.1", "tcp4 tcp6 addr=127.0.0.1,::1 listen inherit timewait close nets=1 child-tables", 2},
	{spec.TimeWait, "6.18+tw-one-family", "tcp4 tcp6 addr=127.0.0.1,::1 listen inherit timewait close nets=2", 2},
	{spec.TimeWait, "5.15+tw-timers-only+tw-row-block", "tcp4 addr=127.0.0.1 listen inherit timewait expire close nets=1", 2},
}

// stepText is what a step from a state came to, names aside.
func stepText(a *act, o *spec.Observation, found []spec.Violation, to stateKey) string {
	got := o.Got.Answer
	got.Who = 0
	return fmt.Sprint(a.last().Verb, got, o.Verdict.Agrees, found, to)
}

func TestStatesThatAreTakenForOneAnswerEveryStepAlike(t *testing.T) {
	for _, tt := range walks {
		w := walkOf(t, tt.sys, tt.kernel, tt.world, tt.sockets)
		w.Workers = 1
		var steps []string
		var again []arrivalAt
		w.watch = func(a *act, o *spec.Observation, found []spec.Violation, to stateKey) {
			steps = append(steps, stepText(a, o, found, to))
		}
		r, err := w.begin()
		if err != nil {
			t.Fatal(err)
		}
		of := func(path []*act) string {
			steps = steps[:0]
			x := r.ws[0]
			x.x, x.path = &expansion{}, path
			if err := x.steps(); err != nil {
				t.Fatal(err)
			}
			slices.Sort(steps)
			return strings.Join(steps, "\n")
		}
		keep := r.watch
		for i := int32(0); i < int32(len(r.states)); i++ {
			r.Walk.watch = func(a *act, o *spec.Observation, found []spec.Violation, to stateKey) {
				again = append(again, arrivalAt{i, arrival{to, a.clone()}})
			}
			x := r.ws[0].expand(i)
			if err := r.merge(i, &x, func(*History) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		r.Walk.watch = keep
		compared := 0
		for i, a := range again {
			j, met := r.seen[a.key]
			if !met || i%(1+len(again)/200) != 0 {
				continue
			}
			compared++
			want := of(r.path(j))
			path := append(r.path(a.from), &a.act)
			if got := of(path); got != want {
				t.Fatalf("%s in %q: two histories are taken for the same state\n%s\n%s\n%s", tt.kernel, tt.world,
					r.history(j, &act{ops: []rc.Op{rc.Close(0)}}).Trace, r.history(a.from, &a.act).Trace, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		}
		if compared < 20 {
			t.Errorf("%s in %q: only %d states were met again", tt.kernel, tt.world, compared)
		}
	}
}

type arrivalAt struct {
	from int32
	arrival
}

// canonical are the states of a finished walk under names that do not count, and
// the classes of what was wrong.
func canonical(t *testing.T, w *Walk) (map[stateKey]bool, map[wrong]bool) {
	t.Helper()
	r, err := w.begin()
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < len(r.states); {
		to := len(r.states)
		if _, err := r.level(context.Background(), from, to, func(*History) error { return nil }); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	keys := map[stateKey]bool{}
	r.Walk.byName = false
	for i := range r.states {
		if err := r.ws[0].replay(r.path(int32(i))); err != nil {
			t.Fatal(err)
		}
		k, err := r.ws[0].key()
		if err != nil {
			t.Fatal(err)
		}
		keys[k] = true
	}
	return keys, r.classes
}

func TestAWalkThatTellsNamesApartMeetsNoOtherStates(t *testing.T) {
	for _, tt := range walks[2:] {
		less, wrongs := canonical(t, walkOf(t, tt.sys, tt.kernel, tt.world, tt.sockets))
		more := walkOf(t, tt.sys, tt.kernel, tt.world, tt.sockets)
		more.byName = true
		all, others := canonical(t, more)
		if d := cmp.Diff(all, less); d != "" {
			t.Errorf("%s in %q: %d states by names, %d without", tt.kernel, tt.world, len(all), len(less))
		}
		if !maps.Equal(others, wrongs) {
			t.Errorf("%s in %q: %v is violated by names, %v without", tt.kernel, tt.world, others, wrongs)
		}
	}
}
