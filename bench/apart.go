package bench

import (
	"cmp"
	"context"
	"runtime"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// beyond are the bugs that no random history is long enough for, with the reason.
var beyond = map[string]string{
	"36": "a reuseport group grows at 129 sockets, a random history has 32 steps; exploration finds it (recall.md)",
}

// Beyond is why the row is not looked for by random histories, "" where it is.
func (r *SystemRow) Beyond() string { return beyond[r.ID] }

// apart looks again where the healed kernel shows what the search found too: the
// violation that the bug makes has the name of another one. The failing histories
// themselves are compared, before they are shrunk, and shrinking keeps to those
// that the healed kernel gets right.
func (r *Recall) apart(ctx context.Context, lives func() (reusecheck.Stack, error), control *spec.Machine) error {
	sys := r.Row.System
	stack, err := lives()
	if err != nil {
		return err
	}
	machine := spec.NewMachine(sys, stack)
	differs := func(t *reusecheck.Trace, v spec.Violation) bool {
		return machine.Shows(t, v) >= 0 && control.Shows(t, v) < 0
	}
	search := &spec.Search{System: sys, Stack: lives, Seed: 1, Checks: spec.DefaultChecks, Workers: runtime.GOMAXPROCS(0)}
	var failed error
	stats, err := search.Run(ctx, func(f spec.Failure) bool {
		if !differs(f.Trace, f.Violation) {
			return true
		}
		small, report := shrink.Run(f.Trace, func(c *reusecheck.Trace) bool { return differs(c, f.Violation) }, shrink.Options{Context: ctx})
		if r.Finding, failed = shrink.Tell(machine, small, f.Violation); failed != nil {
			return false
		}
		r.Finding.History, r.Finding.Report = f.History, report
		r.Checks, r.Apart = f.History+1, true
		return r.Own > 0 && r.Steps() > r.Own // a shorter one may come yet
	})
	if r.Finding == nil {
		r.Checks = stats.Histories
	}
	return cmp.Or(err, failed)
}
