package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Why a UDP step can be left open.
const (
	openBothFamilies = "no document says what an IPv6 socket receives that has an IPv6 address and an IPv4 peer"
	openAnyPort      = "no document says what a socket receives that is connected to port 0"
)

// Judge says what op should be answered, given what the stack answered, which
// counts only where several answers are allowed. It changes nothing.
func (u *UDP) Judge(op reusecheck.Op, got reusecheck.Answer) Verdict {
	u.conflicts, u.allowed, u.shared = u.conflicts[:0], u.allowed[:0], u.shared[:0]
	switch op.Verb {
	case reusecheck.VSocket:
		return agree(got)
	case reusecheck.VSend:
		return u.judgeSend(op, got)
	case reusecheck.VNetns, reusecheck.VExit, reusecheck.VInherit, reusecheck.VTimeWait, reusecheck.VExpire:
		return open(got, "the operation is not UDP's")
	}
	s := u.find(op.Sock)
	if s == nil {
		return open(got, openGone)
	}
	switch op.Verb {
	case reusecheck.VBind:
		return u.judgeBind(s, op.Addr, got)
	case reusecheck.VConnect:
		return u.judgeConnect(s, op.Addr, got)
	case reusecheck.VListen: // listen(2): EOPNOTSUPP, there is no connection to wait for
		return u.impossible(s, reusecheck.RefuseState, reusecheck.EOPNOTSUPP, got)
	}
	// set, shutdown, disconnect, close: they ask no owner.
	return agree(got)
}

func (u *UDP) disagree(want reusecheck.Answer) Verdict {
	return Verdict{Want: want, Conflicts: u.conflicts}
}

// impossible judges an operation that cannot succeed, whoever owns the port.
func (u *UDP) impossible(s *receiver, why reusecheck.Reason, errno reusecheck.Errno, got reusecheck.Answer) Verdict {
	if got.Kind == reusecheck.Failed {
		return agree(got)
	}
	u.conflicts = append(u.conflicts, Conflict{s.ID, why})
	return u.disagree(reusecheck.Fail(errno))
}

// judgeBind: bind(2), ip(7), ipv6(7).
func (u *UDP) judgeBind(s *receiver, to netip.AddrPort, got reusecheck.Answer) Verdict {
	addr := reusecheck.Canonical(s.Family, to.Addr())
	switch {
	case s.lost:
		return open(got, openLost)
	case s.Owner() || s.State != reusecheck.Idle:
		return u.impossible(s, reusecheck.RefuseState, reusecheck.EINVAL, got)
	case !s.Family.Is6() && !addr.Is4():
		return u.impossible(s, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case s.Opts.Has(reusecheck.V6Only) && addr.Is4In6():
		return u.impossible(s, reusecheck.RefuseFamily, reusecheck.EINVAL, got)
	}
	switch u.world.locate(&s.Socket, addr) {
	case foreign:
		return u.impossible(s, reusecheck.RefuseNotLocal, reusecheck.EADDRNOTAVAIL, got)
	case unsaid:
		if got == reusecheck.Fail(reusecheck.EADDRNOTAVAIL) {
			return open(got, openLocal)
		}
	}
	switch {
	case to.Port() != 0:
		return u.judgeNamed(s, addr, to.Port(), got)
	case s.Opts.Has(reusecheck.NoPort):
		return u.granted(got)
	}
	return u.judgeAutomatic(s, addr, got, reusecheck.EADDRINUSE)
}

// judgeNamed judges a request for one port by all its owners.
func (u *UDP) judgeNamed(s *receiver, addr netip.Addr, number uint16, got reusecheck.Answer) Verdict {
	vague := u.visit(s, addr, number)
	inUse := reusecheck.Fail(reusecheck.EADDRINUSE)
	switch {
	case len(u.conflicts) > 0:
		if got == inUse || !aboutPort(got) && got.Errno != reusecheck.EINVAL {
			return Verdict{Want: got, Agrees: true, Conflicts: u.conflicts}
		}
		return u.disagree(inUse)
	case vague:
		return open(got, openVague)
	case u.lost > 0 && u.world.ports.Contains(number):
		return open(got, openLost)
	}
	return u.granted(got)
}

// granted judges an operation that nothing stands against. A socket without a
// port cannot meet EINVAL, whatever it did before (bind(2)).
func (u *UDP) granted(got reusecheck.Answer) Verdict {
	if got.Kind == reusecheck.OK || !aboutPort(got) && got.Errno != reusecheck.EINVAL {
		return agree(got)
	}
	return u.disagree(reusecheck.Success)
}

// visit looks at every owner of the requested port and notes those that stand
// against the request. It reports whether there is also one of which too little
// is known. UDP knows no listening sockets, so SO_REUSEADDR on both sides always
// passes; an automatic port is shared by the same rules as one that was named.
func (u *UDP) visit(s *receiver, addr netip.Addr, number uint16) (vague bool) {
	req := Request{Binder: &s.Socket, Addr: addr, Port: number, Purpose: Named}
	r := reachOf(s.Opts, addr)
	for i := range u.socks {
		o := &u.socks[i]
		if o.Local.Port() != number || !req.overlaps(&r, &o.Socket) {
			continue
		}
		switch why := refusal(&s.Socket, &o.Socket, Named); {
		case o.vague && why != reusecheck.ReasonNone:
			vague = true
		case why != reusecheck.ReasonNone:
			u.conflicts = append(u.conflicts, Conflict{o.ID, why})
		}
	}
	return vague
}

// judgeAutomatic judges a port that the stack was to pick (ip(7),
// ip_local_port_range). full is the error for a range that has none.
func (u *UDP) judgeAutomatic(s *receiver, addr netip.Addr, got reusecheck.Answer, full reusecheck.Errno) Verdict {
	r := u.world.rangeFor(&s.Socket)
	switch {
	case u.lost > 0:
		return open(got, openLost)
	case got.Kind == reusecheck.OK && got.Port != 0:
		if r.Contains(got.Port) && !u.world.isReserved(got.Port) {
			vague := u.visit(s, addr, got.Port)
			switch {
			case len(u.conflicts) > 0:
			case vague:
				return open(got, openVague)
			default:
				return agree(got)
			}
		}
		return u.disagree(u.wantAutomatic(s, addr, r, full))
	case got.Kind == reusecheck.OK, noPortLeft(got), got.Errno == reusecheck.EINVAL:
		want := u.wantAutomatic(s, addr, r, full)
		switch {
		case want.Kind != reusecheck.Failed && got.Kind == reusecheck.OK:
			return open(got, openPortless)
		case want.Kind == reusecheck.Failed && noPortLeft(got):
			return agree(got)
		}
		return u.disagree(want)
	}
	return agree(got)
}

// wantAutomatic is an answer that is right: the lowest port that can be picked,
// or the error for none. The conflicts noted so far stay as they are.
func (u *UDP) wantAutomatic(s *receiver, addr netip.Addr, r reusecheck.PortRange, full reusecheck.Errno) reusecheck.Answer {
	keep := len(u.conflicts)
	defer func() { u.conflicts = u.conflicts[:keep] }()
	for p := int(r.Lo); p <= int(r.Hi); p++ {
		if u.world.isReserved(uint16(p)) {
			continue
		}
		u.conflicts = u.conflicts[:keep]
		if vague := u.visit(s, addr, uint16(p)); !vague && len(u.conflicts) == keep {
			return reusecheck.Picked(uint16(p))
		}
	}
	return reusecheck.Fail(full)
}

// judgeConnect: connect(2), ip(7). A socket may connect as often as it likes,
// and to wherever others are connected; only a port that it has to be given first
// can be in somebody's way.
func (u *UDP) judgeConnect(s *receiver, to netip.AddrPort, got reusecheck.Answer) Verdict {
	dst, own := to.Addr().Unmap(), s.Local.Addr()
	if !s.Owner() && !s.lost {
		if v := u.judgeAutomatic(s, own, got, reusecheck.EAGAIN); !v.Agrees || v.Open != "" || noPortLeft(got) {
			return v
		}
	}
	switch {
	case !s.Family.Is6() && !dst.Is4():
		return u.impossible(s, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case s.Family.Is6() && dst.Is4() && s.Opts.Has(reusecheck.V6Only):
		return u.impossible(s, reusecheck.RefuseFamily, reusecheck.ENETUNREACH, got)
	case own.Is4In6() && !dst.Is4() && !dst.IsUnspecified():
		return u.impossible(s, reusecheck.RefuseFamily, reusecheck.EAFNOSUPPORT, got)
	case s.Dev == reusecheck.Dev1 || s.Dev == reusecheck.Dev2:
		return open(got, openDevice)
	case !dst.IsUnspecified() && !isLocal(dst):
		return open(got, openRoute)
	case got.Kind == reusecheck.Failed && (aboutPort(got) || got.Errno == reusecheck.EISCONN || got.Errno == reusecheck.EINVAL):
		return u.disagree(reusecheck.Success)
	}
	return agree(got)
}
