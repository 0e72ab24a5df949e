package model

import (
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// connect sets the peer. A socket without a port gets one first, and keeps it
// whatever comes of the rest.
func (u *UDP) connect(i int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	picked := u.socks[i].num == 0
	if picked {
		if r = u.with(r, u.requestAuto(i, seen), rc.EAGAIN); r.Kind == rc.Failed {
			return r
		}
		u.socks[i].fromConn = true
	} else {
		r.Path = rc.PathNone
	}
	src, dst, errno, why := u.route(i, op.Addr.Addr())
	if errno != 0 {
		return answer(r, errno, why)
	}
	u.setPeer(i, src, dst, op.Addr.Port())
	r.Answer = rc.Success
	if picked {
		r.Port = u.socks[i].num
	}
	return r
}

// route is the pair of addresses of traffic from a socket to an address, or why
// there is no way.
func (u *UDP) route(i int32, to netip.Addr) (src, dst addr, errno rc.Errno, why rc.Reason) {
	s := &u.socks[i]
	if to.Is6() && !s.is6 {
		return src, dst, rc.EAFNOSUPPORT, rc.RefuseFamily
	}
	dst = makeAddr(to)
	switch {
	case dst.any6() && !s.addr.is4():
		dst = loopback6
	case dst.any6():
		dst = mappedLoopback
	case dst == any4: // to itself, if it has an address
		if dst = s.addr; !dst.is4() || dst == any4 {
			dst = mappedLoopback
		}
	}
	if dst.is4() && s.is6 && s.flags&v6only != 0 {
		return src, dst, rc.ENETUNREACH, rc.RefuseFamily
	}
	src, errno = routeFrom(s.addr, dst, s.dev)
	return src, dst, errno, rc.RefuseDevice
}

// routeFrom is the local address of traffic to dst, by the routes of a namespace
// that has only a loopback.
func routeFrom(own, dst addr, dev rc.Dev) (addr, rc.Errno) {
	switch {
	case dev != rc.NoDev && dev != rc.DevLo, notLocalOn(dst, rc.NoDev) != rc.ReasonNone:
		return addr{}, rc.ENETUNREACH
	case own.is4() && !dst.is4():
		return addr{}, rc.EAFNOSUPPORT
	case !own.wildcard():
		return own, 0
	case dst.is4():
		return mappedLoopback, 0
	}
	return dst, 0
}

// setPeer is the second half of connect: peer, address, rehash, and the entry in
// the 4-tuple table.
func (u *UDP) setPeer(i int32, src, dst addr, port uint16) {
	s := &u.socks[i]
	was := s.tuple()
	if dst.is4() {
		s.peer = dst
	}
	if s.is6 {
		s.peer6 = dst
	}
	s.dest = port
	if s.addr.wildcard() {
		s.addr = src
		if u.rules.halfway {
			s.connected, s.late = true, true
			return
		}
		k := s.tuple()
		if u.rules.beforePeer && dst.is4() {
			k.peer, k.dest = was.peer, was.dest
		}
		u.rehash(i, k)
	}
	u.connectDone(i)
}

func (u *UDP) connectDone(i int32) {
	s := &u.socks[i]
	if s.group >= 0 {
		u.groups[s.group].hasConns = true
	}
	s.connected = true
	u.hashTuple(i)
}

// settle ends a connect that stopped halfway.
func (u *UDP) settle(i int32) {
	if s := &u.socks[i]; s.late {
		s.late = false
		u.rehash(i, s.tuple())
		u.connectDone(i)
	}
}

// disconnect is connect to AF_UNSPEC. It clears the bound device without a
// rehash.
func (u *UDP) disconnect(i int32) {
	s := &u.socks[i]
	s.connected, s.peer, s.dest, s.dev = false, addr{}, 0, rc.NoDev
	if !u.rules.keepsPeer6 {
		s.peer6 = addr{}
	}
	if !s.addrLock {
		s.addr = wildcardOf(s.is6)
		if s.portLock && !u.rules.stuckSlot {
			u.rehash(i, s.tuple())
		}
	}
	if u.rules.followsPeer {
		u.unhashTuple(i)
	}
	if !s.portLock {
		u.leave(i)
		s.fromConn = false
	}
}
