package spec

import (
	"fmt"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// Observation is one step with everything that a property may ask of it. It is
// valid until the machine's next step.
type Observation struct {
	Op      reusecheck.Op
	Got     reusecheck.Result
	Verdict oracle.Verdict
	// Before and After are the live sockets around the step.
	Before, After []reusecheck.Socket
	// GhostBefore and GhostAfter are the ghost's cache of the step's port.
	GhostBefore, GhostAfter reusecheck.Cache
	// Key is the socket as it was when the stack's cache was keyed to it, the
	// last time before the step; nil when there is none.
	Key   *reusecheck.Socket
	Ghost Ghost
	// Broken is what the stack's own structure check said, nil when all is
	// well or the stack cannot be asked, and WasBroken what it said before the step.
	Broken, WasBroken error
	// Stack is the stack itself where it can be looked into, nil otherwise.
	Stack reusecheck.Inspector
	// Names gives the names that sockets have in the trace that is replayed, nil
	// for those of their IDs.
	Names func(reusecheck.ID) string

	sys *System
}

// Socket finds a live socket from before the step, nil when there was none.
func (o *Observation) Socket(id reusecheck.ID) *reusecheck.Socket { return find(o.Before, id) }

// Diverged reports whether the step left the stack in a state that the oracle
// would not have let it reach. What follows in the history is a consequence.
func (o *Observation) Diverged() bool {
	return o.Broken != nil && !o.sys.Lasting || !o.Verdict.Agrees && (o.sys.Strict || o.Got.Kind == reusecheck.OK)
}

// Machine holds one stack to a system's properties.
type Machine struct {
	stack   reusecheck.Stack
	chooser reusecheck.Chooser
	inspect reusecheck.Inspector
	oracle  Oracle
	ghost   Ghost
	props   []*Property
	obs     Observation
	found   []Violation
	// after and before swap between steps.
	live [2][]reusecheck.Socket
}

// NewMachine makes a machine for a stack. Without properties it takes all of
// the system's.
func NewMachine(sys *System, stack reusecheck.Stack, props ...*Property) *Machine {
	if len(props) == 0 {
		props = sys.Properties
	}
	m := &Machine{stack: stack, oracle: sys.NewOracle(), ghost: sys.NewGhost(), props: props}
	m.chooser, _ = stack.(reusecheck.Chooser)
	m.inspect, _ = stack.(reusecheck.Inspector)
	m.obs.Ghost, m.obs.Stack, m.obs.sys = m.ghost, m.inspect, sys
	return m
}

// Reset starts a fresh history.
func (m *Machine) Reset(cfg reusecheck.Config) error {
	m.oracle.Reset(cfg)
	m.ghost.Reset()
	m.live[0], m.live[1] = m.live[0][:0], m.live[1][:0]
	m.obs.Broken = nil
	return m.stack.Reset(cfg)
}

// Live are the sockets that live now, as the oracle knows them.
func (m *Machine) Live() []reusecheck.Socket { return m.live[0] }

// Step performs one operation and judges it. The observation and the violations
// are valid until the next step. An error is the stack's: it could not perform
// the operation, and the history ends there.
func (m *Machine) Step(op reusecheck.Op) (*Observation, []Violation, error) {
	return m.step(op, reusecheck.Answer{})
}

// StepAs is Step with an answer seen elsewhere: where the stack may choose, it
// chooses as seen.
func (m *Machine) StepAs(op reusecheck.Op, seen reusecheck.Answer) (*Observation, []Violation, error) {
	return m.step(op, seen)
}

func (m *Machine) step(op reusecheck.Op, seen reusecheck.Answer) (*Observation, []Violation, error) {
	o := &m.obs
	o.Op = op
	o.Before = m.live[0]
	o.GhostBefore, o.Key = m.ghost.Before(op, o.Before)
	if l, ok := m.oracle.(interface{ Can(reusecheck.Op) error }); ok {
		if err := l.Can(op); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", op.Verb, err)
		}
	}
	var err error
	if m.chooser != nil && seen.Kind != reusecheck.Unstated {
		o.Got, err = m.chooser.DoAs(op, seen)
	} else {
		o.Got, err = m.stack.Do(op)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op.Verb, err)
	}
	if o.Got.Kind == reusecheck.Unstated {
		return nil, nil, fmt.Errorf("%s: the stack gives no answer: want a Result such as one with reusecheck.Success or reusecheck.Fail", op.Verb)
	}
	o.Verdict = m.oracle.Judge(op, o.Got.Answer)
	m.oracle.Follow(op, o.Got.Answer)
	after := m.live[1][:0]
	m.oracle.Sockets(func(s *reusecheck.Socket) bool {
		after = append(after, *s)
		return true
	})
	m.live[0], m.live[1] = after, o.Before
	o.After = after
	o.GhostAfter = m.ghost.After(op, o.Got, after)
	o.WasBroken, o.Broken = o.Broken, nil
	if m.inspect != nil {
		o.Broken = m.inspect.Check()
	}
	m.found = m.found[:0]
	for _, p := range m.props {
		if v := p.Check(o); v.Property != "" {
			m.found = append(m.found, v)
		}
	}
	return o, m.found, nil
}

// Replay runs a whole trace and calls yield after each step until it returns
// false. Where the stack may choose, it chooses as the trace states.
func (m *Machine) Replay(t *reusecheck.Trace, yield func(i int, o *Observation, found []Violation) bool) error {
	if err := m.Reset(t.Config); err != nil {
		return err
	}
	m.obs.Names = t.Name
	defer func() { m.obs.Names = nil }()
	for i := range t.Steps {
		o, found, err := m.step(t.Steps[i].Op, t.Steps[i].Want)
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if !yield(i, o, found) {
			return nil
		}
	}
	return nil
}

// Shows reports the first step, from 0, at which a trace shows the violation
// (see [Violation.Same]), -1 when it does not.
func (m *Machine) Shows(t *reusecheck.Trace, want Violation) int {
	at := -1
	err := m.Replay(t, func(i int, o *Observation, found []Violation) bool {
		for _, v := range found {
			if v.Same(want) {
				at = i
				return false
			}
		}
		return !o.Diverged()
	})
	if err != nil {
		return -1
	}
	return at
}
