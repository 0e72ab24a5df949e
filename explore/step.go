package explore

import (
	"errors"
	"net/netip"

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
}

func (e *engine) stepper() (*stepper, error) {
	c, err := model.NewCodec(e.kernel, e.domain())
	if err != nil {
		return nil, err
	}
	s := &stepper{e: e, codec: c, base: e.kernel.New(), work: e.kernel.New(),
		origin: oracle.New(), judged: oracle.New(), skipped: map[string]int{}}
	s.kinds, s.ports = newKinds(e, c, e.registry), newKinds(e, c, e.ports)
	s.kinds.begin()
	s.relation.init(len(e.menu.fresh))
	return s, nil
}

// The caller's bits of a socket's word: what the oracle knows of its past, and,
// where the oracle sees another socket than the stack has, what it sees.
const (
	usedBit   = 1 << model.PastShift
	vagueBit  = 2 << model.PastShift
	driftBit  = 4 << model.PastShift
	driftAddr = model.PastShift + 3  // 4 bits, a code
	driftOpts = model.PastShift + 7  // 3 bits: reuseaddr, reuseport, v6only
	driftPort = model.PastShift + 10 // 2 bits, a code
	driftHold = model.PastShift + 12 // 3 bits: port named, address named, port by connect
	shutBit   = 1 << (model.PastShift + 15)
)

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
	t.res, err = s.work.Do(t.op)
	if lacks := (*rc.Unsupported)(nil); errors.As(err, &lacks) {
		s.skipped[lacks.What]++
		return nil
	}
	if err != nil {
		return err
	}
	t.wrong, t.reasons, t.diverged = 0, 0, false
	if err := s.judge(t); err != nil {
		return err
	}
	return visit(t)
}

// possible leaves out what a random search leaves out too: a connection of which
// nobody can say who takes it, or that meets itself.
func (s *stepper) possible(t *transition) bool {
	switch t.op.Verb {
	case rc.VInherit:
		free := -1
		for i := range s.e.sockets {
			if s.slots[i] == nil {
				free = i
				break
			}
		}
		if free < 0 {
			return false
		}
		t.op.Child = rc.ID(free)
		return s.e.world.Rivals || s.listeners(s.slots[t.slot].sock.Local.Port()) == 1
	case rc.VConnect:
		if s.listeners(t.op.Addr.Port()) > 1 {
			return false
		}
		if k := s.slots[t.slot]; !t.act.fresh && k.sock.Local.Port() == t.op.Addr.Port() {
			a := k.sock.Local.Addr().Unmap()
			return a != t.op.Addr.Addr().Unmap() && !a.IsUnspecified()
		}
	}
	return true
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
		t.diverged = t.res.Kind == rc.OK
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
		s.judged.Sockets(func(o *rc.Socket) bool {
			if o.ID.IsOtherEnd() {
				n.Ends[o.ID.OtherEnd()] |= s.past(n.Ends[o.ID.OtherEnd()], o)
			} else {
				n.Socks[o.ID] |= s.past(n.Socks[o.ID], o)
			}
			return true
		})
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

// past is what the oracle knows of a socket beside what the stack has.
func (s *stepper) past(w uint64, o *rc.Socket) uint64 {
	if w == 0 {
		return 0
	}
	known := s.judged.Past(o.ID)
	b := when[uint64](known.Used, usedBit) | when[uint64](known.Vague, vagueBit) | when[uint64](known.Shut, shutBit)
	const opts = rc.ReuseAddr | rc.ReusePort | rc.V6Only
	k := &s.kinds.of(w).sock
	hold := holds(o)
	if k.Local == o.Local && k.Opts&opts == o.Opts&opts && holds(k) == hold {
		return b
	}
	code := s.codec.AddrCode(o.Local.Addr())
	if code < 0 {
		return b | vagueBit // an address that no step of this world names
	}
	port := 0
	for i, p := range s.e.world.Ports {
		if p == o.Local.Port() {
			port = i + 1
		}
	}
	return b | driftBit | uint64(code)<<driftAddr | uint64(o.Opts&opts)<<driftOpts | uint64(port)<<driftPort | hold<<driftHold
}

func holds(k *rc.Socket) (h uint64) {
	for i, b := range [3]bool{k.PortLocked, k.AddrLocked, k.ByConnect} {
		if b {
			h |= 1 << i
		}
	}
	return h
}

// seen is the socket of a word as the oracle sees it.
func (e *engine) seen(w uint64, sock rc.Socket, addr func(code int) netip.Addr) rc.Socket {
	if w&driftBit == 0 {
		return sock
	}
	port := uint16(0)
	if c := w >> driftPort & 3; c > 0 {
		port = e.world.Ports[c-1]
	}
	a := rc.Canonical(sock.Family, addr(int(w>>driftAddr&15)))
	sock.Local = netip.AddrPortFrom(a, port)
	h := w >> driftHold
	sock.PortLocked, sock.AddrLocked, sock.ByConnect = h&1 != 0, h&2 != 0, h&4 != 0
	sock.Opts = sock.Opts&^(rc.ReuseAddr|rc.ReusePort|rc.V6Only) | rc.Opt(w>>driftOpts&7)
	return sock
}

// byRelation judges a request for a named port by the oracle's pairwise
// relation. It leaves what is not such a request, or not answered by its owners,
// to the whole oracle.
func (s *stepper) byRelation(t *transition) (agrees, short bool) {
	var binder *rc.Socket
	row := 0
	port := 0
	switch {
	case s.vague, !t.act.fresh && s.slots[t.slot].word&driftBit != 0:
		return false, false
	case t.op.Verb == rc.VClose || t.op.Verb == rc.VSet && t.res.Kind == rc.OK || t.op.Verb == rc.VExpire:
		return t.res.Kind == rc.OK, t.res.Kind == rc.OK
	case t.res.Kind != rc.OK && !(t.res.Kind == rc.Failed && t.res.Errno == rc.EADDRINUSE):
		return false, false
	case t.op.Verb == rc.VBind && t.op.Addr.Port() != 0 && t.act.fresh:
		if t.create.Opts.Has(rc.V6Only) && t.op.Addr.Addr().Is4In6() {
			return false, false
		}
		s.before[0] = rc.Socket{ID: rc.NoID, Family: t.create.Family, Opts: t.create.Opts, UID: t.create.UID, Dev: t.create.Dev}
		binder, row = &s.before[0], t.act.id
		port = int(t.op.Addr.Port())
	case t.op.Verb == rc.VListen && !t.act.fresh && s.slots[t.slot].sock.Owner() && s.slots[t.slot].sock.State == rc.Idle:
		k := s.slots[t.slot]
		s.before[0] = k.sock
		s.before[0].ID = rc.NoID
		binder, row = &s.before[0], s.relation.fresh+k.id
		port = int(k.sock.Local.Port())
	default:
		return false, false
	}
	addr := rc.Canonical(binder.Family, t.op.Addr.Addr())
	if t.op.Verb == rc.VListen {
		addr = binder.Local.Addr()
	}
	req := oracle.Request{Binder: binder, Addr: addr, Port: uint16(port), Purpose: oracle.Named}
	for i, k := range s.slots[:s.e.sockets] {
		if k != nil && i != t.slot {
			t.reasons |= s.relation.ask(row, k, &req)
		}
		if e := s.ends[i]; e != nil {
			t.reasons |= s.relation.ask(row, e, &req)
		}
	}
	return (t.res.Kind == rc.OK) == (t.reasons == 0), true
}

// relation remembers what the oracle says of a binder and one owner: its
// verdict on a request is made of these alone.
type relation struct {
	fresh int
	rows  [][]uint8 // by binder, then by owner's kind: 0 unknown, else reason+1
	buf   []oracle.Conflict
	one   [1]rc.Socket
}

func (r *relation) init(fresh int) { r.fresh = fresh }

func (r *relation) ask(row int, owner *kind, req *oracle.Request) uint64 {
	for row >= len(r.rows) {
		r.rows = append(r.rows, nil)
	}
	rw := r.rows[row]
	if owner.id >= len(rw) {
		rw = append(rw, make([]uint8, owner.id+1-len(rw)+32)...)
		r.rows[row] = rw
	}
	v := rw[owner.id]
	if v == 0 {
		r.one[0] = owner.seen
		r.one[0].ID = 0
		v = 1
		if r.buf = oracle.Conflicts(r.one[:], req, r.buf[:0]); len(r.buf) > 0 {
			v = uint8(r.buf[0].Reason) + 1
		}
		rw[owner.id] = v
	}
	if v == 1 {
		return 0
	}
	return 1 << (v - 1)
}

// byOracle judges a step by an oracle that is brought to the state, and follows.
func (s *stepper) byOracle(t *transition) (agrees bool, reasons uint64) {
	if !s.restored {
		s.restored = true
		s.known = s.known[:0]
		for i := range s.e.sockets {
			s.know(s.slots[i], s.state.Socks[i], rc.ID(i))
			s.know(s.ends[i], s.state.Ends[i], rc.ID(i).OtherEnd())
		}
		s.origin.Restore(s.e.config, s.known)
	}
	s.judged.CopyFrom(s.origin)
	if t.act.fresh {
		s.judged.Follow(t.create, rc.Success)
	}
	v := s.judged.Judge(t.op, t.res.Answer)
	for _, c := range v.Conflicts {
		reasons |= 1 << c.Reason
	}
	s.judged.Follow(t.op, t.res.Answer)
	return v.Agrees, reasons
}

func (s *stepper) know(k *kind, w uint64, id rc.ID) {
	if k == nil {
		return
	}
	n := oracle.Known{Socket: k.seen, Used: w&usedBit != 0, Vague: w&vagueBit != 0, Shut: w&shutBit != 0}
	n.ID = id
	s.known = append(s.known, n)
}

// The ghost's bits of a port's word: fastreuse plus one, fastreuseport plus one,
// user, exists.
func ghostOf(w uint64, users []uint32) rc.Cache {
	g := w >> model.GhostShift
	if g>>7&1 == 0 {
		return rc.Cache{}
	}
	c := rc.Cache{Exists: true, FastReuse: int8(g&3) - 1, FastReusePort: int8(g>>2&3) - 1}
	if c.FastReusePort > 0 {
		c.UID = users[g>>4&7]
	}
	return c
}

func ghostWord(c rc.Cache, users []uint32) uint64 {
	if !c.Exists {
		return 0
	}
	g := uint64(c.FastReuse+1) | uint64(c.FastReusePort+1)<<2 | 1<<7
	if c.FastReusePort > 0 {
		for i, u := range users {
			if u == c.UID {
				g |= uint64(i) << 4
			}
		}
	}
	return g << model.GhostShift
}

// portSeen and byConnectSeen are what the oracle sees of a socket's word.
func portSeen(w uint64) int {
	if w&driftBit != 0 {
		return int(w >> driftPort & 3)
	}
	return model.PortOf(w)
}

func byConnectSeen(w uint64) bool {
	if w&driftBit != 0 {
		return w>>driftHold&4 != 0
	}
	return model.CameByConnect(w)
}

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

// SelfError is a contradiction between two ways in which the explorer comes to
// one answer. It is a bug of the checker's own.
type SelfError struct{ What, Where string }

func (e *SelfError) Error() string {
	return "the explorer contradicts itself: " + e.What + " at " + e.Where
}

func (s *stepper) trace(t *transition) string { return t.op.String() + " => " + t.res.Answer.String() }
