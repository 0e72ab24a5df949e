package explore

import (
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

// menu is a system's menu of a world as actions.
type menu struct {
	spec.Menu
	world *spec.World
	fresh []action
}

func newMenu(sys *spec.System, w *spec.World) *menu {
	m := &menu{Menu: sys.NewMenu(w), world: w}
	for _, f := range w.Families {
		for o := rc.Opt(0); o <= w.Options; o++ {
			if o&^w.Options != 0 || o.Has(rc.V6Only) && !f.Is6() {
				continue
			}
			for _, u := range w.UIDs {
				for _, d := range w.Devs {
					for _, c := range w.Processors() {
						m.addFresh(f, o, u, d, c)
					}
				}
			}
		}
	}
	return m
}

func (m *menu) addFresh(f rc.Family, o rc.Opt, uid uint32, dev rc.Dev, cpu rc.CPU) {
	create := rc.NewSocket(0, f, o)
	create.UID, create.Dev, create.CPU = uid, dev, cpu
	s := rc.Socket{Family: f, Opts: o, UID: uid, Dev: dev, CPU: cpu}
	for _, op := range m.First(nil, &s) {
		m.fresh = append(m.fresh, action{fresh: true, create: create, op: op, id: len(m.fresh)})
	}
}

// of are the steps of a socket that is there.
func (m *menu) of(s *rc.Socket) []action {
	var few [64]rc.Op
	ops := m.Of(few[:0], s)
	as := make([]action, len(ops))
	for i := range ops {
		as[i] = action{op: ops[i]}
	}
	return as
}
