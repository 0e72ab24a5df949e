package explore

import (
	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Judge plays histories on a whole stack with the whole oracle, as a random
// search does, and says what their last steps violate.
type Judge struct {
	machine *spec.Machine
	n       int
}

// NewJudge judges by the given properties, all of spec.TCP's for none.
func NewJudge(kernel *model.Profile, props []*spec.Property) *Judge {
	return JudgeOf(packed, kernel.New(), props)
}

// JudgeOf judges a stack of any system.
func JudgeOf(sys *spec.System, stack rc.Stack, props []*spec.Property) *Judge {
	return &Judge{machine: spec.NewMachine(sys, stack, props...)}
}

// Failures are the violations that a history ends with. It fills in the answers
// of the history's trace.
func (j *Judge) Failures(h *History) ([]spec.Failure, error) {
	told := &rc.Trace{Config: h.Trace.Config, Names: h.Trace.Names}
	var fails []spec.Failure
	j.n++
	err := j.machine.Replay(h.Trace, func(i int, o *spec.Observation, found []spec.Violation) bool {
		spec.Append(told, o.Op, o)
		if i == len(h.Trace.Steps)-1 {
			for _, v := range found {
				fails = append(fails, spec.Failure{History: j.n - 1, Violation: v, Trace: told})
			}
		}
		return true
	})
	h.Trace = told
	return fails, err
}
