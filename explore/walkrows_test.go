package explore

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// rowsWithoutWords are the known bugs of TCP that show only in worlds of which the
// states have no words.
var rowsWithoutWords = []struct {
	id, world      string
	sockets, depth int
}{
	{"1", "tcp4 addr=127.0.0.1 reuseaddr auto ports=8", 2, 2},
	{"27", "tcp4 addr=127.0.0.1 reuseport cpu=1 listen inherit rivals", 3, 5},
	{"E2", "tcp4 addr=0.0.0.0,127.0.0.1 reuseport uid=2 listen connect unaccepted ports=2", 3, 4},
}

func TestTheRowsThatTakePortsProcessorsOrQueuesAreFoundByAWalk(t *testing.T) {
	rows := map[string]model.Row{}
	for _, r := range model.History() {
		rows[r.ID] = r
	}
	shown := errors.New("shown")
	for _, c := range rowsWithoutWords {
		row := rows[c.id]
		healed := spec.NewMachine(spec.TCP, model.MustParse(row.Healed).New())
		w := walkOf(t, spec.TCP, row.Lives, c.world, c.sockets)
		w.Every, w.Properties = true, []*spec.Property{spec.Sound, spec.Complete}
		judge := NewJudge(model.MustParse(row.Lives), w.Properties)
		_, err := w.Run(context.Background(), func(h *History) error {
			fails, err := judge.Failures(h)
			for _, f := range fails {
				for i := range h.Trace.Steps {
					h.Trace.Steps[i].Want, h.Trace.Steps[i].Oracle = rc.Answer{}, rc.Answer{}
				}
				if healed.Shows(h.Trace, f.Violation) < 0 {
					if h.Depth != c.depth {
						t.Errorf("row %s: %d steps, not %d:\n%s", c.id, h.Depth, c.depth, h.Trace)
					}
					return shown
				}
			}
			return err
		})
		if !errors.Is(err, shown) {
			t.Errorf("row %s is not found: %v", c.id, err)
		}
		if why := Packable(spec.TCP, w.World); why == "" {
			t.Errorf("row %s needs no walk", c.id)
		}
		if _, err := search(t, row.Lives, c.world, c.sockets).begin(t.Context()); err == nil {
			t.Errorf("row %s: a world without words is taken for one with", c.id)
		}
	}
}

func TestAWalkLetsTheStackPickEveryPortThatItMay(t *testing.T) {
	w := walkOf(t, spec.TCP, "6.18", "tcp4 addr=127.0.0.1 auto connect ports=4", 1)
	w.Workers = 1
	got := map[string]bool{}
	w.watch = func(a *act, o *spec.Observation, _ []spec.Violation, _ stateKey) {
		if op := a.last(); len(a.ops) == 2 && (op.Addr.Port() == 0 || op.Addr.Port() == 40002) {
			got[op.Text(nil)+" => "+o.Got.Answer.String()] = true
		}
	}
	if _, err := w.Run(context.Background(), func(*History) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"bind a 127.0.0.1:40002 => ok":              true,
		"bind a 127.0.0.1:0 => ok 40001":            true, // the odd distances come first
		"bind a 127.0.0.1:0 => ok 40003":            true,
		"connect a 127.0.0.1:40002 => ECONNREFUSED": true,
		"connect a 127.0.0.1:40002 => ok 40002":     true, // it meets itself
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
