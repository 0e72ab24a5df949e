package explain

import (
	"context"
	"errors"
	"fmt"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Story is a trace as it went on one kernel.
type Story struct {
	Trace  *rc.Trace
	Kernel string // the modelled kernel's name
	Steps  []Step
	// Elsewhere says on which other modelled kernels the steps were answered
	// otherwise, one sentence each; Same are those on which all were alike.
	Elsewhere []string
	Same      []string
}

// Step is what is told of one step. The names of sockets are the trace's.
type Step struct {
	Line   int    `json:"line,omitempty"` // in the trace's file, 0 for none
	Number int    `json:"step"`           // from 1
	Op     string `json:"op"`
	Result string `json:"result"`
	Oracle string `json:"oracle"`
	Open   string `json:"open,omitempty"` // why the oracle does not judge

	Refused  bool `json:"refused"`
	Diverges bool `json:"diverges"`

	Path     string   `json:"path"`
	Port     uint16   `json:"port,omitempty"`    // that owners were asked about
	Owners   []string `json:"owners,omitempty"`  // of the port, before the step
	Looked   []string `json:"looked,omitempty"`  // at these, in order
	Skipped  []string `json:"skipped,omitempty"` // the others
	Decider  string   `json:"decider,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	InTheWay []string `json:"in_the_way,omitempty"` // by the oracle
	Before   string   `json:"cache_before,omitempty"`
	After    string   `json:"cache_after,omitempty"`

	// Why is the reason for a refusal in one clause, Text the paragraph, by sentences.
	Why  string   `json:"why,omitempty"`
	Text []string `json:"text"`

	// Remedies are changes that make a refused step succeed, the smallest
	// first; Tried is how many changes were tried.
	Remedies []Remedy `json:"remedies,omitempty"`
	Tried    int      `json:"tried,omitempty"`

	answer, oracle rc.Answer
}

// watcher is a stack that can say which owners it looked at.
type watcher interface {
	Watch()
	Looked() []rc.ID
}

// bucketed is a stack that can show a port's address buckets.
type bucketed interface {
	AddrBuckets(port uint16) []model.AddrBucket
}

// Tell replays a trace on a modelled kernel and tells its story. The error is a
// [*rc.Unsupported] for what the kernel's model or the oracle does not have.
func Tell(ctx context.Context, t *rc.Trace, kernel *model.Profile) (*Story, error) {
	sys, err := spec.SystemOf(t)
	if err != nil {
		return nil, err
	}
	stack, err := kernel.Stack(sys.Name)
	if err != nil {
		return nil, err
	}
	w, _ := stack.(watcher)
	if w != nil {
		w.Watch()
	}
	buckets, _ := stack.(bucketed)
	m := spec.NewMachine(sys, stack)
	if err := m.Reset(t.Config); err != nil {
		return nil, err
	}
	st := &Story{Trace: t, Kernel: kernel.String()}
	told := &teller{t: t, buckets: buckets, once: map[string]bool{}, nets: netsOf(t)}
	var wayed []wayed
	for i := range t.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		told.layOut(m.Live(), t.Steps[i].Op)
		o, found, err := m.StepAs(t.Steps[i].Op, t.Steps[i].Want)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(t, i), err)
		}
		o.Names = t.Name
		if w != nil {
			told.looked = w.Looked()
		}
		st.Steps = append(st.Steps, told.step(i, o, found))
		if st.Steps[i].Refused {
			wayed = append(wayed, inTheWay(i, o))
		}
	}
	if err := st.remedy(ctx, sys, kernel, wayed); err != nil {
		return nil, err
	}
	return st, st.compare(ctx, sys, kernel)
}

func place(t *rc.Trace, i int) string {
	if n := t.Steps[i].Line; n > 0 {
		return fmt.Sprintf("%s:%d", t.File, n)
	}
	return fmt.Sprintf("step %d", i+1)
}

// Stated is the trace with the answers that it got, those of the oracle where they differ.
func (s *Story) Stated() *rc.Trace {
	t := s.Trace.Clone()
	for i := range t.Steps {
		t.Steps[i].Want, t.Steps[i].Oracle = s.Steps[i].answer, rc.Answer{}
		if s.Steps[i].Diverges {
			t.Steps[i].Oracle = s.Steps[i].oracle
		}
	}
	return t
}

// LastRefused is the index of the last step that was refused, -1 for none.
func (s *Story) LastRefused() int {
	for i := len(s.Steps) - 1; i >= 0; i-- {
		if s.Steps[i].Refused {
			return i
		}
	}
	return -1
}

// compare replays the trace on the other modelled kernels.
func (s *Story) compare(ctx context.Context, sys *spec.System, kernel *model.Profile) error {
	type difference struct {
		step   int
		answer string
	}
	var order []difference
	where := map[difference][]string{}
	for _, g := range model.GenerationsOf(sys.Name) {
		if g.Name == kernel.String() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		d := difference{step: -1}
		p, err := model.ParseOf(sys.Name, g.Name)
		if err != nil {
			return err
		}
		answers, err := answersOf(s, sys, p)
		for i := range answers {
			if d.step < 0 && answers[i] != s.Steps[i].answer {
				d = difference{i, answers[i].Text(s.Trace.Name)}
			}
		}
		if lacks := (*rc.Unsupported)(nil); err != nil && errors.As(err, &lacks) && d.step < 0 {
			continue // nothing can be said
		} else if err != nil && d.step < 0 {
			return err
		}
		if d.step < 0 {
			s.Same = append(s.Same, g.Name)
			continue
		}
		if where[d] == nil {
			order = append(order, d)
		}
		where[d] = append(where[d], g.Name)
	}
	for _, d := range order {
		s.Elsewhere = append(s.Elsewhere, fmt.Sprintf("On %s step %d, %q, is answered %s instead of %s.",
			listed(where[d], len(where[d])), d.step+1, s.Steps[d.step].Op, d.answer, s.Steps[d.step].Result))
	}
	return nil
}

// answersOf are the answers that another kernel gives, up to the first that it
// cannot give. Where it may choose, it chooses as the story's kernel did.
func answersOf(s *Story, sys *spec.System, p *model.Profile) ([]rc.Answer, error) {
	stack, err := p.Stack(sys.Name)
	if err != nil {
		return nil, err
	}
	if err := stack.Reset(s.Trace.Config); err != nil {
		return nil, err
	}
	chooser, _ := stack.(rc.Chooser)
	var as []rc.Answer
	for i := range s.Trace.Steps {
		var r rc.Result
		if op := s.Trace.Steps[i].Op; chooser != nil {
			r, err = chooser.DoAs(op, s.Steps[i].answer)
		} else {
			r, err = stack.Do(op)
		}
		if err != nil {
			return as, err
		}
		as = append(as, r.Answer)
	}
	return as, nil
}
