package model

import rc "github.com/reusecheck/reusecheck"

func (t *TCP) connect(i int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	s, o := &t.socks[i], &t.owns[i]
	if s.linked || !t.idleState(i) {
		return answer(r, rc.EISCONN, rc.RefuseState)
	}
	if op.Addr.Addr().Is6() && !s.is6 {
		return answer(r, rc.EAFNOSUPPORT, rc.RefuseFamily)
	}
	dst := makeAddr(op.Addr.Addr())
	if dst.any6() {
		dst = loopback6
		if s.is6 && s.addr.is4() {
			dst = mappedLoopback
		}
	} else if dst == any4 {
		// The IPv4 wildcard as a destination is the socket's own address.
		if dst = mappedLoopback; s.addr.is4() && s.addr != any4 {
			dst = s.addr
		}
	}
	if dst.is4() && s.is6 && o.flags&v6only != 0 {
		return answer(r, rc.ENETUNREACH, rc.RefuseFamily)
	}
	src, errno := t.source(i, dst)
	if errno != 0 {
		return answer(r, errno, rc.RefuseDevice)
	}
	if t.rules.onceOnly && s.listened {
		t.takeSource(i, src)
		t.connectFailed(i)
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	t.takeSource(i, src)
	v := verdict{path: rc.PathNone, decider: none}
	picked := t.socks[i].num == 0
	if picked {
		v = t.connectPort(i, dst, op.Addr.Port(), seen)
	} else if w := t.tupleTaken(i, s.num, dst, op.Addr.Port(), true); w >= 0 {
		v.decider, v.reason = w, rc.RefuseTuple
	}
	r = t.with(r, v)
	if v.refused() {
		r.Answer = rc.Fail(rc.EADDRNOTAVAIL)
		t.connectFailed(i)
		return r
	}
	s = &t.socks[i]
	s.sentSYN = true
	s.cpu, s.heard = rc.NoCPU, true
	l, self := none, s.addr == dst && s.num == op.Addr.Port()
	if !self { // else its SYN meets itself before a TIME_WAIT socket on lo
		t.wakeTimeWait(s.addr, s.num, dst, op.Addr.Port())
		l, _ = t.lookup(dst, op.Addr.Port(), rc.NoCPU)
		s = &t.socks[i]
	}
	if l < 0 && !self {
		t.connectFailed(i)
		r.Answer, r.Reason = rc.Fail(rc.ECONNREFUSED), rc.RefuseNoListener
		return r
	}
	if picked {
		r.Port = s.num
	}
	t.markTwins(i, dst, op.Addr.Port())
	s.linked, s.peer, s.dest = true, dst, op.Addr.Port()
	t.owns[i].flags |= established
	if !self {
		t.accepted(i, l, op.Unaccepted)
	}
	return r
}

// accepted makes the other end of i's connection, which listener l takes. A socket
// whose SYN comes back to it is its own other end: it is found by its 4-tuple before
// any listener is (simultaneous open; seen on 6.1, 6.12 and 6.18).
func (t *TCP) accepted(i, l int32, waits bool) {
	s := &t.socks[i]
	end := t.child(l, s.id.OtherEnd(), s.peer, s.dest)
	s = &t.socks[i]
	s.other, t.socks[end].other = end, i
	t.socks[end].peer, t.socks[end].dest = s.addr, s.num
	if waits {
		t.socks[end].queue = l
		t.waiting++
		t.owns[end].flags |= pending
	}
}

var mappedLoopback = addr{0, mappedPrefix | 0x7f000001}

// source is the local address of a connection to dst, by the routes of a
// namespace that has only a loopback: 127.0.0.1 towards 127/8, and towards an
// IPv6 address that address itself.
func (t *TCP) source(i int32, dst addr) (addr, rc.Errno) {
	s := &t.socks[i]
	if d := t.owns[i].dev; d != rc.NoDev && d != rc.DevLo {
		return addr{}, rc.ENETUNREACH
	}
	if s.addr.is4() && !dst.is4() {
		return addr{}, rc.EAFNOSUPPORT
	}
	if !s.addr.wildcard() {
		if s.addr.is4() != dst.is4() {
			return addr{}, rc.ENETUNREACH
		}
		return s.addr, 0
	}
	if dst.is4() {
		if uint32(dst.lo)>>24 != 127 {
			return addr{}, rc.ENETUNREACH
		}
		return mappedLoopback, 0
	}
	return dst, 0
}

// takeSource gives a socket without an address of its own the connection's.
func (t *TCP) takeSource(i int32, src addr) {
	if t.socks[i].addr != src {
		t.moveTo(i, src)
	}
}

// connectFailed undoes what a connect did before it failed.
func (t *TCP) connectFailed(i int32) {
	if !t.socks[i].portLock {
		t.leave(i)
	}
	if t.rules.lostReset && t.owns[i].port >= 0 {
		// The address goes back, the address bucket does not follow.
		if s := &t.socks[i]; !s.addrLock {
			s.addr = wildcardOf(s.is6)
		}
		return
	}
	if !t.rules.keepsAddress {
		t.resetAddr(i)
	}
}

// markTwins takes note of two connections with one 4-tuple, which devices make
// possible. They disturb each other from then on: the model says no more of them.
func (t *TCP) markTwins(i int32, dst addr, dport uint16) {
	s := &t.socks[i]
	t.ownersOf(t.owns[i].port, func(j int32) bool {
		o := &t.socks[j]
		if j != i && t.owns[j].flags&established != 0 && o.addr == s.addr && o.dest == dport && o.peer == dst {
			o.twin, s.twin = true, true
			return false
		}
		return true
	})
}

// tupleTaken gives the socket that has the connection's 4-tuple, none if it is
// free. A TIME_WAIT socket gives its 4-tuple up to one that holds the port
// (its connection used timestamps), never to one that searches for a port: that
// takes a second of age.
func (t *TCP) tupleTaken(i int32, port uint16, dst addr, dport uint16, held bool) int32 {
	src := t.socks[i].addr
	p := t.index.get(port)
	if p < 0 {
		return none
	}
	found := none
	t.ownersOf(p, func(j int32) bool {
		s := &t.socks[j]
		f := t.owns[j].flags
		if j == i || f&(established|timeWait) == 0 || s.addr != src || s.dest != dport || s.peer != dst {
			return true
		}
		// A socket on a device is another connection's only for those on it.
		if d := t.owns[j].dev; d != rc.NoDev && d != t.owns[i].dev {
			return true
		}
		if f&timeWait != 0 && held {
			t.leave(j)
			t.destroy(j)
			return false
		}
		found = j
		return false
	})
	return found
}

// wakeTimeWait ends the TIME_WAIT socket that a SYN arrives at: a listener behind
// it takes the connection over, and where there is none the answer provokes a
// reset that ends it (seen on 6.12).
func (t *TCP) wakeTimeWait(src addr, port uint16, dst addr, dport uint16) {
	p := t.index.get(dport)
	if p < 0 {
		return
	}
	t.ownersOf(p, func(j int32) bool {
		s := &t.socks[j]
		if t.owns[j].flags&timeWait != 0 && s.addr == dst && s.peer == src && s.dest == port {
			t.leave(j)
			t.destroy(j)
			return false
		}
		return true
	})
}

// ownersOf calls yield for each owner of a port until it returns false.
func (t *TCP) ownersOf(p int32, yield func(int32) bool) {
	if !t.rules.addrOwnersOnly {
		for i := t.ports[p].owners; i >= 0; {
			next := t.owns[i].nextP
			if !yield(i) {
				return
			}
			i = next
		}
		return
	}
	for b := t.ports[p].addrs; b >= 0; {
		nextB := t.addrs[b].next
		for i := t.addrs[b].owners; i >= 0; {
			next := t.owns[i].next
			if !yield(i) {
				return
			}
			i = next
		}
		b = nextB
	}
}

// connectPort finds a port for a connection. A port in use may be shared only
// if every owner came by connect (both cache fields negative), and the 4-tuple
// must be free.
func (t *TCP) connectPort(i int32, dst addr, dport uint16, seen rc.Answer) verdict {
	v := verdict{path: rc.PathNone, decider: none, reason: rc.RefuseExhausted}
	want := seenPort(seen)
	// A connection that was refused had a port, and another than its destination's
	// where it would have met itself.
	elsewhere := seen.Kind == rc.Failed && seen.Errno != rc.EADDRNOTAVAIL
	if elsewhere {
		want = -1
	}
	elsewhere = elsewhere && t.socks[i].addr == dst
	usable := func(port int) bool {
		p := t.index.get(uint16(port))
		switch {
		case t.reservedPort(port), elsewhere && port == int(dport):
			return false
		case p < 0:
			return true
		case (t.ports[p].fast >= 0 || t.ports[p].share >= 0) && !t.connectShares(i, p):
			if v.reason == rc.RefuseExhausted {
				v.path, v.reason = rc.PathFast, rc.RefuseExplicit
			}
			return false
		}
		if j := t.tupleTaken(i, uint16(port), dst, dport, false); j >= 0 {
			if v.reason == rc.RefuseExhausted {
				v.path, v.decider, v.reason = rc.PathScan, j, rc.RefuseTuple
			}
			return false
		}
		return true
	}
	r := t.rangeOf(i)
	s := part{lo: int(r.Lo), size: r.Size(), step: 2}
	if t.rules.onePass && t.socks[i].span != (rc.PortRange{}) {
		s.step = 1
	}
	port, _ := s.search(usable, want)
	if port == 0 {
		return v
	}
	v.path, v.reason, v.decider = rc.PathScan, rc.AdmitShared, none
	p := t.index.get(uint16(port))
	if p < 0 {
		v.path, v.reason = rc.PathNone, rc.AdmitEmpty
		p = t.portBucketFor(uint16(port))
		t.ports[p].fast, t.ports[p].share = -1, -1
	}
	sk := &t.socks[i]
	sk.num = uint16(port)
	t.owns[i].flags |= byConnect
	t.join(i, p, t.addrBucketFor(p, sk.addr, sk.is6, -1))
	return v
}

// connectShares is the rule of a proposed repair: a port with explicit owners
// is open to connect where none of them overlaps.
func (t *TCP) connectShares(i, p int32) bool {
	if !t.rules.connectOverlap {
		return false
	}
	free := true
	t.ownersOf(p, func(j int32) bool {
		o := &t.owns[j]
		if o.flags&byConnect == 0 && overlap(t.socks[i].addr, t.owns[i].flags&v6only != 0, t.socks[j].addr, o.flags&v6only != 0) {
			free = false
		}
		return free
	})
	return free
}

// child makes the accepted end of a connection that arrived at dst for a
// listener: it takes after the listener and is never checked.
func (t *TCP) child(l int32, id rc.ID, dst addr, port uint16) int32 {
	c := t.create(id)
	ls, lo := &t.socks[l], &t.owns[l]
	s, o := &t.socks[c], &t.owns[c]
	s.is6, s.addr, s.num = ls.is6, dst, port
	s.linked, s.addrLock, s.sentSYN, s.heard = true, ls.addrLock, true, true
	s.noPort, s.transparent = ls.noPort, ls.transparent
	o.uid, o.dev = lo.uid, lo.dev
	o.flags = lo.flags&(reuseAddr|reusePort|v6only) | established
	p := lo.port
	if port != ls.num {
		p = t.portBucketFor(port)
		b := t.addrBucketFor(p, dst, s.is6, 0)
		q := t.asking(c)
		if t.rules.childUID0 {
			q.uid = 0 // nobody has accepted it yet (seen on 6.1: the cache is keyed to user 0)
		}
		t.update(&q, p, b, false)
		t.join(c, p, b)
		return c
	}
	t.join(c, p, t.addrBucketFor(p, dst, s.is6, 0))
	return c
}

func (t *TCP) inherit(l int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	s := &t.socks[l]
	dst := makeAddr(op.Addr.Addr())
	port := op.Addr.Port()
	redirected := port != 0 && port != s.num
	if port == 0 {
		port = s.num
	}
	if redirected {
		// The connection is handed to the listener whatever its address.
		if d := t.owns[l].dev; d != rc.NoDev && d != rc.DevLo {
			return answer(r, rc.ECONNREFUSED, rc.RefuseDevice) // it answers through a device that leads nowhere
		}
		if t.owns[l].flags&listens == 0 || !dst.is4() && !s.is6 || dst.is4() && s.is6 && t.owns[l].flags&v6only != 0 {
			return answer(r, rc.ECONNREFUSED, rc.RefuseNoListener)
		}
	} else {
		by := none
		if port != 0 {
			by = t.takenAs(l, dst, port, op.CPU, seen)
		}
		switch {
		case by < 0:
			return answer(r, rc.ECONNREFUSED, rc.RefuseNoListener)
		case by != l:
			r.Answer, r.Path = rc.Answer{Kind: rc.Received, Who: t.socks[by].id}, rc.PathNone
			return r
		}
	}
	t.child(l, op.Child, dst, port)
	r.Answer, r.Path = rc.Success, rc.PathNone
	return r
}
