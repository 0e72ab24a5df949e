package spec

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// tcpGhost keeps the cache of each port by the documented intent. It is written
// from that intent, not from a kernel: the first owner of an empty bucket sets
// both fields from its own options, later owners weaken or re-key them, and a
// bucket whose owners all came by connect is open to connect (d57f4b874946).
type tcpGhost struct {
	ports    []ghostPort
	admitted []reusecheck.Socket // as they were when they passed a check
	key      reusecheck.Socket   // what Before gave
	// again says that the step listens on a listener: it gets another backlog
	// and asks for no port.
	again bool
}

type ghostPort struct {
	port  uint16
	cache reusecheck.Cache
	// key is what the stack's cache is keyed to, as far as its evidence tells.
	hasKey bool
	key    reusecheck.Socket
}

func newTCPGhost() Ghost { return &tcpGhost{} }

func (g *tcpGhost) Reset() {
	g.ports = g.ports[:0]
	g.admitted = g.admitted[:0]
}

func (g *tcpGhost) at(port uint16) *ghostPort {
	for i := range g.ports {
		if g.ports[i].port == port {
			return &g.ports[i]
		}
	}
	return nil
}

func (g *tcpGhost) touch(port uint16) *ghostPort {
	if p := g.at(port); p != nil {
		return p
	}
	g.ports = append(g.ports, ghostPort{port: port})
	return &g.ports[len(g.ports)-1]
}

func (g *tcpGhost) Admitted(id reusecheck.ID) *reusecheck.Socket {
	for i := range g.admitted {
		if g.admitted[i].ID == id {
			return &g.admitted[i]
		}
	}
	return nil
}

func (g *tcpGhost) Before(op reusecheck.Op, live []reusecheck.Socket) (reusecheck.Cache, *reusecheck.Socket) {
	s := find(live, op.Sock)
	g.again = op.Verb == reusecheck.VListen && s != nil && s.State == reusecheck.Listening
	p := g.at(portOf(op, live))
	switch {
	case p == nil:
		return reusecheck.Cache{}, nil
	case p.hasKey:
		g.key = p.key
		return p.cache, &g.key
	}
	return p.cache, nil
}

// portOf is the port that a step concerns, as far as it is known before it.
func portOf(op reusecheck.Op, live []reusecheck.Socket) uint16 {
	switch op.Verb {
	case reusecheck.VBind:
		return op.Addr.Port()
	case reusecheck.VInherit:
		if p := op.Addr.Port(); p != 0 {
			return p
		}
	}
	if s := find(live, op.Sock); s != nil {
		return s.Local.Port()
	}
	return 0
}

func find(live []reusecheck.Socket, id reusecheck.ID) *reusecheck.Socket {
	for i := range live {
		if live[i].ID == id {
			return &live[i]
		}
	}
	return nil
}

func (g *tcpGhost) After(op reusecheck.Op, got reusecheck.Result, live []reusecheck.Socket) reusecheck.Cache {
	if got.Kind == reusecheck.OK {
		switch op.Verb {
		case reusecheck.VBind, reusecheck.VListen:
			if s := find(live, op.Sock); s != nil && s.Owner() && !g.again {
				g.admit(*s, got)
			}
		case reusecheck.VInherit:
			// Only a child on a port other than its listener's is entered
			// into the cache.
			s, l := find(live, op.Child), find(live, op.Sock)
			if s != nil && l != nil && s.Local.Port() != l.Local.Port() {
				g.admit(*s, got)
			}
		case reusecheck.VConnect:
			if s := find(live, op.Sock); s != nil && s.ByConnect {
				if p := g.touch(s.Local.Port()); !p.cache.Exists {
					p.cache = Opened
				}
			}
		}
	}
	g.settle(live)
	if op.Verb == reusecheck.VBind && op.Addr.Port() == 0 || op.Verb == reusecheck.VListen || op.Verb == reusecheck.VConnect {
		op = reusecheck.Listen(op.Sock) // its port is known by now
	}
	if p := g.at(portOf(op, live)); p != nil {
		return p.cache
	}
	return reusecheck.Cache{}
}

// admit enters a socket that passed a check.
func (g *tcpGhost) admit(s reusecheck.Socket, got reusecheck.Result) {
	if old := g.Admitted(s.ID); old != nil {
		*old = s
	} else {
		g.admitted = append(g.admitted, s)
	}
	p := g.touch(s.Local.Port())
	if s.Opts.Has(reusecheck.ReusePort) && (got.Path != reusecheck.PathFast || !p.hasKey || rekeyed(got)) {
		p.hasKey, p.key = true, s
	}
	p.cache = Intended(p.cache, &s)
}

// Intended is the documented intent for the cache c of a port after s, which
// passed a check, has become its owner. The zero cache is a port without owner.
func Intended(c reusecheck.Cache, s *reusecheck.Socket) reusecheck.Cache {
	reuse, share := s.Opts.Has(reusecheck.ReuseAddr) && s.State != reusecheck.Listening, s.Opts.Has(reusecheck.ReusePort)
	switch first := !c.Exists; {
	case first && reuse:
		c.FastReuse = reusecheck.FastReuse
	case first || !reuse:
		c.FastReuse = reusecheck.FastUnknown
	}
	switch {
	case !share:
		c.FastReusePort = reusecheck.FastUnknown
	case !c.Exists:
		c.FastReusePort, c.UID = reusecheck.FastAny, s.UID
	case c.FastReusePort != reusecheck.FastAny || c.UID != s.UID:
		c.FastReusePort, c.UID = reusecheck.FastStrict, s.UID
	}
	c.Exists = true
	return c
}

// Opened is the documented intent for a port whose owners all came by connect.
var Opened = reusecheck.Cache{Exists: true, FastReuse: reusecheck.FastConnect, FastReusePort: reusecheck.FastConnect}

// rekeyed reports whether a step gave the stack's cache another key.
func rekeyed(got reusecheck.Result) bool {
	b, a := got.Before.WithoutKey(), got.After.WithoutKey()
	b.FastReuse, a.FastReuse = 0, 0
	return got.HasCache && b != a
}

// settle forgets the ports that nobody owns any more, and the sockets that are gone.
func (g *tcpGhost) settle(live []reusecheck.Socket) {
	for i := range g.ports {
		p := &g.ports[i]
		owners, byConnect := 0, 0
		for j := range live {
			if live[j].Local.Port() == p.port {
				owners++
				if live[j].ByConnect {
					byConnect++
				}
			}
		}
		switch {
		case owners == 0:
			*p = ghostPort{port: p.port}
		case owners == byConnect:
			p.cache = Opened
			p.hasKey = false
		}
	}
}

// requested is the address that a step asks for, in the socket's own form.
func requested(o *Observation) netip.Addr {
	s := o.Socket(o.Op.Sock)
	switch {
	case s == nil:
		return netip.Addr{}
	case o.Op.Verb == reusecheck.VBind:
		return reusecheck.Canonical(s.Family, o.Op.Addr.Addr())
	}
	return s.Local.Addr()
}
