package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Purpose is what a port is asked for, which decides how far it may be shared.
type Purpose uint8

const (
	// Named is a bind to a port that the user named, and a listen on the
	// port held: listen(2) returns EADDRINUSE too, so the port is checked
	// again with what the owners are by then.
	Named Purpose = iota
	// Automatic is a port that the stack picks for bind or listen: one that
	// no overlapping owner uses, whatever the options.
	Automatic
	// LastResort is the same where ip_autobind_reuse is 1 and the range is
	// exhausted: sockets that all have SO_REUSEADDR may then share, those
	// that could share by SO_REUSEPORT may not (they could all listen on a
	// port that none of them chose).
	LastResort
)

// Request is a socket that asks for an address and port.
type Request struct {
	// Binder is the socket that asks: its options, uid and device count as
	// they are now, what it holds already does not.
	Binder  *reusecheck.Socket
	Addr    netip.Addr
	Port    uint16
	Purpose Purpose
}

// Conflicts appends to buf every owner of the port that stands against the
// request, each with the rule that makes it so. None means that the request is
// granted, else it is EADDRINUSE. Every owner is looked at and their order does
// not matter.
func Conflicts(owners []reusecheck.Socket, req *Request, buf []Conflict) []Conflict {
	r := reachOf(req.Binder.Opts, req.Addr)
	for i := range owners {
		o := &owners[i]
		if o.Local.Port() != req.Port {
			continue
		}
		why := refusal(req.Binder, o, req.Purpose)
		if why != reusecheck.ReasonNone && req.overlaps(&r, o) {
			buf = append(buf, Conflict{o.ID, why})
		}
	}
	return buf
}

// overlaps reports whether owner o of the port is another socket that takes
// traffic which the binder would take at r.
func (req *Request) overlaps(r *reach, o *reusecheck.Socket) bool {
	if o.ID == req.Binder.ID || !devicesMeet(req.Binder.Dev, o.Dev) {
		return false
	}
	ro := reachOf(o.Opts, o.Local.Addr())
	return r.meets(&ro)
}

// refusal is why binder b may not share with owner o, whom it overlaps, or
// ReasonNone if it may. Options, uids and devices are those of this moment:
// no document says that setting one on a bound socket is without effect.
//
// Not part of the rule: a reuseport group that b belongs to already. Short of a
// BPF program attached before bind, which the trace language does not have,
// only a listening socket is in one, and that asks for no port.
func refusal(b, o *reusecheck.Socket, p Purpose) reusecheck.Reason {
	byAddr := shareByReuseAddr(b, o)
	byPort := shareByReusePort(b, o)
	switch p {
	case Named:
		if byAddr || byPort {
			return reusecheck.ReasonNone
		}
		return whyNot(b, o)
	case LastResort:
		switch {
		case byAddr && !byPort:
			return reusecheck.ReasonNone
		case !b.Opts.Has(reusecheck.ReuseAddr):
			return reusecheck.RefuseAutomatic
		case !o.Opts.Has(reusecheck.ReuseAddr):
			return reusecheck.RefuseNoReuseAddr
		case byPort:
			return reusecheck.RefuseAutomatic
		}
		return reusecheck.RefuseListening
	}
	return reusecheck.RefuseAutomatic
}

// shareByReuseAddr is SO_REUSEADDR, socket(7): Linux wants it on the socket
// that holds the port and on the one that asks (NOTES), and it passes anything
// but an active listening socket.
func shareByReuseAddr(b, o *reusecheck.Socket) bool {
	return b.Opts.Has(reusecheck.ReuseAddr) && o.Opts.Has(reusecheck.ReuseAddr) &&
		o.State != reusecheck.Listening
}

// shareByReusePort is SO_REUSEPORT, socket(7): set on every socket, and one
// user's, to prevent port hijacking. A TIME_WAIT socket has no user any more,
// so there is nobody left to hijack from.
func shareByReusePort(b, o *reusecheck.Socket) bool {
	return b.Opts.Has(reusecheck.ReusePort) && o.Opts.Has(reusecheck.ReusePort) &&
		(o.State == reusecheck.TimeWait || b.UID == o.UID)
}

// whyNot names the rule to mend first for a pair that may not share: of the
// two ways to share, the one that the pair has come closest to.
func whyNot(b, o *reusecheck.Socket) reusecheck.Reason {
	bAddr, bPort := b.Opts.Has(reusecheck.ReuseAddr), b.Opts.Has(reusecheck.ReusePort)
	oAddr, oPort := o.Opts.Has(reusecheck.ReuseAddr), o.Opts.Has(reusecheck.ReusePort)
	switch {
	case !bAddr && !bPort:
		return reusecheck.RefuseNotShared
	case bPort && oPort:
		return reusecheck.RefuseUID
	case bAddr && oAddr:
		return reusecheck.RefuseListening
	case bAddr:
		return reusecheck.RefuseNoReuseAddr
	}
	return reusecheck.RefuseNoReusePort
}
