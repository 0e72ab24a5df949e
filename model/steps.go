package model

import rc "github.com/reusecheck/reusecheck"

// Do performs one operation.
func (t *TCP) Do(op rc.Op) (rc.Result, error) { return t.DoAs(op, rc.Answer{}) }

// Can reports what keeps the model from saying how an operation ends, nil for
// nothing: the few corners where the kernel depends on more than it models.
func (t *TCP) Can(op rc.Op) error {
	if op.Verb == rc.VSocket {
		if op.Family.IsUDP() || op.HasNet {
			return &rc.Unsupported{What: op.Family.String() + " sockets of other namespaces", Why: "this model is of one tcp namespace"}
		}
		return nil
	}
	if op.Verb > rc.VExpire {
		return &rc.Unsupported{What: op.Verb.String() + " steps", Why: "they are not of system tcp"}
	}
	i := t.find(op.Sock)
	if i < 0 {
		return nil
	}
	s := &t.socks[i]
	switch waits := s.other >= 0 && t.owns[s.other].flags&pending != 0; {
	case waits && (op.Verb == rc.VTimeWait || op.Verb == rc.VShutdown):
		return &rc.Unsupported{What: "an end of a connection that nobody accepted", Why: "its other end cannot be closed"}
	case op.Verb == rc.VConnect && t.queues(op.Addr.Port()), op.Verb == rc.VInherit && t.queues(s.num):
		return &rc.Unsupported{What: "a connection behind one that nobody accepted", Why: "accepting it takes the other one first"}
	case s.twin && op.Verb != rc.VClose && op.Verb != rc.VSet:
		return &rc.Unsupported{What: "two connections with one 4-tuple", Why: "they disturb each other"}
	case op.Verb == rc.VListen && t.rules.onceOnly && s.sentSYN && s.num == 0 && t.rangeOf(i).Size() > 1:
		return &rc.Unsupported{What: "an automatic port that nobody is told", Why: "the listen that picks it fails, and the port stays"}
	case op.Verb == rc.VConnect && s.is6 && !s.addr.wildcard() && !s.addr.is4() && t.owns[i].flags&v6only == 0 &&
		(op.Addr.Addr().Is4() || op.Addr.Addr().Is4In6()):
		return &rc.Unsupported{What: "IPv4 connections from an IPv6 address", Why: "the socket has no IPv4 address of its own"}
	}
	return nil
}

// queues reports whether a connection waits in the queue of one of a port's listeners.
func (t *TCP) queues(port uint16) bool {
	if t.waiting == 0 {
		return false
	}
	for i := range t.socks {
		if s := &t.socks[i]; s.live && s.queue >= 0 && t.socks[s.queue].num == port {
			return true
		}
	}
	return false
}

// DoAs performs one operation; where the rules leave a choice it is made as
// seen, if some choice leads there.
func (t *TCP) DoAs(op rc.Op, seen rc.Answer) (rc.Result, error) {
	r := rc.Result{Decider: rc.NoID}
	if err := t.Can(op); err != nil {
		return r, err
	}
	if op.Verb == rc.VSocket {
		return t.socket(op, r), nil
	}
	i := t.find(op.Sock)
	if i < 0 {
		return answer(r, rc.EBADF, rc.RefuseGone), nil
	}
	waits := t.owns[i].flags&timeWait != 0
	if waits && op.Verb != rc.VExpire && op.Verb != rc.VClose {
		return answer(r, rc.EBADF, rc.RefuseGone), nil
	}
	port := t.socks[i].num
	if op.Verb == rc.VBind && port == 0 {
		port = op.Addr.Port()
	}
	r.Before = t.CacheOf(port)
	switch op.Verb {
	case rc.VBind:
		r = t.bind(i, op, seen, r)
	case rc.VListen:
		r = t.listen(i, seen, r)
	case rc.VConnect:
		r = t.connect(i, op, seen, r)
	case rc.VInherit:
		if p := op.Addr.Port(); p != 0 {
			port = p
			r.Before = t.CacheOf(port)
		}
		r = t.inherit(i, op, seen, r)
	case rc.VSet:
		r = t.set(i, op, r)
	case rc.VShutdown:
		r = t.shutdown(i, r)
	case rc.VDisconnect:
		t.disconnect(i)
		r.Answer = rc.Success
	case rc.VClose:
		t.close(i)
		r.Answer = rc.Success
	case rc.VTimeWait:
		r = t.timewait(i, r)
	case rc.VExpire:
		r = t.expire(i, r)
	}
	if j := t.find(op.Sock); j >= 0 && op.Verb != rc.VInherit && t.socks[j].num != 0 {
		port = t.socks[j].num
	}
	if port != 0 {
		r.HasCache = true
		r.After = t.CacheOf(port)
		r.AddrAfter = t.pairOf(op)
	}
	if r.Path == rc.PathUnknown {
		r.Path = rc.PathNone
	}
	return r, nil
}

func answer(r rc.Result, e rc.Errno, why rc.Reason) rc.Result {
	r.Answer, r.Reason, r.Path = rc.Fail(e), why, rc.PathNone
	return r
}

// with adds what a request for a port came to.
func (t *TCP) with(r rc.Result, v verdict) rc.Result {
	r.Path, r.Visited, r.Reason = v.path, v.visited, v.reason
	if v.decider >= 0 {
		r.Decider = t.socks[v.decider].id
	}
	r.Answer = rc.Success
	if v.refused() {
		r.Answer = rc.Fail(rc.EADDRINUSE)
	}
	return r
}

func (t *TCP) socket(op rc.Op, r rc.Result) rc.Result {
	i := t.create(op.Sock)
	s, o := &t.socks[i], &t.owns[i]
	s.is6 = op.Family.Is6()
	if !s.is6 {
		s.addr = any4
	}
	s.noPort, s.transparent = op.Opts.Has(rc.NoPort), op.Opts.Has(rc.Transparent)
	s.span, s.cpu = op.Range, op.CPU
	o.uid, o.dev = op.UID, op.Dev
	o.flags = flagsOf(op.Opts)
	if !s.is6 {
		o.flags &^= v6only
	}
	r.Answer, r.Path = rc.Success, rc.PathNone
	return r
}

func flagsOf(o rc.Opt) flags {
	var f flags
	if o.Has(rc.ReuseAddr) {
		f |= reuseAddr
	}
	if o.Has(rc.ReusePort) {
		f |= reusePort
	}
	if o.Has(rc.V6Only) {
		f |= v6only
	}
	return f
}

// idleState reports whether a socket is in the kernel's CLOSE state.
func (t *TCP) idleState(i int32) bool { return t.owns[i].flags&(listens|established) == 0 }

func (t *TCP) bind(i int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	s, o := &t.socks[i], &t.owns[i]
	if op.Addr.Addr().Is6() && !s.is6 {
		return answer(r, rc.EAFNOSUPPORT, rc.RefuseFamily)
	}
	a := makeAddr(op.Addr.Addr())
	if s.is6 && a.is4() && o.flags&v6only != 0 {
		return answer(r, rc.EINVAL, rc.RefuseFamily)
	}
	state := !t.idleState(i) || s.num != 0
	if state && s.is6 {
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	if why := t.notLocal(i, a); why != rc.ReasonNone {
		return answer(r, rc.EADDRNOTAVAIL, why)
	}
	if state {
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	wasFlags := o.flags
	s.addr = a
	if s.is6 && !a.any6() && !a.is4() {
		o.flags |= v6only
	}
	port := op.Addr.Port()
	v := verdict{path: rc.PathNone, decider: none, reason: rc.ReasonNone}
	switch {
	case port != 0:
		v = t.request(i, port)
	case !s.noPort:
		v = t.requestAuto(i, seen)
	}
	s, o = &t.socks[i], &t.owns[i]
	r = t.with(r, v)
	if v.refused() {
		// The address goes back to the wildcard, whatever it was before; a
		// lock that an earlier bind set on it stays.
		s.addr, o.flags = wildcardOf(s.is6), wasFlags
		return r
	}
	// ::ffff:0.0.0.0 counts as an address that was asked for.
	s.addrLock = s.addrLock || !a.wildcard() || s.is6 && a.is4()
	if port != 0 {
		s.portLock = true
	} else if s.num != 0 {
		r.Port = s.num
	}
	return r
}

// notLocal reports why an address cannot be bound: the namespace has all of
// 127/8, ::1, and fd00::1 and fd00::2 on its loopback. A host-scope IPv6 address
// must be on the socket's device, one of wider scope need not.
func (t *TCP) notLocal(i int32, a addr) rc.Reason { return notLocalOn(a, t.owns[i].dev) }

func notLocalOn(a addr, dev rc.Dev) rc.Reason {
	switch {
	case a.wildcard():
		return rc.ReasonNone
	case a.is4():
		if uint32(a.lo)>>24 != 127 {
			return rc.RefuseNotLocal
		}
	case a == loopback6:
		if dev != rc.NoDev && dev != rc.DevLo {
			return rc.RefuseDevice
		}
	case a.hi != uniqueLocal || a.lo != 1 && a.lo != 2:
		return rc.RefuseNotLocal
	}
	return rc.ReasonNone
}

var loopback6 = addr{0, 1}

const uniqueLocal = 0xfd00 << 48

func (t *TCP) listen(i int32, seen rc.Answer, r rc.Result) rc.Result {
	o := &t.owns[i]
	switch {
	case o.flags&listens != 0:
		r.Answer = rc.Success
		return r
	case o.flags&established != 0 || t.socks[i].linked:
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	o.flags |= listens
	var v verdict
	picked := t.socks[i].num == 0
	if picked {
		v = t.requestAuto(i, seen)
	} else {
		v = t.request(i, t.socks[i].num)
	}
	r = t.with(r, v)
	s := &t.socks[i]
	if v.refused() || t.rules.onceOnly && s.sentSYN {
		t.owns[i].flags &^= listens
		if !v.refused() {
			r.Answer, r.Reason = rc.Fail(rc.EINVAL), rc.RefuseState
		}
		return r
	}
	if picked {
		r.Port = s.num
	}
	s.listened = true
	t.enterListeners(i)
	return r
}

func (t *TCP) set(i int32, op rc.Op, r rc.Result) rc.Result {
	s, o := &t.socks[i], &t.owns[i]
	r.Answer = rc.Success
	switch op.Field {
	case rc.SetUID:
		o.uid = op.UID
	case rc.SetDev:
		o.dev = op.Dev
	case rc.SetCPU:
		s.cpu, s.heard = op.CPU, false
	case rc.SetOpt:
		f := flagsOf(op.Opts)
		switch {
		case op.Opts == rc.NoPort:
			s.noPort = op.On
		case op.Opts == rc.Transparent:
			s.transparent = op.On
		case f == v6only && !s.is6:
			return answer(r, rc.ENOPROTOOPT, rc.RefuseFamily)
		case f == v6only && s.num != 0:
			return answer(r, rc.EINVAL, rc.RefuseState)
		case f != v6only && t.rules.optionsFixed && s.num != 0:
			return answer(r, rc.EBUSY, rc.RefuseState)
		case op.On:
			o.flags |= f
		default:
			o.flags &^= f
		}
	}
	return r
}
