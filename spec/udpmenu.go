package spec

import (
	"net/netip"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// udpMenu is the menu of sockets whose other ends are outside of the world: they
// connect, and connect again, to ports that nobody holds, and datagrams come from
// there.
type udpMenu struct {
	world *World
	lands []netip.Addr     // where a datagram may arrive
	ends  []netip.AddrPort // the other ends
}

func newUDPMenu(w *World) Menu {
	m := &udpMenu{world: w, lands: landings(w)}
	m.ends = outside(m.lands)
	return m
}

// outside are a port that nobody holds on each address, and another where a
// family has one address only.
func outside(lands []netip.Addr) []netip.AddrPort {
	var ends []netip.AddrPort
	count := map[bool]int{}
	for _, a := range lands {
		ends = append(ends, netip.AddrPortFrom(a, nowhere))
		count[a.Is4()]++
	}
	for _, e := range slices.Clone(ends) {
		if count[e.Addr().Is4()] == 1 {
			ends = append(ends, netip.AddrPortFrom(e.Addr(), nowhere+1))
		}
	}
	return ends
}

func (m *udpMenu) First(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	return m.peers(firstBinds(m.world, dst, s), s)
}

// peers appends the connects of a socket.
func (m *udpMenu) peers(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	if !m.world.Verbs[reusecheck.VConnect] {
		return dst
	}
	for _, e := range m.ends {
		if s.Family.Is6() || e.Addr().Is4() {
			dst = append(dst, reusecheck.Connect(0, netip.AddrPortFrom(reusecheck.Canonical(s.Family, e.Addr()), e.Port())))
		}
	}
	return dst
}

func (m *udpMenu) Of(dst []reusecheck.Op, s *reusecheck.Socket) []reusecheck.Op {
	if s.State == reusecheck.Idle && !s.Owner() {
		dst = firstBinds(m.world, dst, s)
	}
	dst = m.peers(dst, s)
	if m.world.Verbs[reusecheck.VDisconnect] && s.Owner() {
		dst = append(dst, reusecheck.Disconnect(0)) // also one that is not connected loses its device
	}
	if m.world.Verbs[reusecheck.VShutdown] && s.State == reusecheck.Connected {
		dst = append(dst, reusecheck.Shutdown(0))
	}
	dst = sets(m.world, dst, s)
	if m.world.Verbs[reusecheck.VClose] {
		dst = append(dst, reusecheck.Close(0))
	}
	return dst
}

// Around appends the datagrams that may arrive: from every peer, to every address
// and to each port that somebody holds.
func (m *udpMenu) Around(dst []reusecheck.Op, live []reusecheck.Socket) []reusecheck.Op {
	if !m.world.Verbs[reusecheck.VSend] {
		return dst
	}
	for _, p := range m.world.Ports {
		if !slices.ContainsFunc(live, func(s reusecheck.Socket) bool { return s.Local.Port() == p }) {
			continue
		}
		for _, to := range m.lands {
			for _, from := range m.ends {
				if from.Addr().Is4() != to.Is4() {
					continue
				}
				for _, d := range m.world.Devs {
					if d != reusecheck.NoDev && !m.world.Arrivals {
						continue
					}
					for _, c := range m.world.Processors() {
						if c != reusecheck.Processor(0) { // where one of none arrives too
							dst = append(dst, reusecheck.SendOn(from, netip.AddrPortFrom(to, p), d, c))
						}
					}
				}
			}
		}
	}
	return dst
}

func (m *udpMenu) Clear(reusecheck.Op, *reusecheck.Socket, func(uint16) int) bool { return true }
