package explore

import (
	"context"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// symmetries are the renamings of addresses, users and devices that change no
// answer: the identity first. They are found by asking, not by knowing. Two
// values of a sort are interchangeable when in every state that two sockets can
// reach every step is answered, judged and carried on alike after the exchange.
// The rules look at sockets by twos (an owner and the one who asks, the cached
// one and the one who asks), so what two sockets do not show, more do not show
// either; docs/proof.md has the argument, and the tests compare with searches
// that use no symmetry.
func symmetries(ctx context.Context, e *engine, workers int) ([]*model.Renaming, error) {
	pair := *e
	pair.registry, pair.ports = newRegistry(), newRegistry()
	pair.sockets, pair.reduce, pair.group = min(2, e.sockets), true, []*model.Renaming{model.NoRenaming()}
	s := Search{Kernel: e.kernel, World: e.world, Sockets: pair.sockets, Workers: workers, Memory: 1 << 30}
	r, err := s.beginWith(&pair)
	if err != nil {
		return nil, err
	}
	for r.open() > 0 && ctx.Err() == nil {
		if _, err := r.expandLevel(ctx); err != nil {
			return nil, err
		}
	}
	group := []*model.Renaming{model.NoRenaming()}
	if r.store.full.Load() {
		return group, nil // what was not seen may notice any exchange
	}
	t := &swapTest{run: r, x: r.ws[0].step, ctx: ctx, want: map[request]answerTo{}}
	if t.y, err = pair.stepper(); err != nil {
		return nil, err
	}
	for _, classes := range t.classes() {
		group = multiply(group, classes)
	}
	return group, ctx.Err()
}

// mover writes one exchange of two codes into a renaming.
type mover func(r *model.Renaming, i, j int)

func moveAddr(r *model.Renaming, i, j int) { r.Addr[i], r.Addr[j] = r.Addr[j], r.Addr[i] }
func moveUID(r *model.Renaming, i, j int)  { r.UID[i], r.UID[j] = r.UID[j], r.UID[i] }
func moveDev(r *model.Renaming, i, j int)  { r.Dev[i], r.Dev[j] = r.Dev[j], r.Dev[i] }

// orbit is a set of codes that may be exchanged at will.
type orbit struct {
	codes []int
	move  mover
}

// classes finds the orbits of each sort.
func (t *swapTest) classes() []orbit {
	w := t.run.e.world
	var addrs, users, devs []int
	for _, a := range w.Addrs {
		addrs = with(addrs, t.x.codec.AddrCode(a))
	}
	for i := range w.UIDs {
		users = append(users, i)
	}
	for _, d := range w.Devs {
		devs = append(devs, int(d))
	}
	var all []orbit
	all = append(all, t.orbits(addrs, moveAddr)...)
	all = append(all, t.orbits(users, moveUID)...)
	return append(all, t.orbits(devs, moveDev)...)
}

func (t *swapTest) orbits(codes []int, move mover) []orbit {
	var all []orbit
next:
	for _, c := range codes {
		for i := range all {
			// Exchanges that change nothing can be done one after the other,
			// so one member stands for all.
			if t.invisible(move, all[i].codes[0], c) {
				all[i].codes = append(all[i].codes, c)
				continue next
			}
		}
		all = append(all, orbit{[]int{c}, move})
	}
	return all
}

// multiply multiplies a group by all permutations of an orbit.
func multiply(group []*model.Renaming, o orbit) []*model.Renaming {
	var all []*model.Renaming
	permute(len(o.codes), func(p []int) {
		for _, g := range group {
			n := *g
			for i, c := range o.codes {
				to := o.codes[p[i]]
				one := model.NoRenaming()
				o.move(one, c, to)
				copyCode(&n, one, o.move, c)
			}
			all = append(all, &n)
		}
	})
	return all
}

// copyCode takes over from one what it says of a code.
func copyCode(n, one *model.Renaming, move mover, c int) {
	probe := model.NoRenaming()
	move(probe, 0, 1)
	switch {
	case probe.Addr[0] == 1:
		n.Addr[c] = one.Addr[c]
	case probe.UID[0] == 1:
		n.UID[c] = one.UID[c]
	default:
		n.Dev[c] = one.Dev[c]
	}
}

// permute calls f with every permutation of 0..n-1, the identity first.
func permute(n int, f func([]int)) {
	p := make([]int, 0, n)
	used := make([]bool, n)
	var rec func()
	rec = func() {
		if len(p) == n {
			f(p)
			return
		}
		for i := range n {
			if !used[i] {
				used[i], p = true, append(p, i)
				rec()
				used[i], p = false, p[:len(p)-1]
			}
		}
	}
	rec()
}

// swapTest looks for a step that notices an exchange.
type swapTest struct {
	run  *run
	ctx  context.Context
	x, y *stepper
	want map[request]answerTo
}

// request is a step as a value.
type request struct {
	slot   int
	fresh  bool
	family rc.Family
	opts   rc.Opt
	uid    uint32
	dev    rc.Dev
	verb   rc.Verb
	addr   netip.AddrPort
	field  rc.Field
	opt    rc.Opt
	on     bool
	toUID  uint32
	toDev  rc.Dev
	fails  bool   // see asker
	seen   uint64 // drift bits of who asks, for the tables of a proof
}

// answerTo is all that is said of a step.
type answerTo struct {
	answer   rc.Answer
	path     rc.Path
	reason   rc.Reason
	wrong    uint8
	reasons  uint64
	diverged bool
	next     model.State
}

func requestOf(t *transition) request {
	q := request{slot: t.slot, fresh: t.act.fresh, verb: t.op.Verb, addr: t.op.Addr, field: t.op.Field,
		opt: t.op.Opts, on: t.op.On, toUID: t.op.UID, toDev: t.op.Dev}
	if t.act.fresh {
		q.family, q.opts, q.uid, q.dev = t.create.Family, t.create.Opts, t.create.UID, t.create.Dev
	}
	return q
}

func answerOf(t *transition) answerTo {
	a := answerTo{t.res.Answer, t.res.Path, t.res.Reason, t.wrong, t.reasons, t.diverged, model.State{}}
	if !t.diverged {
		a.next = t.next
	}
	return a
}

// errNoticed ends an expansion.
type errNoticed struct{}

func (errNoticed) Error() string { return "the exchange is noticed" }

// invisible reports whether no step notices the exchange of two codes.
func (t *swapTest) invisible(move mover, i, j int) bool {
	r := model.NoRenaming()
	move(r, i, j)
	var st model.State
	for sh := range t.run.store.shards {
		s := &t.run.store.shards[sh]
		for at := range s.n {
			t.run.layout.read(t.x, s.read(at, t.run.store.width), &st)
			if t.ctx.Err() != nil || !t.sameAt(r, &st) {
				return false
			}
		}
	}
	return true
}

func (t *swapTest) sameAt(r *model.Renaming, st *model.State) bool {
	clear(t.want)
	err := t.x.expand(st, func(tr *transition) error {
		q := requestOf(tr)
		a := answerOf(tr)
		if q.fresh {
			q.uid, q.dev = t.uid(r, q.uid), rc.Dev(r.Dev[q.dev])
		}
		switch q.field {
		case rc.SetUID:
			q.toUID = t.uid(r, q.toUID)
		case rc.SetDev:
			q.toDev = rc.Dev(r.Dev[q.toDev])
		}
		q.addr = t.addr(r, q.addr)
		a.next = renameState(r, &a.next)
		t.want[q] = a
		return nil
	})
	if err != nil {
		return false
	}
	image := renameState(r, st)
	n := 0
	err = t.y.expand(&image, func(tr *transition) error {
		n++
		if a, ok := t.want[requestOf(tr)]; !ok || a != answerOf(tr) {
			return errNoticed{}
		}
		return nil
	})
	return err == nil && n == len(t.want)
}

func (t *swapTest) uid(r *model.Renaming, u uint32) uint32 {
	us := t.run.e.world.UIDs
	for i, v := range us {
		if v == u {
			return us[r.UID[i]]
		}
	}
	return u
}

// addr renames an address, in the form that it has.
func (t *swapTest) addr(r *model.Renaming, a netip.AddrPort) netip.AddrPort {
	return renameAddr(t.x.codec, r, t.run.e.world.Addrs, a)
}

func renameAddr(c *model.Codec, r *model.Renaming, all []netip.Addr, a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() {
		return a
	}
	code := c.AddrCode(a.Addr())
	if code < 0 || int(r.Addr[code]) == code {
		return a
	}
	for _, b := range all {
		if c.AddrCode(b) == int(r.Addr[code]) {
			b = b.Unmap()
			if a.Addr().Is4In6() {
				b = netip.AddrFrom16(b.As16())
			}
			return netip.AddrPortFrom(b, a.Port())
		}
	}
	return a
}

// renameState renames a whole state, sockets in place.
func renameState(r *model.Renaming, st *model.State) model.State {
	n := *st
	for i := range n.Socks {
		n.Socks[i], n.Ends[i] = renameSock(r, n.Socks[i]), renameSock(r, n.Ends[i])
	}
	for p := range n.Ports {
		n.Ports[p] = renamePort(r, n.Ports[p])
	}
	return n
}

// renamePort renames a port's word, the ghost's user too.
func renamePort(r *model.Renaming, w uint64) uint64 {
	w = r.Port(w)
	if b := w >> model.GhostShift; b>>2&3 > 1 {
		w = w&^(7<<(model.GhostShift+4)) | uint64(r.UID[b>>4&7])<<(model.GhostShift+4)
	}
	return w
}

// renameSock renames a socket's word, and what the oracle sees in it.
func renameSock(r *model.Renaming, w uint64) uint64 {
	w = r.Sock(w)
	if w&driftBit != 0 {
		w = w&^(15<<driftAddr) | uint64(r.Addr[w>>driftAddr&15])<<driftAddr
	}
	return w
}
