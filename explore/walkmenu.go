package explore

import (
	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// birth is a kind of socket to make, and what it may do first.
type birth struct {
	create rc.Op
	first  []rc.Op
}

// births are the sockets that can be made, in each namespace.
func (m *menu) births(live []rc.Socket, nets rc.Order, id rc.ID) []birth {
	var bs []birth
	for _, net := range append(rc.Order{rc.NoID}, nets...) {
		if net == rc.NoID && m.world.Nets > 0 {
			continue // the trace's own namespace never exits: one of the others stands for it
		}
		for i := range m.fresh {
			create, op := m.fresh[i].at(id)
			s := rc.Socket{ID: id, Family: create.Family}
			if net != rc.NoID {
				create.HasNet, create.Net = true, net
				s.HasNet, s.Net = true, net
			}
			if !m.Clear(op, &s, listenersBeside(live, &s)) {
				continue
			}
			if n := len(bs); n == 0 || !sameOp(bs[n-1].create, create) {
				bs = append(bs, birth{create: create})
			}
			b := &bs[len(bs)-1]
			b.first = append(b.first, op)
		}
	}
	return bs
}

func sameOp(a, b rc.Op) bool { return a.Text(nil) == b.Text(nil) }

// listenersBeside counts the listeners that a port has in the namespace of s.
func listenersBeside(live []rc.Socket, s *rc.Socket) func(port uint16) int {
	return func(port uint16) (n int) {
		for i := range live {
			if l := &live[i]; l.State == rc.Listening && l.Local.Port() == port && l.HasNet == s.HasNet && l.Net == s.Net {
				n++
			}
		}
		return n
	}
}

// firstOwn is the first name that is not of what every history of a world begins with.
func firstOwn(w *spec.World) rc.ID {
	n := rc.ID(0)
	for _, op := range w.Base {
		if id, ok := op.Defines(); ok {
			n = max(n, id+1)
		}
	}
	return n
}

// room reports whether there may be one socket more.
func (m *menu) room(live []rc.Socket, most int) bool {
	n, stay := 0, firstOwn(m.world)
	for i := range live {
		if live[i].ID >= stay {
			n++
		}
	}
	return n < most
}

// steps are what can be asked of the sockets and namespaces that live.
func (m *menu) steps(live []rc.Socket, nets rc.Order, next rc.ID, most int) []rc.Op {
	var ops []rc.Op
	stay := firstOwn(m.world)
	for i := range live {
		s := &live[i]
		if s.ID < stay {
			continue
		}
		for _, op := range m.Of(nil, s) {
			op.Sock = s.ID
			if _, makes := op.Defines(); makes {
				if !m.room(live, most) {
					continue
				}
				op.Child = next
			}
			if m.Clear(op, s, listenersBeside(live, s)) {
				ops = append(ops, op)
			}
		}
	}
	ops = m.Around(ops, live)
	if m.world.Verbs[rc.VNetns] && len(nets) < m.world.Nets {
		ops = append(ops, rc.NewNetns(next))
		for _, t := range m.world.Tables {
			ops = append(ops, rc.NewNetnsWith(next, t))
		}
	}
	if m.world.Verbs[rc.VExit] {
		ops = append(ops, exits(nets, max(1, m.world.Batch))...)
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
