package bench

import (
	"context"
	"path"
	"runtime"
	"strings"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// Recall is what a default search made of a known bug that lives in a model.
type Recall struct {
	Row model.Row
	// Finding shows on the kernel that has the bug and not on the healed one;
	// nil when the search made none.
	Finding *shrink.Finding
	Checks  int // histories tried until then, all of them when there is none
	// Own is the number of steps of the shortest trace that the corpus tells
	// the bug's history with, 0 when it has none.
	Own int
}

// Steps is the number of steps of the finding's trace.
func (r *Recall) Steps() int { return steps(r.Finding.Trace) }

// steps counts the steps of a trace but for its socket lines.
func steps(t *reusecheck.Trace) int {
	n := 0
	for i := range t.Steps {
		if t.Steps[i].Op.Verb != reusecheck.VSocket {
			n++
		}
	}
	return n
}

// Recover runs the search that checker check runs by default on the kernel in
// which a bug lives, until it makes a finding that the healed kernel does not show.
func Recover(ctx context.Context, row model.Row) (*Recall, error) {
	lives, err := model.Parse(row.Lives)
	if err != nil {
		return nil, err
	}
	healed, err := model.Parse(row.Healed)
	if err != nil {
		return nil, err
	}
	r := &Recall{Row: row}
	if r.Own, err = own(row, lives, healed); err != nil {
		return nil, err
	}
	stack := func() (reusecheck.Stack, error) { return lives.New(), nil }
	control := spec.NewMachine(spec.TCP, healed.New())
	search := &spec.Search{System: spec.TCP, Stack: stack, Seed: 1, Checks: spec.DefaultChecks, Workers: runtime.GOMAXPROCS(0)}
	finder := &shrink.Finder{System: spec.TCP, Stack: stack}
	stats, err := shrink.Hunt(ctx, search, finder, func(n *shrink.Finding) bool {
		if control.Shows(n.Trace, n.Violation) >= 0 {
			return true
		}
		if r.Finding == nil || steps(n.Trace) < r.Steps() {
			if r.Finding == nil {
				r.Checks = n.History + 1
			}
			r.Finding = n
		}
		return r.Own > 0 && r.Steps() > r.Own // a shorter one may come yet
	})
	if r.Finding == nil {
		r.Checks = stats.Histories
	}
	return r, err
}

// own is the length of the corpus's shortest trace of a row that the two
// kernels answer differently.
func own(row model.Row, lives, healed *model.Profile) (int, error) {
	ts, err := corpus.Under("tcp/history")
	if err != nil {
		return 0, err
	}
	shortest := 0
	for _, t := range ts {
		if !strings.HasPrefix(path.Base(t.File), strings.Repeat("0", 2-min(2, len(row.ID)))+row.ID+"-") || same(t, lives, healed) {
			continue
		}
		if n := steps(t); shortest == 0 || n < shortest {
			shortest = n
		}
	}
	return shortest, nil
}

// same reports whether two kernels answer a trace alike, paths and caches
// included.
func same(t *reusecheck.Trace, a, b *model.Profile) bool {
	x, y := a.New(), b.New()
	if x.Reset(t.Config) != nil || y.Reset(t.Config) != nil {
		return true
	}
	for i := range t.Steps {
		p, err1 := x.DoAs(t.Steps[i].Op, t.Steps[i].Want)
		q, err2 := y.DoAs(t.Steps[i].Op, t.Steps[i].Want)
		if err1 != nil || err2 != nil {
			return true
		}
		if p.Answer != q.Answer || p.Path != q.Path || p.Visited != q.Visited || p.After.WithoutKey() != q.After.WithoutKey() {
			return false
		}
	}
	return true
}
