package spec

import (
	"errors"
	"fmt"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// Conformance is a system in which one stack is held to another: reference, a
// modelled kernel, stands in the oracle's place and answers every step beside
// the stack under test. A disagreement ends the history, and search, shrinking
// and reports work as they do for the system itself.
func Conformance(sys *System, reference func() (reusecheck.Stack, error)) (*System, error) {
	if _, err := reference(); err != nil {
		return nil, err
	}
	c := *sys
	c.Doc = "one stack held to another, step by step"
	c.Properties = []*Property{Agrees, SameCache, SameWaiting}
	c.Strict = true
	c.NewOracle = func() Oracle {
		s, err := reference()
		if err != nil {
			return &twin{failed: err}
		}
		t := &twin{stack: s}
		t.chooser, _ = s.(reusecheck.Chooser)
		t.inspect, _ = s.(reusecheck.Inspector)
		return t
	}
	return &c, nil
}

// Agrees is the property that two stacks answer alike.
var Agrees = &Property{
	Name: agreesName,
	Doc:  "The stack answers every step as the reference does; where the rules leave a choice, as the reference may.",
	Check: func(o *Observation) Violation {
		if o.Verdict.Agrees {
			return Violation{}
		}
		kind := fmt.Sprintf("%s: %s, not %s", o.Op.Verb, brief(o.Got.Answer), brief(o.Verdict.Want))
		return Violation{Property: agreesName, Kind: kind, Tags: reasonTag(o.Verdict.Reference.Reason)}
	},
}

// SameCache is the property that two stacks that show their caches keep them alike.
var SameCache = &Property{
	Name: cacheName,
	Doc:  "The port's cache is the reference's after every step, where the stack shows it; the key only while it means something.",
	Check: func(o *Observation) Violation {
		ref := o.Verdict.Reference
		if !o.Verdict.Agrees || !o.Got.HasCache || !ref.HasCache {
			return Violation{}
		}
		got, want := comparable(o.Got.After), comparable(ref.After)
		if got == want && (o.Got.AddrAfter == ref.AddrAfter || !o.Got.AddrAfter.Exists || !ref.AddrAfter.Exists) {
			return Violation{}
		}
		return Violation{Property: cacheName, Kind: o.Op.Verb.String()}
	},
}

// SameWaiting is the property that two stacks keep the same sockets in TIME_WAIT.
var SameWaiting = &Property{
	Name: waitingName,
	Doc:  "The TIME_WAIT sockets that the reference has after an exit are there, where the stack shows its own.",
	Check: func(o *Observation) Violation {
		if !o.Verdict.Agrees || o.Got.Kind != reusecheck.Exited || !o.Got.HasWaiting || o.Verdict.Exit == nil || len(missing(o)) == 0 {
			return Violation{}
		}
		return Violation{Property: waitingName, Kind: takenAlong}
	},
}

const (
	agreesName  = "agrees"
	cacheName   = "cache"
	waitingName = "waiting"
)

// comparable is the part of a cache that two stacks must have in common.
func comparable(c reusecheck.Cache) reusecheck.Cache {
	c = c.WithoutKey()
	if c.Addr.IsValid() {
		c.Addr = c.Addr.Unmap() // the kernel keeps both forms; which is meant, the family says
	}
	return c
}

// brief is an answer without what differs from run to run.
func brief(a reusecheck.Answer) string {
	if a.Kind == reusecheck.OK {
		return "ok"
	}
	return a.String()
}

// twin is a stack in an oracle's place.
type twin struct {
	stack   reusecheck.Stack
	chooser reusecheck.Chooser
	inspect reusecheck.Inspector
	failed  error
	last    reusecheck.Result // of the step at hand
}

func (t *twin) Reset(cfg reusecheck.Config) {
	if t.stack != nil {
		t.failed = t.stack.Reset(cfg)
	}
}

// Can is what keeps the reference from being asked, so that the stack under test
// is not either.
func (t *twin) Can(op reusecheck.Op) error {
	if l, ok := t.stack.(reusecheck.Limited); ok && t.failed == nil {
		return l.Can(op)
	}
	return nil
}

// Judge performs the operation on the reference. A machine asks once a step,
// just before it tells what happened, so this is the step itself.
func (t *twin) Judge(op reusecheck.Op, got reusecheck.Answer) oracle.Verdict {
	if t.failed != nil {
		return oracle.Verdict{Agrees: true, Want: got, Open: t.failed.Error()}
	}
	r, err := t.do(op, got)
	var lacks *reusecheck.Unsupported
	switch {
	case errors.As(err, &lacks):
		t.failed = err // what follows in this history cannot be compared
		return oracle.Verdict{Agrees: true, Want: got, Open: lacks.Error()}
	case err != nil:
		t.failed = err
		return oracle.Verdict{Want: got, Open: err.Error()}
	}
	t.last = r
	v := oracle.Verdict{Want: r.Answer, Agrees: r.Answer.Agrees(got), Reference: &t.last}
	if r.Kind == reusecheck.Exited && t.inspect != nil {
		v.Exit = t.spared()
	}
	return v
}

// spared are the TIME_WAIT sockets that the reference has after an exit.
func (t *twin) spared() *oracle.Exit {
	e := &oracle.Exit{}
	t.inspect.Sockets(func(s *reusecheck.Socket) bool {
		if s.State == reusecheck.TimeWait && s.ID >= 0 {
			e.Spared = append(e.Spared, s.ID)
		}
		return true
	})
	return e
}

func (t *twin) do(op reusecheck.Op, seen reusecheck.Answer) (reusecheck.Result, error) {
	if t.chooser != nil {
		return t.chooser.DoAs(op, seen)
	}
	return t.stack.Do(op)
}

func (t *twin) Follow(reusecheck.Op, reusecheck.Answer) {}

func (t *twin) Sockets(yield func(*reusecheck.Socket) bool) {
	if t.inspect != nil {
		t.inspect.Sockets(yield)
	}
}
