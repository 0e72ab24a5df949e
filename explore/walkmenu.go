package explore

import (
	"maps"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// walkMenu is a menu in which UDP sockets connect to what is outside only.
func walkMenu(w *spec.World) *menu {
	if len(w.Families) == 0 || !w.Families[0].IsUDP() {
		return newMenu(w)
	}
	apart := *w
	apart.Verbs = maps.Clone(w.Verbs)
	delete(apart.Verbs, rc.VConnect)
	m := newMenu(&apart)
	m.world = w
	return m
}

// birth is a kind of socket to make, and what it may do first.
type birth struct {
	create rc.Op
	first  []rc.Op
}

// births are the sockets that can be made, in each namespace.
func (m *menu) births(nets rc.Order, id rc.ID) []birth {
	var bs []birth
	for _, net := range append(rc.Order{rc.NoID}, nets...) {
		if net == rc.NoID && m.world.Nets > 0 {
			continue // the trace's own namespace never exits: one of the others stands for it
		}
		for i := range m.fresh {
			create, op := m.fresh[i].at(id)
			if net != rc.NoID {
				create.HasNet, create.Net = true, net
			}
			if n := len(bs); n == 0 || !sameOp(bs[n-1].create, create) {
				bs = append(bs, birth{create: create})
			}
			b := &bs[len(bs)-1]
			b.first = append(b.first, op)
		}
	}
	if m.datagrams() {
		for i := range bs {
			s := rc.Socket{ID: id, Family: bs[i].create.Family}
			bs[i].first = append(bs[i].first, m.peers(&s)...)
		}
	}
	return bs
}

func sameOp(a, b rc.Op) bool { return a.Text(nil) == b.Text(nil) }

// settled is the first name that is not of what every history begins with.
func (m *menu) settled() rc.ID {
	n := rc.ID(0)
	for _, op := range m.world.Base {
		if id, ok := op.Defines(); ok {
			n = max(n, id+1)
		}
	}
	return n
}

// room reports whether there may be one socket more.
func (m *menu) room(live []rc.Socket, most int) bool {
	n, stay := 0, m.settled()
	for i := range live {
		if live[i].ID >= stay {
			n++
		}
	}
	return n < most
}

func (m *menu) datagrams() bool { return len(m.world.Families) > 0 && m.world.Families[0].IsUDP() }

// steps are what can be asked of the sockets and namespaces that live.
func (m *menu) steps(live []rc.Socket, nets rc.Order, next rc.ID, most int) []rc.Op {
	var ops []rc.Op
	stay := m.settled()
	for i := range live {
		s := &live[i]
		if s.ID < stay {
			continue
		}
		for _, op := range m.ofSocket(s) {
			op.Sock = s.ID
			if op.Verb == rc.VInherit {
				if !m.room(live, most) || !m.world.Rivals && !onlyListener(live, s) {
					continue
				}
				op.Child = next
			}
			ops = append(ops, op)
		}
	}
	if m.world.Verbs[rc.VSend] {
		ops = append(ops, m.sends(live)...)
	}
	if m.world.Verbs[rc.VNetns] && len(nets) < m.world.Nets {
		ops = append(ops, rc.NewNetns(next))
	}
	if m.world.Verbs[rc.VExit] {
		ops = append(ops, exits(nets, max(1, m.world.Batch))...)
	}
	return ops
}

// onlyListener reports whether l is the only listener of its port in its namespace.
func onlyListener(live []rc.Socket, l *rc.Socket) bool {
	for i := range live {
		if s := &live[i]; s.State == rc.Listening && s.ID != l.ID && s.Local.Port() == l.Local.Port() && s.HasNet == l.HasNet && s.Net == l.Net {
			return false
		}
	}
	return true
}

// ofSocket are the steps of one socket; those of UDP have peers that are outside,
// and connect again.
func (m *menu) ofSocket(s *rc.Socket) []rc.Op {
	var ops []rc.Op
	if !m.datagrams() {
		for _, a := range m.of(s) {
			ops = append(ops, a.op)
		}
		return ops
	}
	if s.State == rc.Idle && !s.Owner() {
		ops = m.unbound(ops, s)
	}
	ops = append(ops, m.peers(s)...)
	if m.world.Verbs[rc.VDisconnect] && s.Owner() {
		ops = append(ops, rc.Disconnect(0)) // also one that is not connected loses its device
	}
	if m.world.Verbs[rc.VShutdown] && s.State == rc.Connected {
		ops = append(ops, rc.Shutdown(0))
	}
	ops = m.sets(ops, s)
	if m.world.Verbs[rc.VClose] {
		ops = append(ops, rc.Close(0))
	}
	return ops
}

// outside are the other ends that UDP sockets have: a port that nobody holds on
// every address of the world, and another where a family has one address only.
func (m *menu) outside() []netip.AddrPort {
	var ends []netip.AddrPort
	count := map[bool]int{}
	for _, a := range m.lands {
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

// peers are the connects of a UDP socket.
func (m *menu) peers(s *rc.Socket) []rc.Op {
	var ops []rc.Op
	if !m.world.Verbs[rc.VConnect] {
		return nil
	}
	for _, e := range m.outside() {
		if s.Family.Is6() || e.Addr().Is4() {
			ops = append(ops, rc.Connect(s.ID, netip.AddrPortFrom(rc.Canonical(s.Family, e.Addr()), e.Port())))
		}
	}
	return ops
}

// sends are the datagrams that may arrive: from every peer, to every address and
// to each port that somebody holds.
func (m *menu) sends(live []rc.Socket) []rc.Op {
	var ops []rc.Op
	for _, p := range m.world.Ports {
		if !slices.ContainsFunc(live, func(s rc.Socket) bool { return s.Local.Port() == p }) {
			continue
		}
		for _, to := range m.lands {
			for _, from := range m.outside() {
				if from.Addr().Is4() != to.Is4() {
					continue
				}
				for _, d := range m.world.Devs {
					if d == rc.NoDev || m.world.Arrivals {
						ops = append(ops, rc.Send(from, netip.AddrPortFrom(to, p), d))
					}
				}
			}
		}
	}
	return ops
}

// exits are the batches of up to so many namespaces.
func exits(nets rc.Order, most int) []rc.Op {
	var ops []rc.Op
	for set := 1; set < 1<<len(nets); set++ {
		var batch []rc.ID
		for i, id := range nets {
			if set>>i&1 != 0 {
				batch = append(batch, id)
			}
		}
		if len(batch) <= most {
			ops = append(ops, rc.Exit(batch...))
		}
	}
	return ops
}
