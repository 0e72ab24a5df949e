package spec

import (
	"net/netip"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// Menu lists the steps of a world one by one: what an exploration asks, where a
// generator picks at random. A socket's steps leave its name and that of a child
// to the caller.
type Menu interface {
	// First appends the first steps of a socket that was just made: those that
	// give it something to hold. Whatever else it does, it may be made later.
	First(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op
	// Of appends the steps of a socket that lives. It goes by what the socket
	// was made with, its state, its local end, and whether its address was named.
	Of(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op
	// Around appends what is about no one socket: datagrams that arrive.
	Around(dst []reusecheck.Op, live []reusecheck.Socket) []reusecheck.Op
	// Clear reports whether everybody can say who takes part in a step of s.
	// listeners counts those that a port has, in the namespace of s.
	Clear(op reusecheck.Op, s *reusecheck.Socket, listeners func(port uint16) int) bool
}

// tcpMenu is the menu of sockets that meet each other: a connection has both its
// ends in the world, or the other one nowhere in particular.
type tcpMenu struct {
	world *World
	dests []netip.AddrPort // where a connect may go
	lands []netip.Addr     // where a connection may arrive
}

func newTCPMenu(w *World) Menu {
	m := &tcpMenu{world: w, lands: landings(w)}
	if w.Verbs[reusecheck.VConnect] {
		for _, p := range w.Ports {
			for _, a := range m.lands {
				m.dests = append(m.dests, netip.AddrPortFrom(a, p))
			}
		}
		for _, a := range m.lands[:min(1, len(m.lands))] {
			m.dests = append(m.dests, netip.AddrPortFrom(a, nowhere))
		}
	}
	return m
}

// landings are the addresses of a world at which something can arrive, in plain form.
func landings(w *World) (as []netip.Addr) {
	for _, a := range w.Addrs {
		if u := a.Unmap(); !u.IsUnspecified() && !slices.Contains(as, u) {
			as = append(as, u)
		}
	}
	return as
}

func (m *tcpMenu) First(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	return m.connects(firstBinds(m.world, dst, s), s)
}

// firstBinds appends the binds of a socket that holds no port, and its listen
// where that picks one.
func firstBinds(w *World, dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	for _, a := range w.Addrs {
		if !fits(s.Family, a) {
			continue
		}
		for _, p := range w.Ports {
			dst = append(dst, reusecheck.Bind(0, netip.AddrPortFrom(a, p)))
		}
		if w.AutoPorts || s.Opts.Has(reusecheck.NoPort) {
			dst = append(dst, reusecheck.Bind(0, netip.AddrPortFrom(a, 0)))
		}
	}
	if w.AutoPorts && w.Verbs[reusecheck.VListen] {
		dst = append(dst, reusecheck.Listen(0))
	}
	return dst
}

func (m *tcpMenu) connects(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	for _, d := range m.dests {
		if !s.Family.Is6() && !d.Addr().Is4() {
			continue
		}
		to := netip.AddrPortFrom(reusecheck.Canonical(s.Family, d.Addr()), d.Port())
		dst = append(dst, reusecheck.Connect(0, to))
		if m.world.Unaccepted && d.Port() != nowhere {
			dst = append(dst, reusecheck.ConnectUnaccepted(0, to))
		}
	}
	return dst
}

func (m *tcpMenu) Of(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	add := func(v reusecheck.Verb, op reusecheck.Op) {
		if m.world.Verbs[v] {
			dst = append(dst, op)
		}
	}
	switch s.State {
	case reusecheck.Idle:
		if s.Owner() {
			add(reusecheck.VListen, reusecheck.Listen(0))
			dst = m.connects(dst, s)
		} else {
			dst = m.First(dst, s)
			if s.AddrLocked && !(m.world.AutoPorts && m.world.Verbs[reusecheck.VListen]) {
				add(reusecheck.VListen, reusecheck.Listen(0))
			}
		}
		add(reusecheck.VClose, reusecheck.Close(0))
	case reusecheck.Listening:
		add(reusecheck.VClose, reusecheck.Close(0))
		add(reusecheck.VShutdown, reusecheck.Shutdown(0))
		add(reusecheck.VDisconnect, reusecheck.Disconnect(0))
		if m.world.Verbs[reusecheck.VInherit] {
			dst = m.arrivals(dst, s)
		}
	case reusecheck.Connected:
		add(reusecheck.VClose, reusecheck.Close(0))
		add(reusecheck.VShutdown, reusecheck.Shutdown(0))
		add(reusecheck.VDisconnect, reusecheck.Disconnect(0))
		add(reusecheck.VTimeWait, reusecheck.LeaveTimeWait(0))
	case reusecheck.TimeWait:
		add(reusecheck.VExpire, reusecheck.Expire(0))
		return dst
	}
	return sets(m.world, dst, s)
}

// arrivals appends the connections that may arrive for a listener.
func (m *tcpMenu) arrivals(dst []reusecheck.Op, l *reusecheck.Socket) []reusecheck.Op {
	ports := []uint16{0}
	if m.world.OtherPort {
		for _, p := range m.world.Ports {
			if p != l.Local.Port() {
				ports = append(ports, p)
			}
		}
	}
	own := l.Local.Addr().Unmap()
	for _, a := range m.lands {
		if !own.IsUnspecified() && a != own || own.Is4() && !a.Is4() ||
			own == netip.IPv6Unspecified() && l.Opts.Has(reusecheck.V6Only) && a.Is4() {
			continue
		}
		for _, p := range ports {
			for _, c := range m.world.arrivals() {
				dst = append(dst, reusecheck.InheritOn(0, 0, netip.AddrPortFrom(a, p), c))
			}
		}
	}
	return dst
}

// arrivals are the processors on which connections arrive: in a world with
// processors it is always said which.
func (w *World) arrivals() []reusecheck.CPU {
	if len(w.CPUs) > 1 {
		return w.CPUs[1:]
	}
	return []reusecheck.CPU{reusecheck.NoCPU}
}

// sets appends what can be changed of a socket.
func sets(w *World, dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	if !w.Verbs[reusecheck.VSet] {
		return dst
	}
	if w.Fields[reusecheck.SetOpt] {
		for _, o := range []reusecheck.Opt{reusecheck.ReuseAddr, reusecheck.ReusePort} {
			if w.Options.Has(o) {
				dst = append(dst, reusecheck.SetOption(0, o, !s.Opts.Has(o)))
			}
		}
	}
	if w.Fields[reusecheck.SetUID] {
		for _, u := range w.UIDs {
			if u != s.UID {
				dst = append(dst, reusecheck.SetOwner(0, u))
			}
		}
	}
	if w.Fields[reusecheck.SetDev] {
		for _, d := range w.Devs {
			if d != s.Dev {
				dst = append(dst, reusecheck.SetDevice(0, d))
			}
		}
	}
	if w.Fields[reusecheck.SetCPU] {
		for _, c := range w.Processors() {
			if c != s.CPU {
				dst = append(dst, reusecheck.SetProcessor(0, c))
			}
		}
	}
	return dst
}

func (m *tcpMenu) Around(dst []reusecheck.Op, _ []reusecheck.Socket) []reusecheck.Op { return dst }

// Clear leaves out what the generator leaves out too: a connection of which nobody
// can say who takes it.
func (m *tcpMenu) Clear(op reusecheck.Op, s *reusecheck.Socket, listeners func(port uint16) int) bool {
	switch op.Verb {
	case reusecheck.VInherit:
		return m.world.Rivals || listeners(s.Local.Port()) == 1
	case reusecheck.VConnect:
		return listeners(op.Addr.Port()) <= 1
	}
	return true
}
