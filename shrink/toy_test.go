package shrink_test

import (
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// toy is a short cut with known mistakes, small enough to see through: owners
// of one port, a full look at them, and a cache of the last reuseport socket
// admitted that reads less than the look does. It stands for the kernels here,
// so that the shrinker is tested against a landscape with several minima.
type toy struct {
	socks  map[rc.ID]*toySock
	owners []rc.ID
	strict *toySock
}

type toySock struct {
	fam       rc.Family
	opts      rc.Opt
	uid       uint32
	dev       rc.Dev
	addr      netip.AddrPort
	listening bool
	left      bool // a TIME_WAIT socket
}

// diverges runs t and reports whether the cache admits what the look refuses.
func diverges(t *rc.Trace) bool {
	y := toy{socks: map[rc.ID]*toySock{}}
	for i := range t.Steps {
		if y.do(&t.Steps[i].Op) {
			return true
		}
	}
	return false
}

func (y *toy) do(op *rc.Op) (diverged bool) {
	s := y.socks[op.Sock]
	switch op.Verb {
	case rc.VSocket:
		y.socks[op.Sock] = &toySock{fam: op.Family, opts: op.Opts, uid: op.UID, dev: op.Dev}
	case rc.VSet:
		switch {
		case op.Field == rc.SetUID:
			s.uid = op.UID
		case op.Field == rc.SetDev:
			s.dev = op.Dev
		case op.On:
			s.opts |= op.Opts
		default:
			s.opts &^= op.Opts
		}
	case rc.VBind:
		if s.addr.IsValid() || s.fam.Is6() == op.Addr.Addr().Is4() {
			return false
		}
		return y.admit(op.Sock, s, op.Addr)
	case rc.VListen:
		s.listening = s.addr.IsValid()
	case rc.VInherit:
		if s.listening {
			y.socks[op.Child] = &toySock{fam: s.fam, opts: s.opts, uid: s.uid, dev: s.dev, addr: s.addr}
			y.owners = append(y.owners, op.Child)
		} else {
			y.socks[op.Child] = &toySock{fam: s.fam}
		}
	case rc.VTimeWait:
		s.left = true
	case rc.VClose, rc.VExpire:
		y.leave(op.Sock)
	}
	return false
}

func (y *toy) leave(id rc.ID) {
	for i, o := range y.owners {
		if o == id {
			y.owners = append(y.owners[:i:i], y.owners[i+1:]...)
		}
	}
	if len(y.owners) == 0 {
		y.strict = nil
	}
}

func (y *toy) admit(id rc.ID, s *toySock, addr netip.AddrPort) (diverged bool) {
	s.addr = addr
	fast := y.strict != nil && s.opts.Has(rc.ReusePort) && y.strict.uid == s.uid && y.strict.addr == addr
	scan := true
	for _, o := range y.owners {
		if conflict(s, y.socks[o]) {
			scan = false
		}
	}
	if !fast && !scan {
		s.addr = netip.AddrPort{}
		return false
	}
	y.owners = append(y.owners, id)
	if s.opts.Has(rc.ReusePort) {
		key := *s
		y.strict = &key
	} else {
		y.strict = nil
	}
	return fast && !scan
}

func conflict(b, o *toySock) bool {
	switch {
	case b.dev != rc.NoDev && o.dev != rc.NoDev && b.dev != o.dev:
		return false
	case b.addr.Port() != o.addr.Port():
		return false
	case b.addr != o.addr && !b.addr.Addr().IsUnspecified() && !o.addr.Addr().IsUnspecified():
		return false
	case b.opts.Has(rc.ReuseAddr) && o.opts.Has(rc.ReuseAddr) && !o.listening:
		return false
	}
	return !(b.opts.Has(rc.ReusePort) && o.opts.Has(rc.ReusePort) && (o.left || b.uid == o.uid))
}
