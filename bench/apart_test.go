package bench

import (
	"context"
	"slices"
	"testing"

	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func TestABugWhoseFindingTheHealedKernelMakesTooIsFoundByItsHistory(t *testing.T) {
	rows := History()
	row := rows[slices.IndexFunc(rows, func(r SystemRow) bool { return r.ID == "34" })]
	lives, err := stacks(row.System, row.Lives)
	if err != nil {
		t.Fatal(err)
	}
	control := spec.NewMachine(row.System, model.MustParse(row.Healed).NewUDP())
	r := &Recall{Row: row}
	if err := r.apart(context.Background(), lives, control); err != nil {
		t.Fatal(err)
	}
	f := r.Finding
	if f == nil || !r.Apart || r.Steps() != 3 || f.Sentence == "" || control.Shows(f.Trace, f.Violation) >= 0 {
		t.Fatalf("%+v", r)
	}
	s, err := lives()
	if err != nil {
		t.Fatal(err)
	}
	if at := spec.NewMachine(row.System, s).Shows(f.Trace, f.Violation); at != len(f.Trace.Steps)-1 {
		t.Errorf("shown at step %d of\n%s", at+1, f.Trace)
	}
}
