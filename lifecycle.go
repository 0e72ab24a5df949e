package reusecheck

import (
	"fmt"
	"net/netip"
)

// part is a part of a step that a fault is about.
type part uint8

const (
	partVerb part = iota
	partSock
	partFamily
	partCPU
	partNet
	partBatch // with fault.index
	partWant
	partOracle
	numParts
)

// fault is an error of a step that is well written.
type fault struct {
	part  part
	index int
	msg   string
}

// noAddr is the address that an operation without one has.
var noAddr netip.AddrPort

// life is what is known of an ID without running anything.
type life struct {
	isNet bool
	net   ID // the namespace that a socket is in, NoID for the trace's own
	stage stage
	ended string // when it left stageLive, in words
	// connected says that the socket may have a connection: a connect may
	// have failed, so it never says that it has one.
	connected bool
}

type stage uint8

const (
	stageLive stage = iota
	stageTimeWait
	stageGone
)

// checker follows the lives of a trace's sockets and namespaces, step by step.
// The parser and Validate share it, so that they refuse the same traces.
type checker struct {
	system System
	name   func(ID) string
	ids    []life
}

func newChecker(system System, name func(ID) string) *checker {
	return &checker{system: system, name: name}
}

// step checks one step and takes note of what it does.
func (c *checker) step(s *Step, index int) *fault {
	op := &s.Op
	if f := c.fits(op); f != nil {
		return f
	}
	if f := c.refers(op); f != nil {
		return f
	}
	if f := c.results(s); f != nil {
		return f
	}
	return c.happens(op, s.when(index))
}

func (s *Step) when(index int) string {
	if s.Line > 0 {
		return fmt.Sprintf("in line %d", s.Line)
	}
	return fmt.Sprintf("in step %d", index+1)
}

// fits checks that the system has the operation.
func (c *checker) fits(op *Op) *fault {
	bad := false
	switch op.Verb {
	case VSend:
		bad = c.system != UDP
	case VNetns, VExit:
		bad = c.system != TimeWaitExit
	case VInherit, VTimeWait, VExpire:
		bad = c.system == UDP
	case VSocket:
		if op.Family.IsUDP() != (c.system == UDP) {
			return &fault{part: partFamily, msg: fmt.Sprintf("system %s has no %s sockets", c.system, op.Family)}
		}
	}
	switch {
	case op.Verb < VSocket || op.Verb > VExit:
		return &fault{msg: fmt.Sprintf("%s is not a step", op.Verb)}
	case bad:
		return &fault{msg: fmt.Sprintf("system %s has no %s", c.system, op.Verb)}
	case c.system == TimeWaitExit && (op.CPU != NoCPU || op.Field == SetCPU):
		return &fault{part: partCPU, msg: fmt.Sprintf("system %s has no processors", c.system)}
	}
	return nil
}

// refers checks the names that the operation uses, and its preconditions.
func (c *checker) refers(op *Op) *fault {
	switch op.Verb {
	case VSocket:
		if op.HasNet {
			return c.uses(op.Net, true, partNet, 0)
		}
		return nil
	case VNetns, VSend:
		return nil
	case VExit:
		for i, id := range op.Batch {
			if f := c.uses(id, true, partBatch, i); f != nil {
				return f
			}
			c.ids[id].stage, c.ids[id].ended = stageGone, "is named twice in this step"
		}
		return nil
	case VExpire:
		return c.expires(op.Sock)
	}
	if f := c.uses(op.Sock, false, partSock, 0); f != nil {
		return f
	}
	if op.Verb == VTimeWait && !c.ids[op.Sock].connected {
		return &fault{partSock, 0, c.name(op.Sock) + " has no connection, so that it cannot leave a TIME_WAIT socket"}
	}
	return nil
}

// uses checks that id is there and of the right kind.
func (c *checker) uses(id ID, isNet bool, p part, i int) *fault {
	if f := c.defined(id, isNet, p, i); f != nil {
		return f
	}
	if l := &c.ids[id]; l.stage != stageLive {
		return &fault{p, i, fmt.Sprintf("%s is gone: it %s", c.name(id), l.ended)}
	}
	return nil
}

func (c *checker) defined(id ID, isNet bool, p part, i int) *fault {
	switch {
	case id < 0 || int(id) >= len(c.ids):
		return &fault{p, i, c.name(id) + " is not defined before it is used"}
	case c.ids[id].isNet && !isNet:
		return &fault{p, i, c.name(id) + " is a namespace, not a socket"}
	case !c.ids[id].isNet && isNet:
		return &fault{p, i, c.name(id) + " is a socket, not a namespace"}
	}
	return nil
}

func (c *checker) expires(id ID) *fault {
	if f := c.defined(id, false, partSock, 0); f != nil {
		return f
	}
	switch l := &c.ids[id]; l.stage {
	case stageLive:
		return &fault{partSock, 0, c.name(id) + " is not a TIME_WAIT socket: no timewait came before"}
	case stageGone:
		return &fault{partSock, 0, fmt.Sprintf("%s is not a TIME_WAIT socket: it %s", c.name(id), l.ended)}
	}
	return nil
}

// happens takes note of an operation that passed.
func (c *checker) happens(op *Op, when string) *fault {
	if id, ok := op.Defines(); ok {
		if int(id) != len(c.ids) {
			return &fault{msg: fmt.Sprintf("it defines ID %d where %d is next: IDs count the definitions, in order and once", id, len(c.ids))}
		}
		l := life{isNet: op.Verb == VNetns, net: NoID, connected: op.Verb == VInherit}
		switch {
		case op.Verb == VInherit:
			l.net = c.ids[op.Sock].net
		case op.HasNet:
			l.net = op.Net
		}
		c.ids = append(c.ids, l)
		return nil
	}
	switch op.Verb {
	case VExit:
		for _, id := range op.Batch {
			c.ids[id].stage, c.ids[id].ended = stageGone, "was torn down "+when
		}
		for i := range c.ids {
			if l := &c.ids[i]; l.net != NoID && l.stage != stageGone && c.ids[l.net].stage == stageGone {
				l.stage, l.ended = stageGone, fmt.Sprintf("went with its namespace %s %s", c.name(l.net), when)
			}
		}
		return nil
	case VSend:
		return nil
	}
	switch l := &c.ids[op.Sock]; op.Verb {
	case VConnect:
		l.connected = true
	case VDisconnect, VShutdown:
		l.connected = false
	case VClose:
		l.stage, l.ended = stageGone, "was closed "+when
	case VTimeWait:
		l.stage, l.ended = stageTimeWait, "became a TIME_WAIT socket "+when
	case VExpire:
		l.stage, l.ended = stageGone, "expired "+when
	}
	return nil
}

// results checks the stated answers.
func (c *checker) results(s *Step) *fault {
	if msg := c.answer(&s.Op, &s.Want); msg != "" {
		return &fault{partWant, 0, msg}
	}
	if msg := c.answer(&s.Op, &s.Oracle); msg != "" {
		return &fault{partOracle, 0, msg}
	}
	if s.Oracle.Kind != Unstated && s.Want.Kind != Unstated && s.Oracle.Matches(s.Want) {
		return &fault{partOracle, 0, "the oracle's answer is stated only where it differs from the result"}
	}
	return nil
}

// answer says why a cannot be an answer to op.
func (c *checker) answer(op *Op, a *Answer) string {
	plain := Answer{Kind: a.Kind}
	ok := true
	switch a.Kind {
	case Unstated:
	case OK:
		ok = op.Verb != VSend && op.Verb != VExit && (a.Port == 0 || picksPort(op.Verb))
		plain.Port = a.Port
	case Failed:
		if _, known := errnoNames[a.Errno]; !known {
			return fmt.Sprintf("%s has no symbol", a.Errno)
		}
		plain.Errno = a.Errno
	case Received:
		if ok = op.Verb == VSend || op.Verb == VInherit; !ok {
			break
		}
		if op.Verb == VInherit && a.Who == op.Child {
			return fmt.Sprintf("%s is the socket that the step makes, not a listener", c.name(a.Who))
		}
		if f := c.defined(a.Who, false, partWant, 0); f != nil {
			return f.msg
		}
		if op.Verb == VInherit && a.Who == op.Sock {
			return fmt.Sprintf("%s is the listener that is named; write ok", c.name(a.Who))
		}
		plain.Who = a.Who
	case Nobody:
		ok = op.Verb == VSend
	case Exited:
		ok = op.Verb == VExit && a.Walks >= 0 && a.Left >= 0
		plain.Walks, plain.Left = a.Walks, a.Left
	default:
		ok = false
	}
	if !ok || plain != *a {
		return fmt.Sprintf("%s is not a result of %s; it has %s", a.Text(c.name), op.Verb, resultsOf(op.Verb))
	}
	return ""
}

// picksPort reports whether the answer may say which port was picked.
func picksPort(v Verb) bool { return v == VBind || v == VListen || v == VConnect }

// resultsOf says in words what a verb returns.
func resultsOf(v Verb) string {
	switch {
	case picksPort(v):
		return "ok, ok PORT or an error's symbol"
	case v == VInherit:
		return "ok, an error's symbol, or the name of another listener that took the connection"
	case v == VSend:
		return "the receiver's name, none or an error's symbol"
	case v == VExit:
		return "ok walks=N left=M or an error's symbol"
	}
	return "ok or an error's symbol"
}
