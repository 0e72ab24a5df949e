package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Follow takes note that op was answered got: right or wrong, it has happened.
func (t *TCP) Follow(op reusecheck.Op, got reusecheck.Answer) {
	done := got.Kind != reusecheck.Failed
	if op.Verb == reusecheck.VSocket {
		if done && !op.Family.IsUDP() && !op.HasNet {
			t.create(op)
		}
		return
	}
	m := t.find(op.Sock)
	if m == nil {
		return
	}
	switch op.Verb {
	case reusecheck.VBind:
		if done {
			t.bound(m, op.Addr, got.Port)
		} else {
			t.notBound(m, got.Errno)
		}
	case reusecheck.VListen:
		t.listened(m, got)
	case reusecheck.VConnect:
		if done {
			t.connected(m, op.Addr, got.Port)
			if other := t.find(op.Sock.OtherEnd()); op.Unaccepted && other != nil {
				t.queue(other)
			}
		} else {
			t.notConnected(m, op.Addr, got.Errno)
		}
	case reusecheck.VInherit:
		t.inherited(m, op, got)
	case reusecheck.VSet:
		if done {
			m.set(op)
		}
	case reusecheck.VShutdown:
		if done {
			t.shutDown(m)
		}
	case reusecheck.VDisconnect:
		if done {
			t.disconnected(m)
		}
	case reusecheck.VTimeWait:
		if done {
			t.timeWaited(m)
		}
	case reusecheck.VClose, reusecheck.VExpire:
		if done {
			t.endOther(op.Sock)
			t.endQueue(op.Sock)
			t.remove(t.find(op.Sock))
		}
	}
}

func (t *TCP) create(op reusecheck.Op) {
	t.add(reusecheck.Socket{
		ID: op.Sock, Family: op.Family, Opts: op.Opts, UID: op.UID, Dev: op.Dev, CPU: op.CPU, Range: op.Range,
		Local: netip.AddrPortFrom(reusecheck.Canonical(op.Family, netip.Addr{}), 0),
	})
}

// set: options, device and user change at once what later requests meet.
func (m *member) set(op reusecheck.Op) {
	switch op.Field {
	case reusecheck.SetUID:
		m.UID = op.UID
	case reusecheck.SetDev:
		m.Dev = op.Dev
	case reusecheck.SetCPU:
		m.CPU, m.heard = op.CPU, false
	case reusecheck.SetOpt:
		before := m.contradictory()
		if m.Opts &^= op.Opts; op.On {
			m.Opts |= op.Opts
		}
		m.vague = m.vague && !before || m.contradictory()
	}
}

// contradictory: a socket that has an IPv4 address and was then restricted to
// IPv6 receives nothing, by what the documents say. They do not say what it owns.
func (m *member) contradictory() bool {
	return m.Opts.Has(reusecheck.V6Only) && m.Local.Addr().Is4In6()
}

// bound: the user named the address unless it is the wildcard, and the port
// unless it is 0. That an address was named is not forgotten when the socket is
// bound anew to the wildcard (seen on 6.18.44; no document speaks of it). A socket that was bound to an IPv6 address of its own is an
// IPv6-only socket from then on (getsockopt says so).
func (t *TCP) bound(m *member, to netip.AddrPort, picked uint16) {
	addr := reusecheck.Canonical(m.Family, to.Addr())
	m.AddrLocked = m.AddrLocked || !addr.IsUnspecified()
	m.PortLocked = to.Port() != 0
	m.vague = false
	if addr.Is6() && !addr.Is4In6() && !addr.IsUnspecified() {
		m.Opts |= reusecheck.V6Only
	}
	switch {
	case to.Port() != 0:
		t.move(m, netip.AddrPortFrom(addr, to.Port()))
	case m.Opts.Has(reusecheck.NoPort) && picked == 0:
		t.move(m, netip.AddrPortFrom(addr, 0))
	default:
		t.movePicked(m, addr, picked)
	}
}

// notBound: a bind that is refused its port drops the address that an earlier one
// without a port had given the socket (seen on 6.18.44).
func (t *TCP) notBound(m *member, errno reusecheck.Errno) {
	if errno == reusecheck.EADDRINUSE && m.State == reusecheck.Idle && !m.Owner() && !m.lost {
		t.move(m, netip.AddrPortFrom(reusecheck.Canonical(m.Family, netip.Addr{}), 0))
	}
}

// movePicked gives m an address and the port that the stack picked; where the
// stack does not say which, the only one possible or a port unknown.
func (t *TCP) movePicked(m *member, addr netip.Addr, picked uint16) {
	if r := t.world.rangeFor(&m.Socket); picked == 0 && r.Size() == 1 {
		picked = r.Lo
	}
	t.move(m, netip.AddrPortFrom(addr, picked))
	if picked == 0 {
		m.lost = true
		t.lost++
	}
}

// listened: a refused listen leaves the socket as it was, but for EINVAL: the
// later kernels that forbid a second career pick a port first (seen on 6.18.44),
// but not for a connection that was shut down.
func (t *TCP) listened(m *member, got reusecheck.Answer) {
	if m.State != reusecheck.Idle && m.State != reusecheck.Listening {
		return
	}
	done := got.Kind != reusecheck.Failed
	late := got.Errno == reusecheck.EINVAL && m.used && !m.shut
	if (done || late) && !m.Owner() && !m.lost {
		t.movePicked(m, m.Local.Addr(), got.Port)
	}
	if done {
		m.State, m.used = reusecheck.Listening, true
	}
}

// connected: m gets the address of the route, a port if it had none, and at its
// other end a nameless socket of the listener's user.
func (t *TCP) connected(m *member, to netip.AddrPort, picked uint16) {
	f := flowOf(m, to)
	src := reusecheck.Canonical(m.Family, f.src.Addr())
	m.used, m.heard = true, true
	if m.Owner() {
		t.move(m, netip.AddrPortFrom(src, m.Local.Port()))
	} else {
		t.movePicked(m, src, picked)
		m.ByConnect, m.PortLocked = true, false
	}
	m.State = reusecheck.Connected
	m.Peer = netip.AddrPortFrom(reusecheck.Canonical(m.Family, f.dst.Addr()), f.dst.Port())
	f.src = unmapped(m.Local)
	t.replaceTimeWait(f, m)
	if !f.meetsItself() {
		t.acceptOther(m.ID, f)
	}
}

// acceptOther adds the nameless end that a listener accepts.
func (t *TCP) acceptOther(opener reusecheck.ID, f flow) {
	t.replaceTimeWait(flow{f.dst, f.src}, nil)
	ts := t.takersOf(f.dst, reusecheck.NoCPU)
	slot, sure := ts.pick()
	if slot == none {
		return
	}
	l := t.socks[slot].Socket
	m := t.accept(&l, opener.OtherEnd(), f.dst)
	m.Peer = netip.AddrPortFrom(reusecheck.Canonical(l.Family, f.src.Addr()), f.src.Port())
	m.vague = !sure
}

// accept adds the socket that listener l accepts: with l's options, user and
// device as they are now, without a claim of its own on the port, and on the
// processor that its packets come in on.
func (t *TCP) accept(l *reusecheck.Socket, id reusecheck.ID, at netip.AddrPort) *member {
	s := *l
	s.ID = id
	s.State = reusecheck.Connected
	s.Local = netip.AddrPortFrom(reusecheck.Canonical(l.Family, at.Addr()), at.Port())
	s.PortLocked, s.ByConnect, s.CPU = false, false, reusecheck.NoCPU
	m := t.add(s)
	m.used, m.heard = true, true
	return m
}

// replaceTimeWait ends the TIME_WAIT socket whose 4-tuple a new connection took. No
// document says whether m, which opened it, takes that of one on another device.
func (t *TCP) replaceTimeWait(f flow, m *member) {
	for i := t.firstOf(f.src.Port()); i != none; i = t.socks[i].next {
		o := &t.socks[i]
		if o.State == reusecheck.TimeWait && unmapped(o.Local) == f.src && unmapped(o.Peer) == f.dst {
			if m != nil && o.Dev != m.Dev {
				o.vague = true
				continue
			}
			t.remove(o)
			return
		}
	}
}

// notConnected: a connect that was refused on the way leaves an idle socket, which
// has got the address of the route by then; one that never started changes nothing.
func (t *TCP) notConnected(m *member, to netip.AddrPort, errno reusecheck.Errno) {
	if m.State != reusecheck.Idle {
		return
	}
	late := errno == reusecheck.EINVAL && m.used
	m.used, m.heard = true, true
	switch errno {
	case reusecheck.ENETUNREACH, reusecheck.EAFNOSUPPORT, reusecheck.EACCES, reusecheck.EPERM,
		reusecheck.EISCONN, reusecheck.EALREADY, reusecheck.EINPROGRESS:
		return
	case reusecheck.EINVAL:
		if !late {
			return
		}
	}
	src := reusecheck.Canonical(m.Family, flowOf(m, to).src.Addr())
	t.move(m, netip.AddrPortFrom(src, m.Local.Port()))
	if errno == reusecheck.ECONNREFUSED {
		t.knocked(m, flowOf(m, to))
	}
	t.released(m)
	t.unaddressed(m)
}

// knocked: a TIME_WAIT socket that a connection of m arrives at, with no listener
// behind it, does not survive it, and one whose 4-tuple it has was replaced before it
// was refused (seen on 6.18.44). From which port it came is not told where the stack
// picked one: then the socket may be there still.
func (t *TCP) knocked(m *member, f flow) {
	if from := unmapped(m.Local); m.Owner() {
		t.replaceTimeWait(flow{from, f.dst}, m)
		t.replaceTimeWait(flow{f.dst, from}, nil)
		return
	}
	r := t.world.rangeFor(&m.Socket)
	for i := t.firstOf(f.dst.Port()); i != none; i = t.socks[i].next {
		o := &t.socks[i]
		if peer := unmapped(o.Peer); o.State == reusecheck.TimeWait && unmapped(o.Local) == f.dst &&
			peer.Addr() == unmapped(m.Local).Addr() && r.Contains(peer.Port()) {
			o.vague = true
		}
	}
}

// inherited: the child is the named listener's. When another listener took the
// connection, nobody can tell what became of it.
func (t *TCP) inherited(l *member, op reusecheck.Op, got reusecheck.Answer) {
	if got.Kind != reusecheck.OK && got.Kind != reusecheck.Received {
		return
	}
	number := op.Addr.Port()
	if number == 0 {
		number = l.Local.Port()
	}
	from := l.Socket
	child := t.accept(&from, op.Child, netip.AddrPortFrom(op.Addr.Addr(), number))
	child.vague = got.Kind == reusecheck.Received
}

// released: a socket that is closed, or closes by itself, keeps its port only if
// the user named it.
func (t *TCP) released(m *member) {
	if m.PortLocked {
		return
	}
	t.move(m, netip.AddrPortFrom(m.Local.Addr(), 0))
	m.ByConnect = false
}

// unaddressed: an address that the user did not name is dropped.
func (t *TCP) unaddressed(m *member) {
	if m.AddrLocked {
		return
	}
	t.move(m, netip.AddrPortFrom(reusecheck.Canonical(m.Family, netip.Addr{}), m.Local.Port()))
	m.vague = false
}

// endOther ends the other end of id's connection.
func (t *TCP) endOther(id reusecheck.ID) {
	if other := t.find(id.OtherEnd()); other != nil {
		t.remove(other)
	}
}

// shutDown: a listener goes back to idle. A connection ends; whether its socket
// then still has the address that it got from the route is not documented.
func (t *TCP) shutDown(m *member) {
	switch m.State {
	case reusecheck.Listening:
		t.disconnected(m)
	case reusecheck.Connected:
		t.endOther(m.ID)
		m.State, m.Peer, m.shut = reusecheck.Idle, netip.AddrPort{}, true
		t.released(m)
		m.vague = !m.AddrLocked
	}
}

// queue leaves the nameless end of a connection with the listener that has it.
func (t *TCP) queue(other *member) {
	ts := t.takersOf(unmapped(other.Local), reusecheck.NoCPU)
	slot, sure := ts.pick()
	if slot != none {
		other.waits = t.socks[slot].ID
	}
	other.vague = other.vague || !sure
	t.waiting = true
}

// endQueue ends the connections that wait for a listener that stops: they are
// reset, and their openers are closed as by a shutdown.
func (t *TCP) endQueue(listener reusecheck.ID) {
	if !t.waiting {
		return
	}
	for i := range t.socks {
		if t.socks[i].live && t.socks[i].waits == listener {
			opener := t.find(t.socks[i].ID.OtherEnd())
			t.remove(&t.socks[i])
			if opener != nil {
				t.shutDown(opener)
			}
		}
	}
}

// disconnected: connect to AF_UNSPEC.
func (t *TCP) disconnected(m *member) {
	if m.State == reusecheck.Listening {
		t.endQueue(m.ID)
	}
	if m.State != reusecheck.Idle {
		t.endOther(m.ID)
		m.State, m.Peer = reusecheck.Idle, netip.AddrPort{}
		t.released(m)
	}
	m.shut = false
	t.unaddressed(m)
}

// timeWaited: what is left of a connection keeps options, device and address and
// has no user any more. It keeps the port whoever named it.
func (t *TCP) timeWaited(m *member) {
	t.endOther(m.ID)
	m.State, m.UID = reusecheck.TimeWait, 0
}
