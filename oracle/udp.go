package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// UDP is the reference for a history of UDP operations. It follows the live
// sockets by what was done and what the stack answered; it judges a bind by every
// owner of the port, in whatever order they came, and a datagram by every socket
// that fits it. It never asks the stack.
//
// A UDP is used by one goroutine at a time.
type UDP struct {
	world world
	socks []receiver // in the order of creation
	named []int32    // index+1 by ID, 0 for none
	lost  int        // sockets whose port the stack did not tell

	conflicts       []Conflict // the last verdict's
	allowed, shared []reusecheck.ID
}

// receiver is a live socket with what only the oracle needs to know of it.
type receiver struct {
	reusecheck.Socket

	// vague says that neither answer nor document tells what it receives.
	vague bool
	lost  bool // holds a port that is not known
	// heard says that a datagram of its peer came in after the socket asked for a
	// processor: SO_INCOMING_CPU, which is set and read, may name that one's since.
	heard bool
	// grouped says that it shares what its reuseport group receives: it had
	// SO_REUSEPORT before bind, as socket(7) wants it, and it still has all that
	// it had then.
	grouped bool
	was     reusecheck.Socket // as it was bound
}

// NewUDP is a UDP in a fresh namespace with the default configuration.
func NewUDP() *UDP {
	u := &UDP{}
	u.Reset(reusecheck.Config{})
	return u
}

// Reset forgets every socket and starts a fresh namespace.
func (u *UDP) Reset(c reusecheck.Config) {
	u.world.configure(&c)
	u.socks = u.socks[:0]
	u.named = u.named[:0]
	u.lost = 0
}

// CopyFrom makes u the same as src, sharing nothing with it that changes.
func (u *UDP) CopyFrom(src *UDP) {
	u.world = src.world // its lists are never changed in place
	u.socks = append(u.socks[:0], src.socks...)
	u.named = append(u.named[:0], src.named...)
	u.lost = src.lost
}

// Sockets calls yield for every live socket until it returns false. The socket is
// the oracle's own: read it, and only until the next call.
func (u *UDP) Sockets(yield func(*reusecheck.Socket) bool) {
	for i := range u.socks {
		if !yield(&u.socks[i].Socket) {
			return
		}
	}
}

func (u *UDP) find(id reusecheck.ID) *receiver {
	if id < 0 || int(id) >= len(u.named) || u.named[id] == 0 {
		return nil
	}
	return &u.socks[u.named[id]-1]
}

func (u *UDP) create(op reusecheck.Op) {
	if op.Sock < 0 {
		return
	}
	if old := u.find(op.Sock); old != nil {
		u.remove(old)
	}
	for len(u.named) <= int(op.Sock) {
		u.named = append(u.named, 0)
	}
	s := receiver{Socket: reusecheck.Socket{
		ID: op.Sock, Family: op.Family, Opts: op.Opts, UID: op.UID, Dev: op.Dev, CPU: op.CPU, Range: op.Range,
		Local: netip.AddrPortFrom(reusecheck.Canonical(op.Family, netip.Addr{}), 0),
	}}
	if !op.Family.Is6() {
		s.Opts &^= reusecheck.V6Only
	}
	u.socks = append(u.socks, s)
	u.named[op.Sock] = int32(len(u.socks))
}

func (u *UDP) remove(s *receiver) {
	u.found(s)
	i := u.named[s.ID] - 1
	u.named[s.ID] = 0
	u.socks = append(u.socks[:i], u.socks[i+1:]...)
	for j := i; int(j) < len(u.socks); j++ {
		u.named[u.socks[j].ID] = j + 1
	}
}

// found takes back that a socket's port is not known.
func (u *UDP) found(s *receiver) {
	if s.lost {
		s.lost = false
		u.lost--
	}
}

// Follow takes note that op was answered got: right or wrong, it has happened.
func (u *UDP) Follow(op reusecheck.Op, got reusecheck.Answer) {
	done := got.Kind != reusecheck.Failed
	switch op.Verb {
	case reusecheck.VSocket:
		if done && op.Family.IsUDP() && !op.HasNet {
			u.create(op)
		}
		return
	case reusecheck.VSend:
		if s := u.find(got.Who); got.Kind == reusecheck.Received && s != nil && s.State == reusecheck.Connected {
			s.heard = s.CPU != reusecheck.NoCPU
		}
		return
	}
	s := u.find(op.Sock)
	if s == nil {
		return
	}
	switch op.Verb {
	case reusecheck.VBind:
		u.bound(s, op.Addr, got)
	case reusecheck.VConnect:
		u.connected(s, op.Addr, got)
	case reusecheck.VSet:
		if done {
			s.set(op)
		}
	case reusecheck.VDisconnect:
		if done {
			u.disconnected(s)
		}
	case reusecheck.VClose:
		if done {
			u.remove(s)
		}
	}
}

// set: options, device and user count as they are now.
func (s *receiver) set(op reusecheck.Op) {
	switch op.Field {
	case reusecheck.SetUID:
		s.UID = op.UID
	case reusecheck.SetDev:
		s.Dev = op.Dev
	case reusecheck.SetCPU:
		s.CPU, s.heard = op.CPU, false
	case reusecheck.SetOpt:
		if s.Opts &^= op.Opts; op.On {
			s.Opts |= op.Opts
		}
		// An IPv4 address on a socket that is then restricted to IPv6: no
		// document says what that owns.
		s.vague = s.Opts.Has(reusecheck.V6Only) && s.Local.Addr().Is4In6()
	}
}

// bound: see TCP's, the documents are the same.
func (u *UDP) bound(s *receiver, to netip.AddrPort, got reusecheck.Answer) {
	if got.Kind == reusecheck.Failed {
		if got.Errno == reusecheck.EADDRINUSE && s.State == reusecheck.Idle && !s.Owner() && !s.lost {
			s.Local = netip.AddrPortFrom(reusecheck.Canonical(s.Family, netip.Addr{}), 0)
		}
		return
	}
	addr := reusecheck.Canonical(s.Family, to.Addr())
	s.AddrLocked = s.AddrLocked || !addr.IsUnspecified()
	s.PortLocked = to.Port() != 0
	if addr.Is6() && !addr.Is4In6() && !addr.IsUnspecified() {
		s.Opts |= reusecheck.V6Only
	}
	s.vague = false
	s.Local = netip.AddrPortFrom(addr, to.Port())
	if to.Port() == 0 && (!s.Opts.Has(reusecheck.NoPort) || got.Port != 0) {
		u.picked(s, got.Port)
	}
	s.enter()
}

// enter: the socket has got a port, and from then on a place in a group if it
// asked for one.
func (s *receiver) enter() {
	s.grouped = s.Opts.Has(reusecheck.ReusePort) && (s.Owner() || s.lost)
	s.was = s.Socket
}

// member reports whether s shares a group's datagrams as it was bound to.
func (s *receiver) member() bool {
	return s.grouped && s.Opts == s.was.Opts && s.UID == s.was.UID && s.Dev == s.was.Dev &&
		s.Local == s.was.Local && s.State == reusecheck.Idle
}

// picked gives s the port that the stack picked; where the stack does not say
// which, the only one possible or a port unknown.
func (u *UDP) picked(s *receiver, port uint16) {
	if r := u.world.rangeFor(&s.Socket); port == 0 && r.Size() == 1 {
		port = r.Lo
	}
	u.found(s)
	s.Local = netip.AddrPortFrom(s.Local.Addr(), port)
	s.ByConnect = false
	if port == 0 {
		s.lost = true
		u.lost++
	}
}

// connected: a socket without a port gets one first, whatever becomes of the
// rest (seen on 6.18.44), then its peer and the address of the route.
func (u *UDP) connected(s *receiver, to netip.AddrPort, got reusecheck.Answer) {
	if noPortLeft(got) {
		return
	}
	if !s.Owner() && !s.lost {
		u.picked(s, got.Port)
		s.ByConnect = true
		s.enter()
	}
	if got.Kind == reusecheck.Failed {
		return
	}
	f := peerOf(s, to)
	if s.Local.Addr().Unmap().IsUnspecified() {
		s.Local = netip.AddrPortFrom(reusecheck.Canonical(s.Family, f.src.Addr()), s.Local.Port())
	}
	s.State = reusecheck.Connected
	s.Peer = netip.AddrPortFrom(reusecheck.Canonical(s.Family, f.dst.Addr()), f.dst.Port())
}

// disconnected: the peer goes, and with it what came by connect: an address or
// port that the user did not name. The device goes too (seen on 6.18.44; no
// document speaks of it).
func (u *UDP) disconnected(s *receiver) {
	s.State, s.Peer = reusecheck.Idle, netip.AddrPort{}
	s.Dev, s.was.Dev = reusecheck.NoDev, reusecheck.NoDev
	local := s.Local
	if !s.AddrLocked {
		local = netip.AddrPortFrom(reusecheck.Canonical(s.Family, netip.Addr{}), local.Port())
		s.vague = false
	}
	if !s.PortLocked {
		u.found(s)
		local = netip.AddrPortFrom(local.Addr(), 0)
		s.ByConnect, s.grouped = false, false
	}
	s.Local = local
}

// noPortLeft: connect could not give the socket a port.
func noPortLeft(got reusecheck.Answer) bool {
	if got.Kind != reusecheck.Failed {
		return false
	}
	switch got.Errno {
	case reusecheck.EAGAIN, reusecheck.EADDRINUSE, reusecheck.EADDRNOTAVAIL:
		return true
	}
	return false
}

// peerOf is the pair of addresses of a socket that connects: the destination,
// the loopback for the wildcard, and the address of the route where the socket
// has none of its own.
func peerOf(s *receiver, to netip.AddrPort) flow {
	dst, own := to.Addr().Unmap(), s.Local.Addr()
	if dst.IsUnspecified() {
		if dst = netip.IPv6Loopback(); to.Addr().Unmap().Is4() || own.Is4() || own.Is4In6() {
			dst = loopback4
		}
	}
	src := own.Unmap()
	if src.IsUnspecified() {
		if src = dst; dst.Is4() {
			src = loopback4
		}
	}
	return flow{netip.AddrPortFrom(src, s.Local.Port()), netip.AddrPortFrom(dst, to.Port())}
}
