package explore

import (
	"errors"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

// engine is what all workers of one exploration share and none changes, the
// registry excepted.
type engine struct {
	kernel  *model.Profile
	world   *spec.World
	config  rc.Config
	sockets int
	menu    *menu
	group   []*model.Renaming // the identity first
	passive bool
	reduce  bool // what is interchangeable is explored once
	precise bool // the ghost cache is part of the state, and judged
	// beyond goes on after a grant that the oracle would have refused.
	beyond bool
	// thorough judges every step the long way too, and fails where the two
	// ways differ. For tests.
	thorough bool
	registry *registry
	ports    *registry
}

func (e *engine) domain() model.Domain {
	w := e.world
	changes := w.Verbs[rc.VSet] || len(w.Devs) > 1
	return model.Domain{Config: e.config, Addrs: w.Addrs, Ports: w.Ports, UIDs: w.UIDs,
		Lookups: !e.passive, Order: !e.passive && changes}
}

// The ways in which a transition can violate a property.
const (
	disagrees = 1 << iota // sound or complete
	imprecise
	broken
)

// transition is one step from a state.
type transition struct {
	slot       int
	act        *action
	create, op rc.Op
	res        rc.Result
	wrong      uint8  // disagrees, imprecise, broken
	reasons    uint64 // of the conflicts that the oracle names, as a set
	// diverged says that there is no next state: the oracle would not have
	// let the stack get there.
	diverged bool
	next     model.State
}

// stepper performs and judges the steps of states. One goroutine uses it.
type stepper struct {
	e          *engine
	codec      *model.Codec
	kinds      *kinds
	ports      *kinds
	base, work *model.TCP
	state      *model.State
	slots      [model.MaxSockets]*kind
	ends       [model.MaxSockets]*kind
	free       int  // the first empty slot, negative for none
	always     bool // a step that leads nowhere is packed too
	vague      bool
	relation   relation
	t          transition
	obs        spec.Observation
	before     [1]rc.Socket
	// the long way
	known          []oracle.Known
	restored       bool
	origin, judged *oracle.TCP
	skipped        map[string]int
	count          func(port uint16) int // listeners, for the menu
}

func (e *engine) stepper() (*stepper, error) {
	c, err := model.NewCodec(e.kernel, e.domain())
	if err != nil {
		return nil, err
	}
	s := &stepper{e: e, codec: c, base: e.kernel.New(), work: e.kernel.New(),
		origin: oracle.New(), judged: oracle.New(), skipped: map[string]int{}}
	s.kinds, s.ports = newKinds(e, c, e.registry), newKinds(e, c, e.ports)
	s.count = s.listeners
	s.kinds.begin()
	s.relation.init(len(e.menu.fresh))
	return s, nil
}

// expand performs every step of a state, one for each set of sockets that
// cannot be told apart. The transition is valid until visit returns.
func (s *stepper) expand(st *model.State, visit func(*transition) error) error {
	if err := s.load(st); err != nil {
		return err
	}
	for slot := range s.e.sockets {
		if s.slots[slot] != nil || s.e.reduce && slot != s.free {
			continue
		}
		for i := range s.e.menu.fresh {
			if err := s.perform(slot, &s.e.menu.fresh[i], visit); err != nil {
				return err
			}
		}
	}
	for slot, k := range s.slots[:s.e.sockets] {
		if k == nil || s.twin(slot) {
			continue
		}
		for i := range k.acts {
			if err := s.perform(slot, &k.acts[i], visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// twin reports whether an earlier slot has the same socket: what one of them
// does, the other does too. Where places count they can be told apart.
func (s *stepper) twin(slot int) bool {
	if s.codec.Ordered() || !s.e.reduce {
		return false
	}
	for i := range slot {
		if s.state.Socks[i] == s.state.Socks[slot] && s.state.Ends[i] == s.state.Ends[slot] {
			return true
		}
	}
	return false
}

// load brings the stepper to a state.
func (s *stepper) load(st *model.State) error {
	s.place(st)
	return s.codec.Load(s.base, s.e.kernel, st)
}

// place finds out what kinds of sockets a state has.
func (s *stepper) place(st *model.State) {
	s.state, s.restored, s.vague, s.free = st, false, false, -1
	for i := s.e.sockets - 1; i >= 0; i-- {
		s.slots[i], s.ends[i] = nil, nil
		w := st.Socks[i]
		if w == 0 {
			s.free = i
			continue
		}
		s.slots[i] = s.kinds.of(w)
		s.vague = s.vague || w&vagueBit != 0
		if w = st.Ends[i]; w != 0 {
			s.ends[i] = s.kinds.of(w)
			s.vague = s.vague || w&vagueBit != 0
		}
	}
}

func (s *stepper) perform(slot int, a *action, visit func(*transition) error) error {
	t := &s.t
	t.slot, t.act = slot, a
	t.create, t.op = a.at(rc.ID(slot))
	if !s.possible(t) {
		return nil
	}
	s.work.CopyFrom(s.base)
	if a.fresh {
		if _, err := s.work.Do(t.create); err != nil {
			return err
		}
	}
	var err error
	t.wrong, t.reasons, t.diverged = 0, 0, false
	if t.res, err = s.work.Do(t.op); err == nil {
		err = s.judge(t)
	}
	if lacks := (*rc.Unsupported)(nil); errors.As(err, &lacks) {
		s.skipped[lacks.What]++
		return nil
	}
	if err != nil {
		return err
	}
	return visit(t)
}

// possible leaves out what the menu leaves out, and a child for which there is no
// room.
func (s *stepper) possible(t *transition) bool {
	switch t.op.Verb {
	case rc.VInherit:
		if s.free < 0 {
			return false
		}
		t.op.Child = rc.ID(s.free)
	case rc.VConnect:
	default:
		return true
	}
	s.before[0] = rc.Socket{}
	if !t.act.fresh {
		s.before[0] = s.slots[t.slot].sock
	}
	return s.e.menu.Clear(t.op, &s.before[0], s.count)
}

func (s *stepper) listeners(port uint16) (n int) {
	for _, k := range s.slots[:s.e.sockets] {
		if k != nil && k.sock.State == rc.Listening && k.sock.Local.Port() == port {
			n++
		}
	}
	return n
}

// judge holds a step that was performed to the oracle and packs what it led to.
func (s *stepper) judge(t *transition) error {
	agrees, short := s.byRelation(t)
	if !short || s.e.thorough {
		long, why := s.byOracle(t)
		if short && long != agrees {
			return &SelfError{"the oracle and its relation differ", s.trace(t)}
		}
		agrees, t.reasons = long, why
	}
	if !agrees {
		t.wrong |= disagrees
		t.diverged = t.res.Kind == rc.OK && !s.e.beyond
	}
	if s.work.Check() != nil {
		t.wrong |= broken
		t.diverged = true
	}
	if t.diverged && !s.e.precise && !s.always {
		return nil
	}
	if err := s.pack(t, short); err != nil {
		if t.diverged {
			return nil
		}
		return err
	}
	return nil
}

// pack writes down the state after a step, with what the oracle and the ghost
// cache remember.
func (s *stepper) pack(t *transition, short bool) error {
	if err := s.codec.Pack(s.work, &t.next); err != nil {
		return err
	}
	n := &t.next
	if short {
		for i := range s.e.sockets {
			n.Socks[i] |= s.state.Socks[i] >> model.PastShift << model.PastShift
			n.Ends[i] |= s.state.Ends[i] >> model.PastShift << model.PastShift
			if n.Socks[i]&(1<<model.PastShift-1) == 0 {
				n.Socks[i] = 0
			}
			if n.Ends[i]&(1<<model.PastShift-1) == 0 {
				n.Ends[i] = 0
			}
		}
		if t.op.Verb == rc.VListen && t.res.Kind == rc.OK {
			n.Socks[t.slot] |= usedBit
		}
	} else {
		lost := false
		s.judged.Sockets(func(o *rc.Socket) bool {
			w := &n.Socks[max(o.ID, 0)]
			if o.ID.IsOtherEnd() {
				w = &n.Ends[o.ID.OtherEnd()]
			}
			lost = lost || *w == 0 && o.Owner()
			*w |= s.past(*w, o)
			return true
		})
		if lost {
			return &rc.Unsupported{What: "an owner that the stack has lost and of which the oracle cannot know", Why: "no word of a state stands for it"}
		}
	}
	if s.e.precise {
		s.ghost(t)
	}
	for i := range s.e.sockets {
		if w := n.Socks[i]; w != 0 && model.Pristine(w&^(usedBit|vagueBit)) && w&vagueBit == 0 {
			n.Socks[i] = 0
		}
	}
	return nil
}

// SelfError is a contradiction between two ways in which the explorer comes to
// one answer. It is a bug of the checker's own.
type SelfError struct{ What, Where string }

func (e *SelfError) Error() string {
	return "the explorer contradicts itself: " + e.What + " at " + e.Where
}

func (s *stepper) trace(t *transition) string { return t.op.String() + " => " + t.res.Answer.String() }
