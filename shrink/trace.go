package shrink

import (
	"context"
	"errors"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// ErrNothing is why a trace cannot be shrunk that shows no violation.
var ErrNothing = errors.New("the trace shows no violation, so that there is nothing to shrink")

// FromTrace shrinks what a trace shows of the given properties: the first
// violation that leaves the stack in a state that the oracle would not have let
// it reach, else the first of all.
func (f *Finder) FromTrace(ctx context.Context, t *reusecheck.Trace, props []*spec.Property) (*Finding, error) {
	s, err := f.Stack()
	if err != nil {
		return nil, err
	}
	var v spec.Violation
	err = spec.NewMachine(f.System, s, props...).Replay(t, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		if len(found) > 0 && (v.Property == "" || o.Diverged()) {
			v = found[0]
		}
		return !o.Diverged()
	})
	if err != nil {
		return nil, err
	}
	if v.Property == "" {
		return nil, ErrNothing
	}
	return f.Shrink(ctx, t, v)
}
