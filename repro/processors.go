package repro

import (
	"slices"

	"github.com/reusecheck/reusecheck"
)

// withProcessors are the formats whose programs choose the processor that they
// run on.
var withProcessors = []string{"c", "python", "go"}

// processors refuses the first step that is about a processor, in a format that
// has none.
func processors(t *reusecheck.Trace, format string) error {
	if slices.Contains(withProcessors, format) {
		return nil
	}
	for i := range t.Steps {
		if s := &t.Steps[i]; ofProcessor(&s.Op) {
			return &Inexpressible{Format: format, Line: s.Line, Step: s.Text(t.Name), Why: "the program does not choose a processor"}
		}
	}
	return nil
}

func ofProcessor(op *reusecheck.Op) bool {
	return op.CPU != reusecheck.NoCPU || op.Field == reusecheck.SetCPU
}

// onProcessors reports whether it matters on which processor a trace's program runs.
func onProcessors(t *reusecheck.Trace) bool {
	return slices.ContainsFunc(t.Steps, func(s reusecheck.Step) bool { return ofProcessor(&s.Op) })
}
