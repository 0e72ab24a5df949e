package model

import rc "github.com/reusecheck/reusecheck"

// manyInSlot is how many sockets a primary slot must hold more than for the
// address slots to be looked at instead.
const manyInSlot = 10

// stands reports whether owner o is a candidate against binder b, and whether it
// is one that shares. Options, user and device are read as they are now.
func (u *UDP) stands(b, o *udpSock) (candidate, shares bool) {
	if b.flags&o.flags&reuseAddr != 0 || b.dev != o.dev && b.dev != rc.NoDev && o.dev != rc.NoDev || !u.meet(b, o) {
		return false, false
	}
	return true, b.flags&o.flags&reusePort != 0 && b.uid == o.uid && b.group < 0
}

// meet reports whether a binder's address overlaps an owner's. To an IPv4 binder
// an IPv6 socket that came to a specific address by connect, so that it is not
// v6only, has the stand-in 127.0.0.6, which the wildcard covers.
func (u *UDP) meet(b, o *udpSock) bool {
	if !b.is6 && o.is6 && !o.addr.is4() && !o.addr.any6() && o.flags&v6only == 0 && !u.rules.noStandIn {
		return b.addr == any4 || b.addr == standIn
	}
	if b.addr.is4() && o.flags&v6only != 0 {
		return false // also where the owner has an IPv4 address, from before it was v6only
	}
	return overlap(b.addr, b.flags&v6only != 0, o.addr, o.flags&v6only != 0)
}

var standIn = addr{0, mappedPrefix | 0x7f000006}

// walk is one look through a slot: the first candidate decides.
func (u *UDP) walk(i, first int32, next func(*udpSock) int32, v verdict) verdict {
	b := &u.socks[i]
	for j := first; j >= 0; j = next(&u.socks[j]) {
		v.visited++
		u.note(u.socks[j].id)
		if j == i {
			continue
		}
		o := &u.socks[j]
		candidate, shares := u.stands(b, o)
		if !candidate {
			continue
		}
		v.decider, v.reason = j, rc.AdmitScan
		if shares && u.rules.everyOwner {
			continue
		}
		if !shares {
			v.reason = refusal(b.flags, o.flags, false)
		}
		return v
	}
	return v
}

func nextInPort(s *udpSock) int32 { return s.next }
func nextInAddr(s *udpSock) int32 { return s.nextA }

// request asks for a port that was named, and takes it if it is to be had. The
// socket has its address already.
func (u *UDP) request(i int32, port uint16) verdict {
	v := verdict{path: rc.PathNone, decider: none, reason: rc.AdmitEmpty}
	if p := u.index.get(port); p >= 0 {
		v = u.scan(i, p, port)
	}
	if !v.refused() && !u.take(i, port) {
		v.decider, v.reason = none, rc.RefuseGroup
	}
	return v
}

// scan looks at the owners of a port: in the address slots when the port has many
// , else in its primary slot.
func (u *UDP) scan(i, p int32, port uint16) verdict {
	s, l := &u.socks[i], &u.ports[p]
	v := verdict{path: rc.PathScan, decider: none, reason: rc.AdmitScan}
	if l.count > manyInSlot && (u.rules.wildcardBySlot || !s.addr.wildcard()) {
		own, any := u.slotAt(s.addr, port), u.slotAt(addr{}, port)
		if own == nil || own.count <= l.count {
			v.path = rc.PathFast
			if own != nil {
				v = u.walk(i, own.first, nextInAddr, v)
			}
			if !v.refused() && any != nil && any != own {
				v.decider, v.reason = none, rc.AdmitScan
				v = u.walk(i, any.first, nextInAddr, v)
			}
			return v
		}
	}
	return u.walk(i, l.first, nextInPort, v)
}

// take gives a socket its port and its places, and reports whether its reuseport
// group had room for it.
func (u *UDP) take(i int32, port uint16) bool {
	s := &u.socks[i]
	if s.flags&reusePort != 0 && !u.joinGroup(i, port) {
		return false
	}
	u.socks[i].num = port
	u.enter(i)
	return true
}

// requestAuto picks a port in which no candidate refuses: all of them are weighed
// here, not the first only.
func (u *UDP) requestAuto(i int32, seen rc.Answer) verdict {
	v := verdict{path: rc.PathNone, decider: none, reason: rc.RefuseExhausted}
	usable := func(port int) bool {
		if u.reservedPort(port) {
			return false
		}
		p := u.index.get(uint16(port))
		if p < 0 {
			return true
		}
		b := &u.socks[i]
		v.path = rc.PathScan
		for j := u.ports[p].first; j >= 0; j = u.socks[j].next {
			v.visited++
			if candidate, shares := u.stands(b, &u.socks[j]); candidate && !shares {
				v.decider = j
				return false
			}
		}
		return true
	}
	r := u.rangeOf(i)
	port := 0
	if at := seenPort(seen); at > 0 && r.Contains(uint16(at)) && usable(at) {
		port = at
	}
	for p := int(r.Lo); port == 0 && p <= int(r.Hi); p++ {
		if usable(p) {
			port = p
		}
	}
	if port == 0 {
		return v
	}
	v.decider, v.reason = none, rc.AdmitScan
	if v.visited == 0 {
		v.reason = rc.AdmitEmpty
	}
	if !u.take(i, uint16(port)) {
		v.reason = rc.RefuseGroup
	}
	return v
}

func (u *UDP) reservedPort(port int) bool {
	for _, r := range u.reserved {
		if r.Contains(uint16(port)) {
			return true
		}
	}
	return false
}

// rangeOf is the range that a socket's automatic port comes from.
func (u *UDP) rangeOf(i int32) rc.PortRange { return narrow(u.auto, u.socks[i].span) }

// bind is bind(2), whose tests in front of the port are TCP's.
func (u *UDP) bind(i int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	s := &u.socks[i]
	if op.Addr.Addr().Is6() && !s.is6 {
		return answer(r, rc.EAFNOSUPPORT, rc.RefuseFamily)
	}
	a := makeAddr(op.Addr.Addr())
	if s.is6 && a.is4() && s.flags&v6only != 0 {
		return answer(r, rc.EINVAL, rc.RefuseFamily)
	}
	state := s.connected || s.num != 0
	if state && s.is6 {
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	if why := notLocalOn(a, s.dev); why != rc.ReasonNone && !s.transparent {
		return answer(r, rc.EADDRNOTAVAIL, why)
	}
	if state {
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	wasFlags := s.flags
	s.addr = a
	if s.is6 && !a.any6() && !a.is4() {
		s.flags |= v6only
	}
	port := op.Addr.Port()
	v := verdict{path: rc.PathNone, decider: none, reason: rc.ReasonNone}
	switch {
	case port != 0:
		v = u.request(i, port)
	case !s.noPort:
		v = u.requestAuto(i, seen)
	}
	r = u.with(r, v, rc.EADDRINUSE)
	s = &u.socks[i]
	if v.refused() {
		s.addr, s.flags = wildcardOf(s.is6), wasFlags
		return r
	}
	s.addrLock = s.addrLock || !a.wildcard() || s.is6 && a.is4()
	// bind forgets the peer that a connect had left.
	s.peer, s.dest = addr{}, 0
	if port != 0 {
		s.portLock = true
	} else if s.num != 0 {
		r.Port = s.num
	}
	return r
}

// with adds what a request for a port came to.
func (u *UDP) with(r rc.Result, v verdict, refused rc.Errno) rc.Result {
	r.Path, r.Visited, r.Reason = v.path, v.visited, v.reason
	if v.decider >= 0 {
		r.Decider = u.socks[v.decider].id
	}
	r.Answer = rc.Success
	if v.refused() {
		r.Answer = rc.Fail(refused)
	}
	return r
}
