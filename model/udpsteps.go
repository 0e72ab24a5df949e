package model

import rc "github.com/reusecheck/reusecheck"

// Do performs one operation.
func (u *UDP) Do(op rc.Op) (rc.Result, error) { return u.DoAs(op, rc.Answer{}) }

// Can reports what keeps the model from saying how an operation ends, nil for
// nothing.
func (u *UDP) Can(op rc.Op) error {
	switch op.Verb {
	case rc.VSocket:
		if !op.Family.IsUDP() || op.HasNet {
			return &rc.Unsupported{What: op.Family.String() + " sockets of other namespaces", Why: "this model is of one udp namespace"}
		}
		return nil
	case rc.VSend:
		return canArrive(op)
	case rc.VInherit, rc.VTimeWait, rc.VExpire, rc.VNetns, rc.VExit:
		return &rc.Unsupported{What: op.Verb.String() + " steps", Why: "they are not of system udp"}
	case rc.VConnect:
		i := u.find(op.Sock)
		if i < 0 {
			return nil
		}
		s, dst := &u.socks[i], op.Addr.Addr()
		if s.is6 && !s.addr.wildcard() && !s.addr.is4() && s.flags&v6only == 0 && (dst.Is4() || dst.Is4In6()) {
			return &rc.Unsupported{What: "IPv4 peers of an IPv6 address", Why: "the socket has no IPv4 address of its own"}
		}
		if _, _, errno, _ := u.route(i, dst); errno != 0 && s.num == 0 && u.rangeOf(i).Size() > 1 {
			return &rc.Unsupported{What: "an automatic port that nobody is told", Why: "the connect that picks it fails, and the port stays"}
		}
	}
	return nil
}

// canArrive: a datagram has addresses of one family, and both are specific.
func canArrive(op rc.Op) error {
	from, to := op.From.Addr().Unmap(), op.Addr.Addr().Unmap()
	if from.Is4() != to.Is4() || from.IsUnspecified() || to.IsUnspecified() || op.From.Port() == 0 || op.Addr.Port() == 0 {
		return &rc.Unsupported{What: "a datagram from " + op.From.String() + " to " + op.Addr.String(), Why: "no datagram has such addresses"}
	}
	return nil
}

// DoAs performs one operation; where the rules leave a choice it is made as
// seen, if some choice leads there.
func (u *UDP) DoAs(op rc.Op, seen rc.Answer) (rc.Result, error) {
	r := rc.Result{Decider: rc.NoID}
	if err := u.Can(op); err != nil {
		return r, err
	}
	switch op.Verb {
	case rc.VSocket:
		u.create(op)
		r.Answer, r.Path = rc.Success, rc.PathNone
		return r, nil
	case rc.VSend:
		return u.send(op, seen, r), nil
	}
	i := u.find(op.Sock)
	if i < 0 {
		return answer(r, rc.EBADF, rc.RefuseGone), nil
	}
	u.stale -= u.offTable(i)
	u.settle(i)
	r = u.doTo(i, op, seen, r)
	u.stale += u.offTable(i)
	if r.Path == rc.PathUnknown {
		r.Path = rc.PathNone
	}
	return r, nil
}

func (u *UDP) doTo(i int32, op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	s := &u.socks[i]
	switch op.Verb {
	case rc.VBind:
		return u.bind(i, op, seen, r)
	case rc.VConnect:
		return u.connect(i, op, seen, r)
	case rc.VListen:
		return answer(r, rc.EOPNOTSUPP, rc.RefuseState)
	case rc.VShutdown:
		if !s.connected {
			return answer(r, rc.ENOTCONN, rc.RefuseState)
		}
	case rc.VSet:
		return u.set(i, op, r)
	case rc.VDisconnect:
		u.disconnect(i)
	case rc.VClose:
		u.leave(i)
		u.destroy(i)
	}
	r.Answer = rc.Success
	return r
}

func (u *UDP) set(i int32, op rc.Op, r rc.Result) rc.Result {
	s := &u.socks[i]
	r.Answer = rc.Success
	switch op.Field {
	case rc.SetUID:
		s.uid = op.UID
	case rc.SetCPU:
		u.prefer(i, op.CPU)
	case rc.SetDev:
		s.dev = op.Dev
		if u.rules.deviceRehash {
			u.rehash(i, s.tuple())
		}
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
		case op.On:
			s.flags |= f
		default:
			s.flags &^= f
		}
	}
	return r
}
