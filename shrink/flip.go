package shrink

import (
	"context"
	"fmt"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// FlipFinding is a flip of a kernel that is held to itself, shrunk.
type FlipFinding struct {
	Flip *spec.Flip
	// Violation is what the oracle says of the step, to tell flips apart; its
	// Property is "" where the oracle agrees with the kernel's first answer.
	Violation spec.Violation
	// CrossesUsers says that the step lets a socket in over another user's.
	CrossesUsers bool
	Report       Report
}

// How says what was different when the step was asked again.
func (n *FlipFinding) How() string {
	if n.Flip.How == "reset" {
		return "after a plain bind elsewhere on the port"
	}
	return n.Flip.How
}

// Sentence says what a flip means.
func (n *FlipFinding) Sentence() string {
	t := n.Flip.Trace
	first, again := n.Flip.Answers()
	why := "which empties the cache and stands against nobody"
	if n.Flip.How != "reset" {
		why = "and fewer owners cannot turn a grant into a refusal"
	}
	return fmt.Sprintf("%q is answered %s, but %s %s, %s: the first answer is the cache's, not the owners'.",
		t.Steps[len(t.Steps)-1].Op.Text(t.Name), first.Text(t.Name), again.Text(t.Name), n.How(), why)
}

// FlipFinder turns flips into distinct findings. What makes them distinct is
// what the oracle says of the step, which the search itself does not ask.
type FlipFinder struct {
	Self    *spec.Self
	Kernels reusecheck.KernelSet // stated in the traces, when given

	machine *spec.Machine
	known   []*FlipFinding
}

// Find shrinks a flip; nil when that leads to one already known, or is bound to.
func (f *FlipFinder) Find(ctx context.Context, flip *spec.Flip) (*FlipFinding, error) {
	if f.machine == nil {
		f.machine = spec.NewMachine(f.Self.System, f.Self.Kernel)
	}
	v := f.judge(flip.Trace).violation
	for _, k := range f.known {
		if alike(k.Violation, v) {
			return nil, nil
		}
	}
	first, again := flip.Answers()
	shows := func(t *reusecheck.Trace) *spec.Flip {
		n, err := f.Self.Shows(t)
		if err != nil || n == nil {
			return nil
		}
		if a, b := n.Answers(); a != first || b != again || !alike(f.judge(n.Trace).violation, v) {
			return nil
		}
		return n
	}
	// Pairs of moves are left out: a kernel answers a thousand times more
	// slowly than a model.
	small, report := Run(flip.Trace, func(t *reusecheck.Trace) bool { return shows(t) != nil }, Options{Context: ctx, MaxPairs: -1})
	n := &FlipFinding{Flip: flip, Violation: v, Report: report}
	if again := shows(small); again != nil {
		again.History = flip.History
		n.Flip = again
	}
	n.Flip.Trace.Kernels = f.Kernels
	judged := f.judge(n.Flip.Trace)
	n.Violation, n.CrossesUsers = judged.violation, judged.crosses
	// A program of the trace has to know which of the two answers is wrong.
	for _, t := range []*reusecheck.Trace{n.Flip.Trace, n.Flip.Control} {
		t.Steps[len(t.Steps)-1].Oracle = f.judge(t).instead
	}
	for _, k := range f.known {
		if k.Flip.Trace.String() == n.Flip.Trace.String() {
			return nil, nil
		}
	}
	f.known = append(f.known, n)
	return n, nil
}

// alike reports whether v is the known w, perhaps in more circumstances.
func alike(w, v spec.Violation) bool {
	if w.Property == "" || v.Property == "" {
		return w.Property == v.Property
	}
	return w.Same(v)
}

type judgement struct {
	violation spec.Violation
	crosses   bool
	instead   reusecheck.Answer // the oracle's, where it is another one
}

// judge asks the oracle about a trace's last step.
func (f *FlipFinder) judge(t *reusecheck.Trace) judgement {
	var j judgement
	_ = f.machine.Replay(t, func(i int, o *spec.Observation, found []spec.Violation) bool {
		if i < len(t.Steps)-1 {
			return true
		}
		if len(found) > 0 {
			j.violation = found[0]
		}
		if !o.Verdict.Agrees {
			j.instead = o.Verdict.Want
		}
		s := o.Socket(o.Op.Sock)
		for _, c := range o.Verdict.Conflicts {
			if own := o.Socket(c.Owner); own != nil && s != nil && own.UID != s.UID && o.Got.Kind == reusecheck.OK {
				j.crosses = true
			}
		}
		return false
	})
	return j
}
