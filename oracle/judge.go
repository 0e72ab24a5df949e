package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Why a step can be left open.
const (
	openGone     = "the oracle does not know the socket"
	openForeign  = "the operation or socket is not TCP's, or not of this namespace"
	openVague    = "an overlapping socket's attributes cannot be known from the answers so far"
	openLost     = "a socket holds an automatic port that the stack did not tell"
	openSelf     = "the socket's own state cannot be known from the answers so far"
	openSearch   = "the search for an automatic port may miss one port of a range of odd size"
	openDevice   = "no document says how a socket on that device reaches the address"
	openLocal    = "no document says whether that address may be bound"
	openReplace  = "a TIME_WAIT socket has this 4-tuple: a new connection may take it over"
	openRoute    = "no document says where that address leads in this namespace"
	openPortless = "the stack did not say which port it picked"
)

// Judge says what op should be answered, given what the stack answered, which
// counts only where several answers are allowed. It changes nothing.
//
// What is judged is reuse. An error about the socket's own state or about a
// route is taken from the stack unless the operation plainly could not meet it.
func (t *TCP) Judge(op reusecheck.Op, got reusecheck.Answer) Verdict {
	t.conflicts = t.conflicts[:0]
	switch op.Verb {
	case reusecheck.VSocket:
		return agree(got)
	case reusecheck.VSend, reusecheck.VNetns, reusecheck.VExit:
		return open(got, openForeign)
	}
	m := t.find(op.Sock)
	switch {
	case m == nil:
		return open(got, openGone)
	case m.vague && op.Verb != reusecheck.VClose:
		return open(got, openSelf)
	}
	switch op.Verb {
	case reusecheck.VBind:
		return t.judgeBind(m, op.Addr, got)
	case reusecheck.VListen:
		return t.judgeListen(m, got)
	case reusecheck.VConnect:
		return t.judgeConnect(m, op.Addr, got)
	case reusecheck.VInherit:
		return t.judgeInherit(m, op, got)
	}
	// set, shutdown, disconnect, close, timewait, expire: they ask no owner.
	return agree(got)
}

func agree(got reusecheck.Answer) Verdict { return Verdict{Want: got, Agrees: true} }

func open(got reusecheck.Answer, why string) Verdict {
	return Verdict{Want: got, Agrees: true, Open: why}
}

// disagree is a wrong answer, with what was found standing against it.
func (t *TCP) disagree(want reusecheck.Answer) Verdict {
	return Verdict{Want: want, Conflicts: t.conflicts}
}

// refused agrees with a refusal that the conflicts found explain.
func (t *TCP) refused(got reusecheck.Answer) Verdict {
	return Verdict{Want: got, Agrees: true, Conflicts: t.conflicts}
}

// impossible judges an operation that cannot succeed, whoever owns the port:
// any error will do, since no document orders them.
func (t *TCP) impossible(m *member, why reusecheck.Reason, errno reusecheck.Errno, got reusecheck.Answer) Verdict {
	if got.Kind == reusecheck.Failed {
		return agree(got)
	}
	t.conflicts = append(t.conflicts, Conflict{m.ID, why})
	return t.disagree(reusecheck.Fail(errno))
}

// aboutPort reports whether an answer is one that the owners of a port decide.
func aboutPort(got reusecheck.Answer) bool {
	return got.Kind != reusecheck.Failed ||
		got.Errno == reusecheck.EADDRINUSE || got.Errno == reusecheck.EADDRNOTAVAIL
}

// judgeBind: bind(2), ip(7), ipv6(7).
func (t *TCP) judgeBind(m *member, to netip.AddrPort, got reusecheck.Answer) Verdict {
	addr := reusecheck.Canonical(m.Family, to.Addr())
	switch {
	case m.lost:
		return open(got, openLost)
	case m.Owner(): // also whoever listens or is connected
		return t.impossible(m, reusecheck.RefuseState, reusecheck.EINVAL, got)
	case !m.Family.Is6() && !addr.Is4():
		return t.impossible(m, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case m.Opts.Has(reusecheck.V6Only) && addr.Is4In6():
		return t.impossible(m, reusecheck.RefuseFamily, reusecheck.EINVAL, got)
	}
	switch t.world.locate(&m.Socket, addr) {
	case foreign:
		return t.impossible(m, reusecheck.RefuseNotLocal, reusecheck.EADDRNOTAVAIL, got)
	case unsaid:
		if got == reusecheck.Fail(reusecheck.EADDRNOTAVAIL) {
			return open(got, openLocal)
		}
	}
	switch {
	case to.Port() != 0:
		return t.judgeNamed(m, addr, to.Port(), got)
	case m.Opts.Has(reusecheck.NoPort):
		// IP_BIND_ADDRESS_NO_PORT: no port is taken, so nobody is asked.
		return t.granted(m, got)
	}
	return t.judgeAutomatic(m, addr, got)
}

// judgeListen: listen(2).
func (t *TCP) judgeListen(m *member, got reusecheck.Answer) Verdict {
	switch {
	case m.State == reusecheck.Listening:
		return t.granted(m, got) // changes the backlog only
	case m.State != reusecheck.Idle:
		return t.impossible(m, reusecheck.RefuseState, reusecheck.EINVAL, got)
	case m.Owner():
		return t.judgeNamed(m, m.Local.Addr(), m.Local.Port(), got)
	}
	return t.judgeAutomatic(m, m.Local.Addr(), got)
}

// judgeNamed judges a request for one port by all its owners.
func (t *TCP) judgeNamed(m *member, addr netip.Addr, number uint16, got reusecheck.Answer) Verdict {
	vague := t.visit(&Request{&m.Socket, addr, number, Named})
	inUse := reusecheck.Fail(reusecheck.EADDRINUSE)
	switch {
	case len(t.conflicts) > 0:
		switch {
		case got == inUse:
			return t.refused(got)
		case !aboutPort(got) && !m.doubts(got):
			return agree(got)
		}
		return t.disagree(inUse)
	case vague:
		return open(got, openVague)
	case t.lost > 0 && t.world.ports.Contains(number):
		return open(got, openLost)
	}
	return t.granted(m, got)
}

// granted judges an operation that nothing stands against.
func (t *TCP) granted(m *member, got reusecheck.Answer) Verdict {
	if got.Kind == reusecheck.OK || !aboutPort(got) && !m.doubts(got) {
		return agree(got)
	}
	return t.disagree(reusecheck.Success)
}

// doubts reports whether an error about m's state cannot be. Only EINVAL is
// doubted: bind(2) and listen(2) give it to a socket that has a port, is connected
// or was given a wrong address, so one that has done nothing yet cannot meet it.
func (m *member) doubts(got reusecheck.Answer) bool {
	return got == reusecheck.Fail(reusecheck.EINVAL) && !m.used
}

// visit looks at every owner of the requested port and notes those that stand
// against the request. It reports whether there is also one of which too little
// is known.
func (t *TCP) visit(req *Request) (vague bool) {
	r := reachOf(req.Binder.Opts, req.Addr)
	for i := t.firstOf(req.Port); i != none; i = t.socks[i].next {
		o := &t.socks[i]
		// The cheap question first: most owners that share a port may.
		why := refusal(req.Binder, &o.Socket, req.Purpose)
		switch {
		case why == reusecheck.ReasonNone && !o.vague || !req.overlaps(&r, &o.Socket):
		case o.vague:
			vague = true
		default:
			t.conflicts = append(t.conflicts, Conflict{o.ID, why})
		}
	}
	return vague
}
