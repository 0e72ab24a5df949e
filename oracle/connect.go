package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// flow is a connection as its opener has it: both addresses unmapped, since an
// IPv4 connection is the same whether an IPv4 or an IPv6 socket holds it.
type flow struct{ src, dst netip.AddrPort }

// meetsItself: a SYN that arrives where it was sent from opens the connection at
// both ends, which are one socket (RFC 9293, 3.5: simultaneous open, which every
// TCP must support). Nobody has to listen.
func (f flow) meetsItself() bool { return f.src == f.dst && f.src.Port() != 0 }

// from is the flow from another port.
func (f flow) from(number uint16) flow {
	return flow{netip.AddrPortFrom(f.src.Addr(), number), f.dst}
}

// flowOf says where a connection from m to an address starts and ends.
// Connecting to the wildcard is connecting to the own host: to the address that
// the socket is bound to, or else to the loopback address. A socket without an
// address gets that of the route: 127.0.0.1 for all of 127/8, the destination
// itself for the IPv6 addresses of lo (RFC 6724, rule 1).
func flowOf(m *member, to netip.AddrPort) flow {
	dst := to.Addr().Unmap()
	own := m.Local.Addr()
	if dst.IsUnspecified() {
		v4 := dst.Is4() || own.Is4In6()
		switch own = own.Unmap(); {
		case own.IsValid() && !own.IsUnspecified():
			dst = own
		case v4:
			dst = loopback4
		default:
			dst = netip.IPv6Loopback()
		}
	}
	src := own.Unmap()
	if !src.IsValid() || src.IsUnspecified() {
		if src = dst; dst.Is4() {
			src = loopback4
		}
	}
	return flow{netip.AddrPortFrom(src, m.Local.Port()), netip.AddrPortFrom(dst, to.Port())}
}

// judgeConnect: connect(2), ip(7). The port must be to be had, and somebody must
// listen at the other end.
func (t *TCP) judgeConnect(m *member, to netip.AddrPort, got reusecheck.Answer) Verdict {
	if m.State != reusecheck.Idle {
		return t.impossible(m, reusecheck.RefuseState, reusecheck.EISCONN, got)
	}
	f := flowOf(m, to)
	own := m.Local.Addr()
	switch {
	case !m.Family.Is6() && !f.dst.Addr().Is4():
		return t.impossible(m, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case m.Family.Is6() && f.dst.Addr().Is4() && m.Opts.Has(reusecheck.V6Only):
		return t.impossible(m, reusecheck.RefuseFamily, reusecheck.ENETUNREACH, got)
	case own.Is4In6() && !f.dst.Addr().Is4():
		return t.impossible(m, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case m.Dev == reusecheck.Dev1 || m.Dev == reusecheck.Dev2:
		return open(got, openDevice)
	case !isLocal(f.dst.Addr()):
		return open(got, openRoute)
	case m.Owner():
		return t.judgeFromPort(m, f, got)
	case t.lost > 0:
		return open(got, openLost)
	}
	return t.judgeFromAny(m, f, got)
}

// judgeFromPort judges a connect from a port that is held already: the 4-tuple
// must be free, and nothing else is asked.
func (t *TCP) judgeFromPort(m *member, f flow, got reusecheck.Answer) Verdict {
	switch t.fitFlow(m, f, false) {
	case blocked:
		if isPortError(got) {
			return t.refused(got)
		}
		if !aboutPort(got) && got.Errno != reusecheck.ECONNREFUSED {
			return agree(got)
		}
		return t.disagree(reusecheck.Fail(reusecheck.EADDRNOTAVAIL))
	case maybe:
		return open(got, t.whyMaybe(f))
	}
	return t.judgeReached(f, reusecheck.Success, got)
}

// judgeFromAny judges a connect from a port that the stack was to pick, which
// may be shared as long as the 4-tuple is unique (ip(7), "a usable shared port";
// IP_BIND_ADDRESS_NO_PORT).
func (t *TCP) judgeFromAny(m *member, f flow, got reusecheck.Answer) Verdict {
	r := t.world.rangeFor(&m.Socket)
	switch {
	case isPortError(got):
		s := t.supplyOfFlow(m, f, r)
		switch {
		case s.fits == 0:
			return t.refused(got)
		case s.mayMiss():
			return open(got, openSearch)
		}
		t.conflicts = t.conflicts[:0]
		v := t.disagree(t.wantReached(f.from(s.lowest), reusecheck.Picked(s.lowest)))
		v.Port = s.lowest
		return v
	case got.Kind != reusecheck.OK:
		if v := t.judgeReached(t.fromOnly(m, f, r), reusecheck.Success, got); v.Agrees {
			return v
		}
		return t.disagree(t.wantPicked(m, f, r))
	case got.Port == 0:
		s := t.supplyOfFlow(m, f, r)
		if s.fits+s.maybe == 0 {
			return t.disagree(reusecheck.Fail(reusecheck.EADDRNOTAVAIL))
		}
		t.conflicts = t.conflicts[:0]
		if f = t.fromOnly(m, f, r); !f.meetsItself() && f.from(f.dst.Port()).meetsItself() && r.Contains(f.dst.Port()) {
			return open(got, openPortless)
		}
		return t.judgeReached(f, reusecheck.Success, got)
	}
	f = f.from(got.Port)
	fit := blocked
	if r.Contains(got.Port) && !t.world.isReserved(got.Port) {
		fit = t.fitFlow(m, f, true)
	}
	switch fit {
	case blocked:
		return t.disagree(t.wantPicked(m, f, r))
	case maybe:
		return open(got, t.whyMaybe(f))
	}
	return t.judgeReached(f, got, got)
}

// fromOnly is a flow that may meet itself from the only port that it can start at,
// whichever the stack looks at first.
func (t *TCP) fromOnly(m *member, f flow, r reusecheck.PortRange) flow {
	if !f.from(f.dst.Port()).meetsItself() {
		return f
	}
	keep := len(t.conflicts)
	s := t.supplyOfFlow(m, f, r)
	t.conflicts = t.conflicts[:keep]
	if s.fits == 1 && s.maybe == 0 {
		return f.from(s.lowest)
	}
	return f
}

func isPortError(got reusecheck.Answer) bool { return got.Kind == reusecheck.Failed && aboutPort(got) }

// wantPicked is the right answer where the stack picked a port that it must not.
func (t *TCP) wantPicked(m *member, f flow, r reusecheck.PortRange) reusecheck.Answer {
	keep := len(t.conflicts)
	s := t.supplyOfFlow(m, f, r)
	t.conflicts = t.conflicts[:keep]
	if s.lowest == 0 {
		return reusecheck.Fail(reusecheck.EADDRNOTAVAIL)
	}
	return t.wantReached(f.from(s.lowest), reusecheck.Picked(s.lowest))
}

// wantReached is ok if somebody is there to connect to, be it the socket itself.
func (t *TCP) wantReached(f flow, ok reusecheck.Answer) reusecheck.Answer {
	if f.meetsItself() {
		return ok
	}
	ts := t.takersOf(f.dst, reusecheck.NoCPU)
	if l, _ := ts.pick(); l == none {
		return reusecheck.Fail(reusecheck.ECONNREFUSED)
	}
	return ok
}

// judgeReached judges the rest of a connect whose port is in order: it succeeds
// if somebody listens at the other end, or if the other end is the socket itself.
func (t *TCP) judgeReached(f flow, ok, got reusecheck.Answer) Verdict {
	want := t.wantReached(f, ok)
	refused := reusecheck.Fail(reusecheck.ECONNREFUSED)
	switch {
	case got.Kind == reusecheck.OK && want.Kind == reusecheck.OK:
		return agree(got)
	case got == refused && want != refused:
		return t.disagree(want)
	case got.Kind == reusecheck.Failed && !aboutPort(got):
		return agree(got)
	}
	return t.disagree(want)
}

// supplyOfFlow surveys the range for a connect, and notes who blocks a port.
func (t *TCP) supplyOfFlow(m *member, f flow, r reusecheck.PortRange) supply {
	return t.survey(r, func(number uint16) fit {
		return t.fitFlow(m, f.from(number), true)
	})
}

// fitFlow asks every owner of the flow's source port whether the flow may start
// there, and notes those that stand against it: a connection with the same
// 4-tuple always does; an overlapping owner whose port was not picked by connect
// does if the port is to be shared automatically, since it did not ask to share.
func (t *TCP) fitFlow(m *member, f flow, automatic bool) fit {
	req := Request{Binder: &m.Socket, Addr: f.src.Addr()}
	r := reachOf(m.Opts, f.src.Addr())
	before, result := len(t.conflicts), fits
	for i := t.firstOf(f.src.Port()); i != none; i = t.socks[i].next {
		o := &t.socks[i]
		if !req.overlaps(&r, &o.Socket) {
			continue
		}
		why := reusecheck.ReasonNone
		sure := !o.vague
		if same, certain := sameFlow(m, o, f); same {
			why, sure = reusecheck.RefuseTuple, sure && certain
		}
		if automatic && !o.ByConnect {
			why, sure = reusecheck.RefuseExplicit, !o.vague
		}
		switch {
		case why == reusecheck.ReasonNone:
		case sure:
			t.conflicts = append(t.conflicts, Conflict{o.ID, why})
		default:
			result = maybe
		}
	}
	if len(t.conflicts) > before {
		return blocked
	}
	return result
}

// sameFlow reports whether the connection of o, an owner of the flow's source, has
// the 4-tuple of the flow that m would open. It is not certain to stand against it when it is a TIME_WAIT socket,
// which a new connection may take over (tcp(7), tcp_tw_reuse; RFC 6191), or when
// only one of the two is bound to a device.
func sameFlow(m, o *member, f flow) (same, certain bool) {
	if o.State != reusecheck.Connected && o.State != reusecheck.TimeWait {
		return false, false
	}
	if unmapped(o.Peer) != f.dst {
		return false, false
	}
	return true, o.State == reusecheck.Connected && o.Dev == m.Dev
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// whyMaybe says why nothing certain can be said of a flow.
func (t *TCP) whyMaybe(f flow) string {
	for i := t.firstOf(f.src.Port()); i != none; i = t.socks[i].next {
		if t.socks[i].vague {
			return openVague
		}
	}
	return openReplace
}
