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

// violations are what a trace shows on a kernel: the step and what is violated.
func violations(t *testing.T, tr *rc.Trace, kernel string) (vs []string) {
	t.Helper()
	s, err := model.MustParse(kernel).Stack(rc.UDP)
	if err != nil {
		t.Fatal(err)
	}
	err = spec.NewMachine(spec.UDP, s).Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
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

func TestEachUDPBugShowsOnTheKernelThatHasItAndNotOnTheMendedOne(t *testing.T) {
	traces := map[string][]*rc.Trace{}
	for _, tr := range under(t, "udp/history") {
		row, _, _ := strings.Cut(path.Base(tr.File), "-")
		traces[row] = append(traces[row], tr)
	}
	for _, row := range model.UDPHistory() {
		if row.Lives == "" {
			continue
		}
		shown := false
		for _, tr := range traces[row.ID] {
			lives, healed := violations(t, tr, row.Lives), violations(t, tr, row.Healed)
			for _, v := range lives {
				shown = shown || !slices.Contains(healed, v)
			}
		}
		if !shown {
			t.Errorf("row %s: none of %d traces shows on %s what it does not show on %s", row.ID, len(traces[row.ID]), row.Lives, row.Healed)
		}
		delete(traces, row.ID)
	}
	for row := range traces {
		t.Errorf("row %s has traces and is in no list", row)
	}
}

func TestAWrongUDPTraceStatesADivergenceAndItsRightOneNone(t *testing.T) {
	right := map[string]*rc.Trace{}
	all := under(t, "udp/history")
	ops := func(tr *rc.Trace) (s []string) {
		for i := range tr.Steps {
			s = append(s, tr.Steps[i].Op.Text(tr.Name))
		}
		return s
	}
	for _, tr := range all {
		if n, ok := strings.CutSuffix(tr.File, "-right.trace"); ok {
			right[n] = tr
			if tr.Diverges() {
				t.Errorf("%s states a divergence", tr.File)
			}
		}
	}
	for _, tr := range all {
		n, ok := strings.CutSuffix(tr.File, "-wrong.trace")
		if !ok {
			continue
		}
		if !tr.Diverges() {
			t.Errorf("%s states no divergence", tr.File)
		}
		if right[n] == nil {
			t.Errorf("%s has no right counterpart", tr.File)
		} else if d := cmp.Diff(ops(tr), ops(right[n])); d != "" {
			t.Errorf("%s and its right counterpart are not the same steps (-wrong +right):\n%s", tr.File, d)
		}
	}
}
