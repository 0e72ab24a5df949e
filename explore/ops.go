package explore

import (
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// action is a step that can be asked of a slot: of a fresh socket, which is
// created first, or of the one that is there.
type action struct {
	fresh  bool
	create rc.Op // when fresh
	op     rc.Op
	id     int // of fresh actions: which, for tables by action
}

// at is the action with its socket in a slot.
func (a *action) at(slot rc.ID) (create, op rc.Op) {
	create, op = a.create, a.op
	create.Sock, op.Sock = slot, slot
	return create, op
}

// menu knows the actions of a world.
type menu struct {
	world *spec.World
	fresh []action
	dests []netip.AddrPort // where a connect may go
	lands []netip.Addr     // where a connection may arrive
}

// nowhere is a port that nobody listens on.
const nowhere = 9

func newMenu(w *spec.World) *menu {
	m := &menu{world: w}
	for _, a := range w.Addrs {
		if u := a.Unmap(); !u.IsUnspecified() {
			m.lands = with(m.lands, u)
		}
	}
	if w.Verbs[rc.VConnect] {
		for _, p := range w.Ports {
			for _, a := range m.lands {
				m.dests = append(m.dests, netip.AddrPortFrom(a, p))
			}
		}
		for _, a := range m.lands[:min(1, len(m.lands))] {
			m.dests = append(m.dests, netip.AddrPortFrom(a, nowhere))
		}
	}
	for _, f := range w.Families {
		for o := rc.Opt(0); o <= w.Options; o++ {
			if o&^w.Options != 0 || o.Has(rc.V6Only) && !f.Is6() {
				continue
			}
			for _, u := range w.UIDs {
				for _, d := range w.Devs {
					m.addFresh(f, o, u, d)
				}
			}
		}
	}
	return m
}

func (m *menu) addFresh(f rc.Family, o rc.Opt, uid uint32, dev rc.Dev) {
	create := rc.NewSocket(0, f, o)
	create.UID, create.Dev = uid, dev
	s := rc.Socket{Family: f, Opts: o, UID: uid, Dev: dev}
	for _, op := range m.unbound(nil, &s) {
		m.fresh = append(m.fresh, action{fresh: true, create: create, op: op, id: len(m.fresh)})
	}
}

// unbound adds the steps of a socket that holds no port.
func (m *menu) unbound(ops []rc.Op, s *rc.Socket) []rc.Op {
	w := m.world
	for _, a := range w.Addrs {
		if !fits(s.Family, a) {
			continue
		}
		for _, p := range w.Ports {
			ops = append(ops, rc.Bind(0, netip.AddrPortFrom(a, p)))
		}
		if w.AutoPorts || s.Opts.Has(rc.NoPort) {
			ops = append(ops, rc.Bind(0, netip.AddrPortFrom(a, 0)))
		}
	}
	if w.AutoPorts && w.Verbs[rc.VListen] {
		ops = append(ops, rc.Listen(0))
	}
	return m.connects(ops, s)
}

func (m *menu) connects(ops []rc.Op, s *rc.Socket) []rc.Op {
	for _, d := range m.dests {
		if s.Family.Is6() || d.Addr().Is4() {
			a := rc.Canonical(s.Family, d.Addr())
			ops = append(ops, rc.Connect(0, netip.AddrPortFrom(a, d.Port())))
		}
	}
	return ops
}

// of are the steps of a socket that is there.
func (m *menu) of(s *rc.Socket) []action {
	var few [64]rc.Op
	ops := few[:0]
	add := func(v rc.Verb, op rc.Op) {
		if m.world.Verbs[v] {
			ops = append(ops, op)
		}
	}
	switch s.State {
	case rc.Idle:
		if s.Owner() {
			add(rc.VListen, rc.Listen(0))
			ops = m.connects(ops, s)
		} else {
			ops = m.unbound(ops, s)
			if s.AddrLocked && !(m.world.AutoPorts && m.world.Verbs[rc.VListen]) {
				add(rc.VListen, rc.Listen(0))
			}
		}
		add(rc.VClose, rc.Close(0))
	case rc.Listening:
		add(rc.VClose, rc.Close(0))
		add(rc.VShutdown, rc.Shutdown(0))
		add(rc.VDisconnect, rc.Disconnect(0))
		if m.world.Verbs[rc.VInherit] {
			ops = m.arrivals(ops, s)
		}
	case rc.Connected:
		add(rc.VClose, rc.Close(0))
		add(rc.VShutdown, rc.Shutdown(0))
		add(rc.VDisconnect, rc.Disconnect(0))
		add(rc.VTimeWait, rc.LeaveTimeWait(0))
	case rc.TimeWait:
		add(rc.VExpire, rc.Expire(0))
	}
	if s.State != rc.TimeWait {
		ops = m.sets(ops, s)
	}
	as := make([]action, len(ops))
	for i := range ops {
		as[i] = action{op: ops[i]}
	}
	return as
}

// arrivals adds the connections that may arrive for a listener.
func (m *menu) arrivals(ops []rc.Op, l *rc.Socket) []rc.Op {
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
		if !own.IsUnspecified() && a != own || own.Is4() && !a.Is4() || own == any6 && l.Opts.Has(rc.V6Only) && a.Is4() {
			continue
		}
		for _, p := range ports {
			ops = append(ops, rc.Inherit(0, 0, netip.AddrPortFrom(a, p)))
		}
	}
	return ops
}

func (m *menu) sets(ops []rc.Op, s *rc.Socket) []rc.Op {
	if !m.world.Verbs[rc.VSet] {
		return ops
	}
	if m.world.Fields[rc.SetOpt] {
		for _, o := range []rc.Opt{rc.ReuseAddr, rc.ReusePort} {
			if m.world.Options.Has(o) {
				ops = append(ops, rc.SetOption(0, o, !s.Opts.Has(o)))
			}
		}
	}
	if m.world.Fields[rc.SetUID] {
		for _, u := range m.world.UIDs {
			if u != s.UID {
				ops = append(ops, rc.SetOwner(0, u))
			}
		}
	}
	if m.world.Fields[rc.SetDev] {
		for _, d := range m.world.Devs {
			if d != s.Dev {
				ops = append(ops, rc.SetDevice(0, d))
			}
		}
	}
	return ops
}
