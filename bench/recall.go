package bench

import (
	"context"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// Recall is what a default search made of a known bug that lives in a model.
type Recall struct {
	Row SystemRow
	// Finding shows on the kernel that has the bug and not on the healed one;
	// nil when the search made none.
	Finding *shrink.Finding
	Checks  int // histories tried until then, all of them when there is none
	// Own is the number of steps of the shortest trace that the corpus tells
	// the bug's history with, 0 when it has none.
	Own int
	// Apart says that the finding has the name of one that the healed kernel has
	// too, and only its history tells them apart.
	Apart bool
}

// Steps is the number of steps of the finding's trace.
func (r *Recall) Steps() int { return Steps(r.Finding.Trace) }

// Steps counts the steps of a trace but for its socket and namespace lines.
func Steps(t *reusecheck.Trace) int {
	n := 0
	for i := range t.Steps {
		if v := t.Steps[i].Op.Verb; v != reusecheck.VSocket && v != reusecheck.VNetns {
			n++
		}
	}
	return n
}

// History lists the known bugs of every system, TCP's first.
func History() []SystemRow {
	var all []SystemRow
	for _, sys := range spec.Systems {
		for _, r := range model.HistoryOf(sys.Name) {
			all = append(all, SystemRow{r, sys})
		}
	}
	return all
}

// SystemRow is a known bug and the system that it is one of.
type SystemRow struct {
	model.Row
	System *spec.System
}

// Recover runs the search that checker check runs by default on the kernel in
// which a bug lives, until it makes a finding that the healed kernel does not show.
func Recover(ctx context.Context, row SystemRow) (*Recall, error) {
	lives, err := stacks(row.System, row.Lives)
	if err != nil {
		return nil, err
	}
	healed, err := stacks(row.System, row.Healed)
	if err != nil {
		return nil, err
	}
	r := &Recall{Row: row}
	if r.Own, err = own(row, lives, healed); err != nil {
		return nil, err
	}
	mended, err := healed()
	if err != nil {
		return nil, err
	}
	control := spec.NewMachine(row.System, mended)
	search := &spec.Search{System: row.System, Stack: lives, Seed: 1, Checks: spec.DefaultChecks, Workers: runtime.GOMAXPROCS(0)}
	finder := &shrink.Finder{System: row.System, Stack: lives}
	stats, err := shrink.Hunt(ctx, search, finder, func(n *shrink.Finding) bool {
		if control.Shows(n.Trace, n.Violation) >= 0 {
			return true
		}
		if r.Finding == nil || Steps(n.Trace) < r.Steps() {
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
	if r.Finding == nil && err == nil && ctx.Err() == nil {
		err = r.apart(ctx, lives, control)
	}
	return r, err
}

// stacks makes stacks of one system of a kernel.
func stacks(sys *spec.System, kernel string) (func() (reusecheck.Stack, error), error) {
	p, err := model.ParseOf(sys.Name, kernel)
	if err != nil {
		return nil, err
	}
	return func() (reusecheck.Stack, error) { return p.Stack(sys.Name) }, nil
}

// own is the length of the corpus's shortest trace of a row that the two
// kernels answer differently.
func own(row SystemRow, lives, healed func() (reusecheck.Stack, error)) (int, error) {
	ts, err := corpus.Under(string(row.System.Name) + "/history")
	if err != nil {
		return 0, err
	}
	shortest := 0
	for _, t := range ts {
		if !strings.HasPrefix(path.Base(t.File), strings.Repeat("0", 2-min(2, len(row.ID)))+row.ID+"-") || same(t, lives, healed) {
			continue
		}
		if n := Steps(t); shortest == 0 || n < shortest {
			shortest = n
		}
	}
	return shortest, nil
}

// same reports whether two kernels answer a trace alike, paths, caches and
// look-ups included.
func same(t *reusecheck.Trace, a, b func() (reusecheck.Stack, error)) bool {
	x, y := play(t, a), play(t, b)
	return x == nil || y == nil || slices.EqualFunc(x, y, alike)
}

// play gives a trace's results on a kernel, nil when it cannot run there.
func play(t *reusecheck.Trace, stack func() (reusecheck.Stack, error)) (rs []reusecheck.Result) {
	s, err := stack()
	if err != nil || s.Reset(t.Config) != nil {
		return nil
	}
	c, ok := s.(reusecheck.Chooser)
	for i := range t.Steps {
		var r reusecheck.Result
		if ok {
			r, err = c.DoAs(t.Steps[i].Op, t.Steps[i].Want)
		} else {
			r, err = s.Do(t.Steps[i].Op)
		}
		if err != nil {
			return nil
		}
		if l := r.Lookup; l != nil { // it is valid until the next step
			r.Lookup = &reusecheck.Lookup{Table: l.Table, Compared: l.Compared, Could: slices.Clone(l.Could), Scored: slices.Clone(l.Scored)}
		}
		rs = append(rs, r)
	}
	return rs
}

func alike(p, q reusecheck.Result) bool {
	looked := p.Lookup == nil && q.Lookup == nil ||
		p.Lookup != nil && q.Lookup != nil && p.Lookup.Table == q.Lookup.Table && slices.Equal(p.Lookup.Could, q.Lookup.Could)
	return p.Answer == q.Answer && p.Path == q.Path && p.Visited == q.Visited && looked && p.After.WithoutKey() == q.After.WithoutKey()
}
