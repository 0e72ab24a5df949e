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
	sys := system(tr)
	p, err := model.ParseOf(sys.Name, kernel)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Stack(sys.Name)
	if err != nil {
		t.Fatal(err)
	}
	err = spec.NewMachine(sys, s).Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
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

// limits are what STRICT lets past by design: it has traces and is in no list of bugs.
var limits = []model.Row{
	{ID: "L1", Lives: "6.18", Healed: "6.18+exact-strict-match"},
	{ID: "L2", Lives: "6.18", Healed: "6.18+exact-strict-match"},
	{ID: "L3", Lives: "6.18", Healed: "6.18+exact-strict-match"},
	{ID: "L4", Lives: "6.18", Healed: "6.18+exact-strict-match"},
}

// untold are the rows whose traces the two kernels do not differ on, with the reason.
var untold = map[string]string{
	"1":  "4.9 too shares automatic ports as a last resort: its traces are held to later kernels",
	"24": "its traces are those of tcp/kunit",
}

func TestEachBugShowsOnTheKernelThatHasItAndNotOnTheMendedOne(t *testing.T) {
	for _, sys := range spec.Systems {
		traces := map[string][]*rc.Trace{}
		for _, tr := range under(t, string(sys.Name)+"/history") {
			row, _, _ := strings.Cut(path.Base(tr.File), "-")
			row = strings.TrimLeft(row, "0")
			traces[row] = append(traces[row], tr)
		}
		rows := model.HistoryOf(sys.Name)
		if sys == spec.TCP {
			rows = append(rows, limits...)
		}
		for _, row := range rows {
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
			if seen == (untold[row.ID] != "") {
				t.Errorf("%s, row %s: one of %d traces shows on %s what it does not show on %s: %t", sys.Name, row.ID, len(traces[row.ID]), row.Lives, row.Healed, seen)
			}
			delete(traces, row.ID)
		}
		for row := range traces {
			t.Errorf("%s, row %s has traces and is in no list", sys.Name, row)
		}
	}
}

// stillWrong is a right trace that is wrong on its way: while the explicit binder
// is there.
const stillWrong = "tcp/history/22-closed-to-connect-right.trace"

func TestAWrongTraceStatesADivergenceAndItsRightOneNone(t *testing.T) {
	ops := func(tr *rc.Trace) (s []string) {
		for i := range tr.Steps {
			s = append(s, tr.Steps[i].Op.Text(tr.Name))
		}
		return s
	}
	for _, sys := range spec.Systems {
		all := under(t, string(sys.Name)+"/history")
		right := map[string]*rc.Trace{}
		for _, tr := range all {
			if n, ok := strings.CutSuffix(tr.File, "-right.trace"); ok {
				right[n] = tr
				if last := tr.Steps[len(tr.Steps)-1]; last.Oracle.Kind != rc.Unstated || tr.Diverges() && tr.File != stillWrong {
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
}
