package spec

import (
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// UDP is the second system: Linux UDP's address slots, which stand in for a look
// at every socket of the port, and its 4-tuple table, which stands in for a score
// of every socket.
var UDP = &System{
	Name:       reusecheck.UDP,
	Doc:        "address slots and the 4-tuple table of connected sockets",
	Properties: []*Property{Lookup, SoundLook, CompleteLook, PreciseTable, TableStructure},
	Lasting:    true,
	Steps:      32, // a crowd takes 22
	Say:        sayUDP,
	Explored:   "tuple",
	Unproved: "its bind ends at the first socket of a list that stands in the way, so that the answer depends on two owners and their order, " +
		"and its look-up is a maximum over all sockets, groups and counters included",
	World:        UDPWorld,
	NewOracle:    func() Oracle { return oracle.NewUDP() },
	NewGhost:     func() Ghost { return &admissions{} },
	NewGenerator: newUDPGenerator,
	NewMenu:      newUDPMenu,
}

// UDPWorld is everything that a UDP trace can say, in small domains.
func UDPWorld() *World {
	w := TCPWorld()
	w.Families = []reusecheck.Family{reusecheck.UDP4, reusecheck.UDP6}
	w.Verbs = map[reusecheck.Verb]bool{
		reusecheck.VBind: true, reusecheck.VListen: true, reusecheck.VConnect: true, reusecheck.VSet: true,
		reusecheck.VShutdown: true, reusecheck.VDisconnect: true, reusecheck.VClose: true, reusecheck.VSend: true,
	}
	w.OtherPort, w.Rivals = false, false
	w.Sysctls = []reusecheck.Sysctl{{Name: "net.ipv4.udp_early_demux", Value: "0"}}
	w.Crowds, w.Arrivals = true, true
	return w
}

// admissions is the ghost of a system that has no cache: it knows no more than
// the sockets as they were when they got their port.
type admissions struct{ socks []reusecheck.Socket }

func (a *admissions) Reset() { a.socks = a.socks[:0] }

func (a *admissions) Before(reusecheck.Op, []reusecheck.Socket) (reusecheck.Cache, *reusecheck.Socket) {
	return reusecheck.Cache{}, nil
}

func (a *admissions) After(op reusecheck.Op, got reusecheck.Result, live []reusecheck.Socket) reusecheck.Cache {
	if got.Kind != reusecheck.OK || op.Verb != reusecheck.VBind && op.Verb != reusecheck.VConnect {
		return reusecheck.Cache{}
	}
	now := find(live, op.Sock)
	old := a.Admitted(op.Sock)
	switch {
	case now == nil:
	case old == nil:
		a.socks = append(a.socks, *now)
	case op.Verb == reusecheck.VBind:
		*old = *now
	}
	return reusecheck.Cache{}
}

func (a *admissions) Admitted(id reusecheck.ID) *reusecheck.Socket { return find(a.socks, id) }
