package explore

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

func TestAWalkThroughUDPFindsWhatRandomHistoriesOfItsWorldShow(t *testing.T) {
	for _, world := range []string{
		"udp4 addr=127.0.0.1 reuseport connect disconnect send",
		"udp6 addr=::1,fd00::1 connect disconnect send",
	} {
		w := walkOf(t, spec.UDP, "6.18", world, 2)
		ns, o := found(t, spec.UDP, w.Stack, w.Run)
		if !o.Complete {
			t.Errorf("%q is not complete", world)
		}
		same := *w.World
		same.Sockets = w.Sockets
		shown := map[spec.Violation]bool{}
		random := &spec.Search{System: spec.UDP, Stack: w.Stack, World: &same, Seed: 1, Checks: 1000, Steps: 10, PerFinding: 1}
		_, err := random.Run(context.Background(), func(f spec.Failure) bool {
			if atOnce(f.Trace) > w.Sockets || !within(w.World, f.Trace) {
				return true // the generator goes a little beyond its world
			}
			shown[f.Violation] = true
			if !slices.ContainsFunc(ns, func(n *finding) bool { return n.Violation.Same(f.Violation) }) {
				t.Errorf("%q: the walk has nothing like %v\n%s", world, f.Violation, f.Trace)
			}
			return true
		})
		if err != nil || len(shown) < 2 {
			t.Errorf("%q: random histories show %v, error %v", world, shown, err)
		}
	}
}

// atOnce is how many sockets a history has at one time.
func atOnce(t *rc.Trace) (most int) {
	n := 0
	for _, st := range t.Steps {
		switch st.Op.Verb {
		case rc.VSocket:
			n++
		case rc.VClose:
			n--
		}
		most = max(most, n)
	}
	return most
}

func TestAnExitThatForgetsAFamilyIsFoundByAWalkAndTheCountIsPrecise(t *testing.T) {
	w := walkOf(t, spec.TimeWait, "6.18+tw-one-family", "tcp4 tcp6 addr=127.0.0.1,::1 listen inherit timewait close nets=1", 2)
	ns, _ := found(t, spec.TimeWait, w.Stack, w.Run)
	i := slices.IndexFunc(ns, func(n *finding) bool { return n.Violation.Property == spec.Purge.Name })
	if i < 0 {
		t.Fatal("no TIME_WAIT socket is left")
	}
	steps := 0
	for _, st := range ns[i].Trace.Steps {
		if v := st.Op.Verb; v != rc.VSocket && v != rc.VNetns {
			steps++
		}
	}
	if steps != 4 || !strings.Contains(ns[i].Trace.String(), "left=1 oracle ok walks=1 left=0") {
		t.Errorf("%d steps in\n%s", steps, ns[i].Trace)
	}
	for kernel, precise := range map[string]bool{"6.18-tw-always": true, "5.15+tw-row-block+tw-skip-proposed": true, "6.18": false} {
		w := walkOf(t, spec.TimeWait, kernel, "exits", 2)
		w.Properties = []*spec.Property{spec.PreciseWalk}
		o, err := w.Run(context.Background(), func(*History) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if !o.Complete || (o.Violations == 0) != precise {
			t.Errorf("%s: %d violations, complete is %v", kernel, o.Violations, o.Complete)
		}
	}
}

func TestAWalkComesToTheSameWhateverItsWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		w := walkOf(t, spec.UDP, "6.18", "tuple", 1)
		w.Workers = workers
		ns, o := found(t, spec.UDP, w.Stack, w.Run)
		o.Seconds = 0
		text := fmt.Sprintf("%+v\n", o.Stats)
		for _, s := range o.Steps {
			text += fmt.Sprintln(s.Verb, s.Answer, s.Reason, s.Count, s.Depth, s.Trace)
		}
		texts = append(texts, text+strings.Join(titles(ns), "\n"))
	}
	if d := cmp.Diff(texts[0], texts[1]); d != "" {
		t.Error(d)
	}
}

func TestAWalkThatIsCutShortSaysWhatItDidNotCover(t *testing.T) {
	all, err := walkOf(t, spec.UDP, "6.18", "tuple", 1).Run(context.Background(), func(*History) error { return nil })
	if err != nil || !all.Complete || all.Uncovered != 0 || all.Covered != all.Depth+1 {
		t.Fatalf("%+v, %v", all.Stats, err)
	}
	for name, cut := range map[string]func(*Walk){
		"depth":  func(w *Walk) { w.Depth = 2 },
		"memory": func(w *Walk) { w.Memory = all.Bytes / 2 },
	} {
		w := walkOf(t, spec.UDP, "6.18", "tuple", 1)
		cut(w)
		o, err := w.Run(context.Background(), func(*History) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if o.Complete || o.Uncovered == 0 || o.States >= all.States || o.Covered >= all.Covered || o.Covered == 0 {
			t.Errorf("%s: %+v", name, o.Stats)
		}
		if name == "depth" && (o.Covered != 2 || o.Depth != 2) {
			t.Errorf("depth 2: %+v", o.Stats)
		}
	}
}

func TestAWorldThatASystemHasNotIsRefused(t *testing.T) {
	for _, tt := range []struct {
		sys         *spec.System
		world, says string
		sockets     int
	}{
		{spec.UDP, "v4", "tcp4 sockets, which system udp has not", 1},
		{spec.TimeWait, "tuple", "udp4 sockets, which system timewait has not", 1},
		{spec.TimeWait, "exits set-uid", "set steps, which system timewait has not", 1},
		{spec.UDP, "tuple", "0 sockets cannot be explored", 0},
		{spec.TimeWait, "exits cpu=1", "processors, which system timewait has not", 1},
		{spec.UDP, "tuple unaccepted", "connections that nobody accepts, which system udp has not", 1},
	} {
		_, err := walkOf(t, tt.sys, "6.18", tt.world, tt.sockets).Run(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s %q: %v, want %q", tt.sys.Name, tt.world, err, tt.says)
		}
	}
}

// within reports whether all other ends in a history have addresses of its world.
func within(w *spec.World, t *rc.Trace) bool {
	for _, st := range t.Steps {
		for _, a := range []netip.AddrPort{st.Op.Addr, st.Op.From} {
			if a.IsValid() && !slices.Contains(w.Addrs, a.Addr()) {
				return false
			}
		}
	}
	return true
}

func TestAWalkGoesOnFromTheSocketsThatItsWorldBeginsWith(t *testing.T) {
	for kernel, wrongs := range map[string]int64{"6.18-udp-wildcard-bind": 1, "6.18": 0} {
		w := walkOf(t, spec.UDP, kernel, "udp4 addr=0.0.0.0,127.0.0.1 close crowd", 1)
		var last string
		o, err := w.Run(context.Background(), func(h *History) error {
			last = h.Trace.Steps[len(h.Trace.Steps)-1].Text(h.Trace.Name)
			if n := len(h.Trace.Names); n != 12 || h.Depth != 1 {
				t.Errorf("%d sockets and %d steps in\n%s", n, h.Depth, h.Trace)
			}
			return nil
		})
		if err != nil || !o.Complete || o.Violations != wrongs || wrongs > 0 && last != "bind l 0.0.0.0:40000" {
			t.Errorf("%s: %+v, the last step is %q, error %v", kernel, o, last, err)
		}
		for _, s := range o.Steps {
			if s.Verb == rc.VClose && s.Count > 2 {
				t.Errorf("%s: %d sockets close, of which two do not stay", kernel, s.Count)
			}
		}
	}
}

func TestAWalkTellsEveryViolationIfAsked(t *testing.T) {
	told := map[bool]int64{}
	for _, every := range []bool{false, true} {
		w := walkOf(t, spec.UDP, "6.18", "udp4 addr=127.0.0.1 connect send", 1)
		w.Every, w.Properties = every, []*spec.Property{spec.PreciseTable}
		o, err := w.Run(context.Background(), func(*History) error { told[every]++; return nil })
		if err != nil || every && told[every] != o.Violations {
			t.Errorf("%d of %d violations are told, error %v", told[every], o.Violations, err)
		}
	}
	if told[false] != 1 || told[true] < 2 {
		t.Errorf("told: %v", told)
	}
}

func TestAWalkOfProcessorsFindsTheGroupThatPassesTheOneWhoAsked(t *testing.T) {
	for kernel, want := range map[string]string{"6.1-udp-group-incoming-cpu": "socket a udp4 reuseport\nsocket b udp4 reuseport cpu=1\n", "6.1": ""} {
		w := walkOf(t, spec.UDP, kernel, "udp4 addr=127.0.0.1 reuseport send cpu=2 set-cpu", 2)
		got := ""
		o, err := w.Run(context.Background(), func(h *History) error {
			if !strings.Contains(h.Trace.String(), "cpu=") {
				t.Errorf("without a processor:\n%s", h.Trace)
			}
			if got == "" {
				got = h.Trace.String()
			}
			return nil
		})
		if err != nil || !o.Complete || (got == "") != (want == "") {
			t.Errorf("%s: %+v, error %v, first\n%s", kernel, o, err, got)
		}
	}
}
