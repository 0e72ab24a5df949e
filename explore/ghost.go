package explore

import (
	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// ghost carries the ghost cache over a step and holds the kernel's to it.
func (s *stepper) ghost(t *transition) {
	n := &t.next
	users := s.e.world.UIDs
	admitted := -1
	if t.res.Kind == rc.OK {
		switch t.op.Verb {
		case rc.VBind, rc.VListen:
			admitted = t.slot
		case rc.VInherit:
			if portSeen(n.Socks[t.op.Child]) != portSeen(n.Socks[t.slot]) {
				admitted = int(t.op.Child)
			}
		}
	}
	for p := range s.e.world.Ports {
		g := ghostOf(s.state.Ports[p], users)
		if admitted >= 0 && portSeen(n.Socks[admitted]) == p+1 {
			g = spec.Intended(g, &s.kinds.of(n.Socks[admitted]).seen)
		}
		if t.op.Verb == rc.VConnect && t.res.Kind == rc.OK && !g.Exists && portSeen(n.Socks[t.slot]) == p+1 && byConnectSeen(n.Socks[t.slot]) {
			g = spec.Opened
		}
		owners, connects := 0, 0
		for i := range s.e.sockets {
			for _, w := range [2]uint64{n.Socks[i], n.Ends[i]} {
				if w != 0 && portSeen(w) == p+1 {
					owners++
					if byConnectSeen(w) {
						connects++
					}
				}
			}
		}
		switch owners {
		case 0:
			g = rc.Cache{}
		case connects:
			g = spec.Opened
		}
		n.Ports[p] |= ghostWord(g, users)
	}
	s.observe(t)
}

// observe asks the property itself.
func (s *stepper) observe(t *transition) {
	o := &s.obs
	o.Op, o.Got = t.op, t.res
	before, after := s.portsAround(t)
	o.GhostBefore, o.GhostAfter = rc.Cache{}, rc.Cache{}
	for p, number := range s.e.world.Ports {
		if number == before {
			o.GhostBefore = ghostOf(s.state.Ports[p], s.e.world.UIDs)
		}
		if number == after {
			o.GhostAfter = ghostOf(t.next.Ports[p], s.e.world.UIDs)
		}
	}
	if t.act.fresh {
		s.before[0] = rc.Socket{Family: t.create.Family, Opts: t.create.Opts, UID: t.create.UID, Dev: t.create.Dev}
	} else {
		s.before[0] = s.slots[t.slot].seen
	}
	s.before[0].ID = rc.ID(t.slot)
	o.Before = s.before[:]
	if spec.Precise.Check(o).Property != "" {
		t.wrong |= imprecise
	}
}

// portsAround are the ports whose ghost caches a machine compares around a step.
func (s *stepper) portsAround(t *transition) (before, after uint16) {
	own := func() uint16 {
		if p := portSeen(t.next.Socks[t.slot]); p > 0 {
			return s.e.world.Ports[p-1]
		}
		return 0
	}
	switch t.op.Verb {
	case rc.VBind:
		before = t.op.Addr.Port()
		if after = before; after == 0 {
			after = own()
		}
		return before, after
	case rc.VInherit:
		if p := t.op.Addr.Port(); p != 0 {
			return p, p
		}
	}
	if !t.act.fresh {
		before = s.slots[t.slot].seen.Local.Port()
	}
	return before, own()
}
