package matrix

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

// Kernel is a stack to fill a matrix from.
type Kernel struct {
	Name    string
	Answers reusecheck.KernelSet // what its traces state in their header
	Stack   reusecheck.Stack
}

// Fill runs every pair of kinds on every kernel, the oracle beside it. With
// running the first kernel is the machine's own and the second its model, to
// which its answers, and its caches where it shows them, are held. After each
// cell progress is told how many are done of how many; it may be nil. The error
// is a stack's that failed, or the context's; what a stack cannot test is noted
// in its cells.
func Fill(ctx context.Context, kinds []Kind, kernels []Kernel, running bool, progress func(done, all int)) (*Matrix, error) {
	sys := spec.Default
	if len(kinds) > 0 {
		sys = spec.OfFamily(kinds[0].Family)
	}
	m := &Matrix{System: sys.Name, Running: running, Kinds: kinds, Columns: columns(kinds)}
	var machines []*spec.Machine
	for _, k := range kernels {
		m.Kernels = append(m.Kernels, k.Name)
		machines = append(machines, spec.NewMachine(sys, k.Stack))
	}
	all := len(m.Kinds) * len(m.Columns)
	for first := range m.Kinds {
		for _, second := range m.Columns {
			c := Cell{First: first, Second: second}
			for i, k := range kernels {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				p := pair{machine: machines[i], trace: reusecheck.Trace{Kernels: k.Answers, Config: reusecheck.Config{System: m.System}}}
				if err := p.run(kinds[first], kinds[second].second()); err != nil {
					return nil, fmt.Errorf("row %d, column %d on %s: %w", first+1, second+1, k.Name, err)
				}
				c.Outcomes = append(c.Outcomes, p.out)
			}
			m.compare(&c)
			m.Cells = append(m.Cells, c)
			if progress != nil {
				progress(len(m.Cells), all)
			}
		}
	}
	return m, nil
}

// pair runs one cell on one kernel.
type pair struct {
	machine *spec.Machine
	trace   reusecheck.Trace
	out     Outcome
}

// The two sockets of a pair.
const (
	firstID reusecheck.ID = iota
	secondID
)

func (p *pair) run(first, second Kind) error {
	p.trace.Names = []string{firstID.String(), secondID.String()}
	err := p.play(first, second)
	if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
		p.out.Skipped, p.out.Bind, p.out.Listen, err = lacks.Error(), nil, nil, nil
	}
	if len(p.trace.Steps) == 0 || p.trace.Steps[len(p.trace.Steps)-1].Op.Sock == firstID {
		p.trace.Names = p.trace.Names[:1]
	}
	p.out.Trace = p.trace.String()
	return err
}

func (p *pair) play(first, second Kind) error {
	if err := p.machine.Reset(p.trace.Config); err != nil {
		return err
	}
	for _, op := range first.ops(firstID) {
		o, _, err := p.step(op)
		if err != nil {
			return err
		}
		if o.Got.Kind != reusecheck.OK {
			p.out.Alone = fmt.Sprintf("the first socket cannot be made: its %s is answered %s", op.Verb, o.Got.Answer)
			return nil
		}
	}
	var err error
	ops := second.ops(secondID)
	if _, _, err = p.step(ops[0]); err != nil {
		return err
	}
	if p.out.Bind, err = p.ask(ops[1]); err != nil || !p.out.Bind.Granted() || second.Family.IsUDP() {
		return err
	}
	p.out.Listen, err = p.ask(reusecheck.Listen(secondID))
	return err
}

// step performs an operation, and writes it down with its answers.
func (p *pair) step(op reusecheck.Op) (*spec.Observation, []spec.Violation, error) {
	o, found, err := p.machine.Step(op)
	if err != nil {
		return nil, nil, err
	}
	s := reusecheck.Step{Op: op, Want: o.Got.Answer}
	if diverges(o) {
		s.Oracle = o.Verdict.Want
	}
	p.trace.Steps = append(p.trace.Steps, s)
	return o, found, nil
}

func diverges(o *spec.Observation) bool { return o.Verdict.Open == "" && !o.Verdict.Agrees }

// ask performs a request of the second socket.
func (p *pair) ask(op reusecheck.Op) (*Asked, error) {
	o, found, err := p.step(op)
	if err != nil {
		return nil, err
	}
	a := &Asked{
		Answer: o.Got.Answer.String(), Oracle: o.Verdict.Want.String(), Open: o.Verdict.Open, Diverges: diverges(o),
		Path: o.Got.Path.String(), Visited: o.Got.Visited, result: o.Got,
	}
	if o.Got.HasCache && o.Got.After.Exists {
		a.Cache = o.Got.After.Short()
	}
	a.Owner, a.Rule = decided(o)
	a.Words = a.sentence(op.Verb)
	for _, v := range found {
		a.Notes = append(a.Notes, v.Property+": "+spec.Sentence(o, v))
	}
	return a, nil
}

// decided names the owner and the rule: the stack's own, or where it does not
// say the oracle's, if the two agree.
func decided(o *spec.Observation) (owner, rule string) {
	if o.Got.Reason != reusecheck.ReasonNone {
		if o.Got.Decider != reusecheck.NoID && o.Got.Path != reusecheck.PathUnknown {
			owner = o.Got.Decider.String()
		}
		return owner, o.Got.Reason.String()
	}
	var against []oracle.Conflict
	if o.Verdict.Agrees && o.Got.Kind == reusecheck.Failed {
		against = o.Verdict.Conflicts
	}
	if len(against) == 0 {
		return "", ""
	}
	return against[0].Owner.String(), against[0].Reason.String()
}

// sentence says what was asked, what came and why.
func (a *Asked) sentence(v reusecheck.Verb) string {
	var b strings.Builder
	if a.Granted() {
		fmt.Fprintf(&b, "The %s is granted", v)
	} else {
		fmt.Fprintf(&b, "The %s is refused with %s", v, a.Answer)
	}
	switch a.Path {
	case reusecheck.PathFast.String():
		b.WriteString(" by the cache, without a look at any owner")
	case reusecheck.PathScan.String():
		fmt.Fprintf(&b, " after a look at the owners (%d visited)", a.Visited)
	}
	switch {
	case a.Owner != "" && a.Rule != "":
		fmt.Fprintf(&b, "; what decides is %s: %s", a.Owner, a.Rule)
	case a.Rule != "":
		b.WriteString(": " + a.Rule)
	}
	b.WriteString(".")
	switch {
	case a.Diverges:
		fmt.Fprintf(&b, " A look at every owner gives %s: this is a divergence.", a.Oracle)
	case a.Open != "":
		fmt.Fprintf(&b, " The documents leave this open: %s.", a.Open)
	}
	return b.String()
}
