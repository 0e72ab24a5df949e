package explain

import (
	"context"
	"slices"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Remedy is a change of a trace with which a refused step succeeds. It was
// replayed: every earlier step keeps its answer
// (an automatic port may be another one), nothing that succeeded later fails,
// and the oracle agrees with the grant. Other tries of the refused step are left
// out where they would be in the way: with the change they would be the ones to succeed.
type Remedy struct {
	Text  string   `json:"text"`
	Lines []string `json:"lines,omitempty"` // the steps that are new or changed
	Size  int      `json:"size"`            // how many things change
	Trace string   `json:"trace"`           // the changed trace, with its answers
}

// Bounds of the search: a story ends in time whatever its trace is.
const (
	mostReplayed = 600_000 // steps, over all candidates of a story
	mostInvolved = 6       // sockets that are changed
	mostRemedies = 5
)

// wayed is a refused step with those who are in its way.
type wayed struct {
	step     int
	involved []rc.ID // the one that asks first
	reason   rc.Reason
}

// inTheWay notes the sockets that a refused step is about: the one that asks, the
// one that decided, those that the oracle names, and the other owners of the port.
func inTheWay(i int, o *spec.Observation) wayed {
	w := wayed{step: i, reason: o.Got.Reason}
	add := func(id rc.ID) {
		if id >= 0 && !slices.Contains(w.involved, id) && len(w.involved) < mostInvolved {
			w.involved = append(w.involved, id)
		}
	}
	add(o.Op.Sock)
	add(o.Got.Decider)
	for _, c := range o.Verdict.Conflicts {
		add(c.Owner)
	}
	port := portOf(o.Before, o.Op)
	for j := range o.Before {
		if p := o.Before[j].Local.Port(); p != 0 && (p == port || port == 0) {
			add(o.Before[j].ID)
		}
	}
	return w
}

// remedy looks for what would make the refused steps succeed, the last one first.
func (s *Story) remedy(ctx context.Context, sys *spec.System, kernel *model.Profile, refused []wayed) error {
	left := mostReplayed
	for _, w := range slices.Backward(refused) {
		step := &s.Steps[w.step]
		best := map[kind]int{} // size of the smallest of each kind
		count := map[kind]int{}
		retried := slices.ContainsFunc(s.Steps[:w.step], func(o Step) bool { return s.otherTry(o.Number-1, w.step) })
		for _, c := range candidates(s.Trace, w) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if n, ok := best[c.kind]; ok && (c.size > n || count[c.kind] >= mostOf(c.kind)) || len(step.Remedies) == mostRemedies {
				continue
			}
			if left -= len(c.steps); left < 0 {
				break
			}
			step.Tried++
			t, ok := s.helps(sys, kernel, w.step, c, false)
			if !ok && retried {
				t, ok = s.helps(sys, kernel, w.step, c, true)
			}
			if !ok {
				continue
			}
			best[c.kind] = c.size
			count[c.kind]++
			step.Remedies = append(step.Remedies, Remedy{Text: c.text, Lines: c.lines, Size: c.size, Trace: t.String()})
		}
	}
	return nil
}

func mostOf(k kind) int {
	if k == byOptions || k == byOrder {
		return 2
	}
	return 1
}

// otherTry reports whether a step is another try of the refused one: a later one, or
// one before that was refused too.
func (s *Story) otherTry(i, target int) bool {
	a, b := &s.Trace.Steps[i].Op, &s.Trace.Steps[target].Op
	return i != target && a.Verb == b.Verb && a.Sock == b.Sock && (i > target || s.Steps[i].Refused)
}

// helps replays a candidate and holds it to what a [Remedy] promises, with or
// without the tries before.
func (s *Story) helps(sys *spec.System, kernel *model.Profile, target int, c candidate, once bool) (*rc.Trace, bool) {
	t := &rc.Trace{Title: s.Trace.Title, Config: s.Trace.Config, Names: s.Trace.Names, File: s.Trace.File}
	if c.ports.Size() > 0 {
		t.Config.Ports = c.ports
	}
	steps := slices.DeleteFunc(slices.Clone(c.steps), func(x placed) bool {
		return x.was >= 0 && (once || x.was > target) && s.otherTry(x.was, target)
	})
	for _, x := range steps {
		t.Steps = append(t.Steps, rc.Step{Op: x.op})
	}
	if t.Validate() != nil {
		return nil, false
	}
	stack, err := kernel.Stack(sys.Name)
	if err != nil {
		return nil, false
	}
	m := spec.NewMachine(sys, stack)
	if m.Reset(t.Config) != nil {
		return nil, false
	}
	for i, x := range steps {
		var before rc.Answer
		agreed := true
		if x.was >= 0 && x.was != target {
			before, agreed = s.Steps[x.was].answer, !s.Steps[x.was].Diverges
		}
		o, _, err := m.StepAs(x.op, before)
		if err != nil || agreed && !o.Verdict.Agrees || !x.keeps(target, before, o) {
			return nil, false
		}
		t.Steps[i].Want = o.Got.Answer
		if !o.Verdict.Agrees {
			t.Steps[i].Oracle = o.Verdict.Want
		}
	}
	return t, true
}

// keeps reports whether a step of a changed trace is answered as it has to be, given
// its answer before the change.
func (x *placed) keeps(target int, before rc.Answer, o *spec.Observation) bool {
	switch got := o.Got.Answer; {
	case x.was == target:
		return got.Kind == rc.OK && o.Verdict.Open == ""
	case x.was < 0:
		return got.Kind == rc.OK
	case x.was < target:
		got.Port, before.Port = 0, 0 // an automatic port may be another one
		return got == before
	default:
		return before.Kind != rc.OK || got.Kind == rc.OK
	}
}
