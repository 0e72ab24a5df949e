package spec

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// udpGenerator makes UDP histories: sockets, options and binds as TCP's are, and
// peers and datagrams that meet them.
type udpGenerator struct {
	tcpGenerator
	peers []uint16 // ports of the other ends, which nobody holds
	crowd int      // sockets that are still to be bound before anything else
	from  uint8    // the last byte of the next one's address
	sends reusecheck.ID
	may   []reusecheck.Sysctl // the settings of one history in four
}

func newUDPGenerator(w *World) Generator {
	// Without the settings, which would take a choice of the source.
	own := *w
	own.Sysctls = nil
	return &udpGenerator{tcpGenerator: tcpGenerator{world: &own}, may: w.Sysctls}
}

// crowded is how many sockets a port has whose address slots are looked at.
const crowded = 11

func (g *udpGenerator) Start(src Source) reusecheck.Config {
	cfg := g.tcpGenerator.Start(src)
	cfg.System, cfg.Sysctl = reusecheck.UDP, nil
	if g.world.Verbs[reusecheck.VSend] {
		g.verbs = append(g.verbs, reusecheck.VSend)
	}
	g.peers = append(g.peers[:0], nowhere)
	if src.Intn(2) == 0 {
		g.peers = append(g.peers, nowhere+1)
	}
	if g.crowd = 0; g.world.Crowds && src.Intn(8) == 0 {
		g.crowd = crowded
	}
	g.from = 10
	g.sends, g.cpus = 0, nil
	switch g.drawn {
	case 4:
		g.cpus = g.world.CPUs
	case 3:
		cfg.Sysctl = g.may
	}
	return cfg
}

func udpWeight(v reusecheck.Verb) int {
	switch v {
	case reusecheck.VBind:
		return 8
	case reusecheck.VSend:
		return 6
	case reusecheck.VConnect:
		return 5
	case reusecheck.VDisconnect, reusecheck.VSet:
		return 3
	case reusecheck.VClose:
		return 2
	}
	return 1
}

func (g *udpGenerator) Next(src Source, live []reusecheck.Socket) reusecheck.Op {
	idle, named := 0, 0
	for i := range live {
		if live[i].ID >= g.firstOwn() {
			named++
			if unbound(&live[i]) {
				idle++
			}
		}
	}
	if g.crowd > 0 {
		return g.ofCrowd(live)
	}
	for range 8 {
		if idle == 0 && (named < 2 || named < g.world.Sockets && src.Intn(3) > 0) {
			return g.socket(src)
		}
		total := 0
		for _, v := range g.verbs {
			total += udpWeight(v)
		}
		n := src.Intn(total)
		for _, v := range g.verbs {
			if n -= udpWeight(v); n < 0 {
				if op, ok := g.Of(v, src, live); ok {
					return op
				}
				break
			}
		}
	}
	return g.socket(src)
}

// firstOwn is the first socket that is not of the crowd.
func (g *udpGenerator) firstOwn() reusecheck.ID {
	if g.from > 10 {
		return crowded
	}
	return 0
}

// ofCrowd makes and binds one of the sockets that fill the port, on addresses
// that no other socket has.
func (g *udpGenerator) ofCrowd(live []reusecheck.Socket) reusecheck.Op {
	if n := len(live); n > 0 && unbound(&live[n-1]) {
		g.crowd--
		g.from++
		return reusecheck.Bind(live[n-1].ID, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, g.from}), g.ports[0]))
	}
	op := reusecheck.NewSocket(g.next, reusecheck.UDP4, 0)
	g.next++
	return op
}

func (g *udpGenerator) Of(v reusecheck.Verb, src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	switch v {
	case reusecheck.VListen:
		v = reusecheck.VShutdown // what either does is soon known
		if src.Intn(2) == 0 {
			break
		}
		if s := g.choose(src, live, false, here); s != nil {
			return reusecheck.Listen(s.ID), true
		}
		return reusecheck.Op{}, false
	case reusecheck.VConnect:
		return g.connectTo(src, live)
	case reusecheck.VDisconnect:
		if s := g.choose(src, live, true, connected); s != nil {
			return reusecheck.Disconnect(s.ID), true
		}
		return reusecheck.Op{}, false
	case reusecheck.VSend:
		return g.send(src, live)
	}
	return g.tcpGenerator.Of(v, src, live)
}

// peer is another end, of one address family.
func (g *udpGenerator) peer(src Source, six bool) netip.AddrPort {
	a := loop4
	switch {
	case six:
		if a = loop6; src.Intn(4) == 0 {
			a = netip.MustParseAddr("fd00::1")
		}
	case src.Intn(4) == 0:
		a = loop4b
	}
	return netip.AddrPortFrom(a, g.peers[src.Intn(len(g.peers))])
}

func (g *udpGenerator) connectTo(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	s := g.choose(src, live, false, func(s *reusecheck.Socket) bool { return s.Owner() || src.Intn(4) == 0 })
	if s == nil {
		return reusecheck.Op{}, false
	}
	own := s.Local.Addr()
	six := s.Family.Is6() && !own.Is4In6() && (s.Opts.Has(reusecheck.V6Only) || !own.IsUnspecified() || src.Intn(2) == 0)
	if src.Intn(16) == 0 {
		six = !six
	}
	to := g.peer(src, six)
	return reusecheck.Connect(s.ID, netip.AddrPortFrom(reusecheck.Canonical(s.Family, to.Addr()), to.Port())), true
}

// send lets a datagram arrive for one of the sockets: mostly at its address, and
// from its peer if it has one.
func (g *udpGenerator) send(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	s := g.choose(src, live, false, (*reusecheck.Socket).Owner)
	if s == nil {
		return reusecheck.Op{}, false
	}
	to := s.Local.Addr().Unmap()
	switch {
	case to == netip.IPv6Unspecified() && (s.Opts.Has(reusecheck.V6Only) || src.Intn(2) == 0):
		to = loop6
	case to.IsUnspecified():
		if to = loop4; src.Intn(4) == 0 {
			to = loop4b
		}
	}
	from := g.peer(src, to.Is6())
	if s.State == reusecheck.Connected && src.Intn(4) > 0 {
		if p := s.Peer.Addr().Unmap(); p.Is4() == to.Is4() && s.Peer.Port() != 0 {
			from = netip.AddrPortFrom(p, s.Peer.Port())
		}
	}
	dev := reusecheck.NoDev
	if src.Intn(8) == 0 {
		// ::1 comes from and gets to the loopback only (RFC 4291, 2.5.3).
		if dev = g.devs[src.Intn(len(g.devs))]; dev != reusecheck.NoDev && (!g.world.Arrivals || from.Addr() == loop6 || to == loop6) {
			dev = reusecheck.DevLo
		}
	}
	g.sends++
	return reusecheck.SendOn(from, netip.AddrPortFrom(to, s.Local.Port()), dev, g.processor(g.sends, 0)), true
}
