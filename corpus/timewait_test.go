package corpus_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// shown are what a trace shows on a kernel: the step and what is violated.
func shown(t *testing.T, tr *rc.Trace, kernel string) (vs []string) {
	t.Helper()
	p, err := model.ParseOf(rc.TimeWaitExit, kernel)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Stack(rc.TimeWaitExit)
	if err != nil {
		t.Fatal(err)
	}
	err = spec.NewMachine(spec.TimeWait, s).Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		for _, v := range found {
			vs = append(vs, o.Op.Text(tr.Name)+": "+v.Property+": "+v.Kind)
		}
		return true
	})
	if err != nil {
		t.Errorf("%s on %s: %v", tr.File, kernel, err)
	}
	return vs
}

func TestEachTimeWaitBugShowsOnTheKernelThatHasItAndNotOnTheMendedOne(t *testing.T) {
	traces := map[string][]*rc.Trace{}
	for _, tr := range under(t, "timewait/history") {
		row, _, _ := strings.Cut(path.Base(tr.File), "-")
		traces[row] = append(traces[row], tr)
	}
	for _, row := range model.TimeWaitHistory() {
		if row.Lives == "" {
			continue
		}
		seen := false
		for _, tr := range traces[row.ID] {
			healed := shown(t, tr, row.Healed)
			for _, v := range shown(t, tr, row.Lives) {
				seen = seen || !slices.Contains(healed, v)
			}
		}
		if !seen {
			t.Errorf("row %s: none of %d traces shows on %s what it does not show on %s", row.ID, len(traces[row.ID]), row.Lives, row.Healed)
		}
		delete(traces, row.ID)
	}
	for row := range traces {
		t.Errorf("row %s has traces and is in no list", row)
	}
}

func TestAWrongTimeWaitTraceStatesADivergenceAndItsRightOneNone(t *testing.T) {
	all := under(t, "timewait/history")
	right := map[string]*rc.Trace{}
	ops := func(tr *rc.Trace) (s []string) {
		for i := range tr.Steps {
			s = append(s, tr.Steps[i].Op.Text(tr.Name))
		}
		return s
	}
	for _, tr := range all {
		n, ok := strings.CutSuffix(tr.File, "-right.trace")
		if ok {
			right[n] = tr
		}
		if ok == tr.Diverges() {
			t.Errorf("%s: states a divergence: %t", tr.File, tr.Diverges())
		}
	}
	for _, tr := range all {
		if n, ok := strings.CutSuffix(tr.File, "-wrong.trace"); ok {
			if right[n] == nil {
				t.Errorf("%s has no right counterpart", tr.File)
			} else if d := cmp.Diff(ops(tr), ops(right[n])); d != "" {
				t.Errorf("%s and its right counterpart are not the same steps (-wrong +right):\n%s", tr.File, d)
			}
		}
	}
}

func TestOnlyTheKernelsThatSkipHaveNoWalkForNothing(t *testing.T) {
	for _, e := range model.Eras() {
		needless := false
		for _, tr := range under(t, "timewait/seeds/unshare-no-walk.trace") {
			needless = len(shown(t, tr, e.Kernel)) > 0
		}
		if skips := strings.Contains(e.Name, "skip as") || e.Name == "own tables always"; needless == skips {
			t.Errorf("%s (%s): walks for nothing: %t", e.Name, e.Kernel, needless)
		}
	}
}
