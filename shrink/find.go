package shrink

import (
	"context"
	"net/netip"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// Finding is a violation, shrunk and named.
type Finding struct {
	Violation spec.Violation
	// Trace is the smallest one reached, with the stack's answers and the
	// oracle's where they differ.
	Trace *reusecheck.Trace
	// Sentence says what is wrong at the trace's last step.
	Sentence string
	// CrossesUsers says that the violation still shows when the owner that
	// stands against it belongs to another user than the socket let in.
	CrossesUsers bool
	History      int // the failing history it was first reached from
	Report       Report
}

// Finder turns the failures of a search into distinct findings.
type Finder struct {
	System *spec.System
	Stack  func() (reusecheck.Stack, error)
	// Kernels, when given, is stated in the findings' traces.
	Kernels reusecheck.KernelSet
	// Retries is how many failures that a known finding explains are shrunk
	// all the same, in case another hides behind it.
	Retries int

	machine *spec.Machine
	known   []*Finding
	retried map[*Finding]int
}

// Known are the findings so far, in the order in which they were made.
func (f *Finder) Known() []*Finding { return f.known }

// Find shrinks a failure. It gives nil when that leads to a finding already
// known, or is bound to: a known finding shows the same in no more circumstances.
func (f *Finder) Find(ctx context.Context, fail spec.Failure) (*Finding, error) {
	if f.explains(fail) {
		return nil, nil
	}
	n, err := f.Shrink(ctx, fail.Trace, fail.Violation)
	if err != nil || !f.learn(n, fail) {
		return nil, err
	}
	return n, nil
}

// explains reports whether a known finding explains a failure, often enough to
// leave it be, and takes note of it.
func (f *Finder) explains(fail spec.Failure) bool {
	for _, k := range f.known {
		if k.Violation.Same(fail.Violation) {
			if f.retried[k]++; f.retried[k] > f.Retries {
				return true
			}
		}
	}
	return false
}

// learn adds what a failure was shrunk to, unless it is known, perhaps by a
// simpler trace.
func (f *Finder) learn(n *Finding, fail spec.Failure) bool {
	for _, k := range f.known {
		if k.Violation == n.Violation && Compare(k.Trace, n.Trace) <= 0 {
			return false
		}
	}
	n.History = fail.History
	if f.retried == nil {
		f.retried = map[*Finding]int{}
	}
	f.known = append(f.known, n)
	return true
}

// Shrink takes a trace that shows a violation down to the smallest one that
// shows it, and states the answers of every step.
func (f *Finder) Shrink(ctx context.Context, t *reusecheck.Trace, v spec.Violation) (*Finding, error) {
	if f.machine == nil {
		s, err := f.Stack()
		if err != nil {
			return nil, err
		}
		// All properties, so that the machine sees where a history ends.
		f.machine = spec.NewMachine(f.System, s)
	}
	small, report := Run(t, func(c *reusecheck.Trace) bool { return f.machine.Shows(c, v) >= 0 }, Options{Context: ctx})
	spell(small)
	if !report.Reproduced {
		// It shows only with the choices that the trace states.
		small = t.Clone()
	}
	n, err := Tell(f.machine, small, v)
	if err != nil {
		return nil, err
	}
	n.Trace.Kernels, n.Report = f.Kernels, report
	if report.Reproduced {
		n.CrossesUsers = f.crosses(n)
		leaveOpen(n.Trace)
	}
	return n, nil
}

// leaveOpen takes back the ports that a stack picked from the range that it has by
// itself, where no other step has to do with them: another one picks another.
func leaveOpen(t *reusecheck.Trace) {
	if t.Config.Ports != (reusecheck.PortRange{}) {
		return
	}
	met := map[uint16]int{}
	for i := range t.Steps {
		st := &t.Steps[i]
		if st.Op.Range != (reusecheck.PortRange{}) {
			return
		}
		met[st.Op.Addr.Port()]++
		met[st.Op.From.Port()]++
		met[st.Want.Port]++
		met[st.Oracle.Port]++
	}
	for i := range t.Steps {
		if st := &t.Steps[i]; met[st.Want.Port] == 1 {
			st.Want.Port = 0
		}
	}
}

// spell writes the addresses of IPv6 sockets in their own form.
func spell(t *reusecheck.Trace) {
	family := map[reusecheck.ID]reusecheck.Family{}
	for i := range t.Steps {
		switch op := &t.Steps[i].Op; op.Verb {
		case reusecheck.VSocket:
			family[op.Sock] = op.Family
		case reusecheck.VInherit:
			family[op.Child] = family[op.Sock]
		case reusecheck.VBind, reusecheck.VConnect:
			if family[op.Sock].Is6() {
				op.Addr = netip.AddrPortFrom(reusecheck.Canonical(family[op.Sock], op.Addr.Addr()), op.Addr.Port())
			}
		}
	}
}

// Tell makes a finding of a trace that shows a violation: the trace as far as the
// step that shows it, with the answers of the machine's stack, and what is said
// about it. An error is the stack's.
func Tell(m *spec.Machine, t *reusecheck.Trace, v spec.Violation) (*Finding, error) {
	n := &Finding{Violation: v, Trace: &reusecheck.Trace{Title: t.Title, Source: t.Source, Config: t.Config, Names: t.Names}}
	err := m.Replay(t, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		spec.Append(n.Trace, o.Op, o)
		for _, w := range found {
			if w.Same(v) {
				n.Violation, n.Sentence = w, spec.Sentence(o, w)
				return false
			}
		}
		return true
	})
	return n, err
}

// other is a user that no world of the checker has.
const other = 1099

// crosses reports whether the violation still shows when the sockets of one
// user at a time belong to somebody else.
func (f *Finder) crosses(n *Finding) bool {
	sound := n.Trace.Steps[len(n.Trace.Steps)-1]
	if sound.Want.Kind != reusecheck.OK || sound.Oracle.Kind != reusecheck.Failed {
		return false // nobody was let in
	}
	t := n.Trace.Clone()
	for i := range t.Steps {
		op := &t.Steps[i].Op
		if op.Verb != reusecheck.VSocket || op.Sock == sound.Op.Sock {
			continue
		}
		was := op.UID
		op.UID = other
		if f.intrudes(t) {
			return true
		}
		op.UID = was
	}
	return false
}

// intrudes reports whether a trace's last step lets a socket in over the owner
// of another user, against the oracle.
func (f *Finder) intrudes(t *reusecheck.Trace) bool {
	crosses := false
	err := f.machine.Replay(t, func(i int, o *spec.Observation, _ []spec.Violation) bool {
		if i < len(t.Steps)-1 {
			return !o.Diverged()
		}
		if o.Diverged() {
			s := o.Socket(o.Op.Sock)
			for _, c := range o.Verdict.Conflicts {
				if own := o.Socket(c.Owner); own != nil && s != nil && own.UID != s.UID {
					crosses = true
				}
			}
		}
		return false
	})
	return err == nil && crosses
}
