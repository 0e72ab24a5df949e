package explore

import (
	"context"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/oracle"
)

// proofWorld has three of everything that rules only compare: a violation has
// an owner, a request and the socket that the cache is keyed to.
const proofWorld = "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,127.0.0.2,127.0.0.3,::,::1,fd00::1,fd00::2,fd00::3," +
	"::ffff:0.0.0.0,::ffff:127.0.0.1,::ffff:127.0.0.2,::ffff:127.0.0.3 v6only reuseaddr reuseport uid=3 dev=3 ports=2 " +
	"listen close shutdown disconnect connect inherit timewait expire set-opt set-uid set-dev auto other-port"

// tables are a kernel's rules as finite functions, each entry one answer of the
// model itself: which request the cache answers, which owner stands against
// which request, what the cache is after a grant, and what an owner may turn
// into. The port at issue is the first; the second is where connections go to
// and come from.
type tables struct {
	e    *engine
	step *stepper
	// askers are steps of sockets without a port that may end on the port:
	// fresh ones, and those that have a past.
	askers []asker
	// past are the words of sockets without a port that have had one; their
	// askers are those of their number plus one, those of fresh sockets of 0.
	past   map[uint64]int
	byRead map[request]int // rows by what a request reads
	words  []uint64
	index  map[uint64]int // of owners' words
	lives  []owner
	// caches are the port's words, as far as they are the cache.
	caches     []uint64
	cacheIndex map[uint64]int
	classes    map[uint64]int // of what scan and oracle read of an owner
	members    []uint64       // one word of each class
	rows       [][]stand      // by row of requests, then by class
	asks       []asker        // one request of each row
	grants     [][]grant      // by cache, then by row
	firsts     map[int]int    // caches of a port that nobody owned, by row
	frees      map[int]int    // caches after an owner has left, by cache
	setsOf     []*rowSets
	passers    []int
	helper     uint64 // a listener of the second port
	// parted says that the oracle knows of an owner that the stack has not.
	parted bool
}

// asker is a step by which a socket asks for the port.
type asker struct {
	act   *action
	self  uint64 // its word before, 0 for a fresh socket
	needs feature
	word  uint64 // its word once it is granted; it holds the port
	row   int
	past  int // whose it is
	// fails says that the socket holds the port and yet is refused something
	// else: to listen, or to be connected.
	fails bool
}

// opens reports whether the cache alone decides: a connect that looks for a port.
func (q *asker) opens() bool { return q.act.op.Verb == rc.VConnect }

// owner is what is known of a word.
type owner struct {
	class  int
	listen *asker    // its request to listen, if it can ask
	turns  []turn    // what its steps make of it
	hands  []handing // the connections that it may hand to another port
	leaves []feature // what each way takes by which it may leave the port
}

// turn is one result of a step: another owner of the same port (the socket
// itself as it is then, or a child).
type turn struct {
	to    int // negative: a socket without a port, by its number in past
	needs feature
	joins bool // it is a child: who turns stays
}

// handing is a child that lands on the port from a listener of another.
type handing struct {
	from  uint64 // the listener's word, on the other port
	act   *action
	needs feature
	child int
}

// stand is how one owner stands to a request.
type stand uint8

const (
	scanRefuses stand = 1 << iota // in every order and whoever made the buckets
	scanMayPass                   // in some circumstances
	oracleRefuses
	standKnown
)

// grant is what the cache makes of a request.
type grant struct {
	known bool
	fast  bool
	after int32 // the cache afterwards, negative when no owner lets it pass
}

func newTables(kernel *model.Profile) (*tables, error) { return newTablesIn(kernel, proofWorld) }

func newTablesIn(kernel *model.Profile, world string) (*tables, error) {
	w, err := ParseWorld(world)
	if err != nil {
		return nil, err
	}
	s := Search{Kernel: kernel, World: w, Sockets: 4, Unreduced: true}
	e, err := s.engine(context.Background())
	if err != nil {
		return nil, err
	}
	e.config.Ports = rc.PortRange{Lo: w.Ports[0], Hi: w.Ports[0]}
	e.precise = false
	t := &tables{e: e, index: map[uint64]int{}, cacheIndex: map[uint64]int{}, classes: map[uint64]int{},
		firsts: map[int]int{}, frees: map[int]int{}, past: map[uint64]int{}, byRead: map[request]int{}}
	if t.step, err = e.stepper(); err != nil {
		return nil, err
	}
	if t.step.codec.Ordered() && t.ordered() {
		return nil, &rc.Unsupported{What: "a kernel whose owner scan ends at the first bucket that fits",
			Why: "what one owner shows then depends on the others"}
	}
	t.makeHelper()
	t.makeFresh()
	for i := 0; i < len(t.words); i++ { // grows
		t.follow(i)
	}
	if t.parted {
		return nil, &rc.Unsupported{What: "a kernel that forgets an owner which the oracle remembers",
			Why: "no pair of a cache and an owner shows it"}
	}
	return t, nil
}

// ordered reports whether the scan itself depends on places, which a world
// without connections shows.
func (t *tables) ordered() bool {
	d := t.e.domain()
	d.Order, d.Lookups = false, false
	c, err := model.NewCodec(t.e.kernel, d)
	return err != nil || c.Ordered()
}

// run performs a step of the socket in a slot, with the given sockets and the
// cache of the port, and packs what it leads to.
func (t *tables) run(cache uint64, socks []uint64, slot int, a *action) (rc.Result, *model.State, bool) {
	s := t.step
	n := &s.t.next
	res, err := t.do(cache, socks, slot, a)
	if err != nil || s.base.Check() != nil || s.codec.Pack(s.base, n) != nil {
		return res, nil, false
	}
	t.remember(socks, slot, a, res.Answer)
	return res, n, true
}

// remember lets the oracle follow the same step, and notes in the words where it
// sees another socket than the stack has.
func (t *tables) remember(socks []uint64, slot int, a *action, got rc.Answer) {
	s := t.step
	s.known = s.known[:0]
	for i, w := range socks {
		if w != 0 {
			s.know(s.kinds.of(w), w, rc.ID(i))
		}
	}
	s.judged.Restore(t.e.config, s.known)
	create, op := a.at(rc.ID(slot))
	if op.Verb == rc.VInherit {
		op.Child = model.MaxSockets - 1
	}
	if a.fresh {
		s.judged.Follow(create, rc.Success)
	}
	s.judged.Follow(op, got)
	n := &s.t.next
	s.judged.Sockets(func(o *rc.Socket) bool {
		if id := o.ID; !id.IsOtherEnd() && n.Socks[id] != 0 {
			n.Socks[id] |= t.remembered(n.Socks[id], o)
		}
		return true
	})
}

func (t *tables) do(cache uint64, socks []uint64, slot int, a *action) (rc.Result, error) {
	var st model.State
	copy(st.Socks[:], socks)
	st.Ports[0], st.Ports[1] = 0, 0
	for _, w := range socks {
		switch model.PortOf(w) {
		case 1:
			st.Ports[0] = cache
		case 2:
			st.Ports[1] = model.BareCache
		}
	}
	s := t.step
	if err := s.codec.Load(s.base, t.e.kernel, &st); err != nil {
		return rc.Result{}, err
	}
	create, op := a.at(rc.ID(slot))
	if op.Verb == rc.VInherit {
		op.Child = model.MaxSockets - 1
	}
	if a.fresh {
		if _, err := s.base.Do(create); err != nil {
			return rc.Result{}, err
		}
	}
	return s.base.Do(op)
}

// clean drops what is no part of an owner in the abstraction: where it stands,
// who its peer is, and that it may not connect after it listened. All of it only
// ever forbids steps. What the oracle sees of it stays.
func clean(w uint64) uint64 {
	return model.Forgetful(w)&(1<<model.PastShift-1) | w&rememberedBits
}

// withPort moves a socket to the port of another code, for stack and oracle.
func withPort(w uint64, code int) uint64 {
	if portSeen(w) == model.PortOf(w) && w&driftBit != 0 {
		w = w&^(3<<driftPort) | uint64(code)<<driftPort
	}
	return model.WithPort(w, code)
}

// remembered is what the oracle remembers of a socket for certain. What a TIME_WAIT
// socket did before is asked of none.
func (t *tables) remembered(w uint64, o *rc.Socket) uint64 {
	if o.State == rc.TimeWait {
		return t.seenOf(w, o)
	}
	return t.seenOf(w, o) | t.step.past(w, o)&(usedBit|shutBit)
}

// seenOf says in a word's bits what the oracle sees of a socket. By what right one
// in TIME_WAIT held its port is asked of none.
func (t *tables) seenOf(w uint64, o *rc.Socket) uint64 {
	s := t.step
	k := s.kinds.of(w).sock
	seen := *o
	if o.State == rc.TimeWait {
		seen.PortLocked, seen.AddrLocked, seen.ByConnect = k.PortLocked, k.AddrLocked, k.ByConnect
	}
	b := s.drift(w, &seen)
	if b&vagueBit != 0 || portSeen(w|b) == 1 && model.PortOf(w) != 1 {
		t.parted = true
	}
	return b & driftBits
}

// makeHelper makes a listener of the second port that takes every connection.
func (t *tables) makeHelper() {
	for i := range t.e.menu.fresh {
		a := &t.e.menu.fresh[i]
		if a.op.Verb == rc.VBind && a.op.Addr.Addr() == any6 && a.op.Addr.Port() == t.e.world.Ports[1] && a.create.Opts == 0 &&
			a.create.UID == 0 && a.create.Dev == rc.NoDev {
			if _, n, ok := t.run(0, nil, 0, a); ok {
				_, n, _ = t.run(0, []uint64{n.Socks[0]}, 0, &action{op: rc.Listen(0)})
				t.helper = n.Socks[0]
			}
			return
		}
	}
}

// makeFresh collects the steps by which a fresh socket comes to hold the port.
func (t *tables) makeFresh() {
	for i := range t.e.menu.fresh {
		t.asker(&t.e.menu.fresh[i], 0, 0)
	}
}

// asker notes a step of a socket without a port, if it may end on the port.
func (t *tables) asker(a *action, self uint64, past int) {
	res, n, ok := t.run(0, []uint64{self, t.helper}, 0, a)
	if !ok || model.PortOf(n.Socks[0]) != 1 {
		return
	}
	q := asker{act: a, self: self, needs: a.needs(), word: clean(n.Socks[0]), past: past, fails: res.Kind != rc.OK}
	t.owner(q.word)
	q.row = t.row(&q)
	t.askers = append(t.askers, q)
}

// row is where requests like q's are noted: those of the same kind of socket for
// the same address and port.
func (t *tables) row(q *asker) int {
	sock := q.word
	if q.self != 0 {
		sock = q.self
	}
	k := t.step.kinds.of(sock).sock
	opts := k.Opts & (rc.ReuseAddr | rc.ReusePort | rc.V6Only)
	if q.act.fresh {
		opts = q.act.create.Opts & (rc.ReuseAddr | rc.ReusePort | rc.V6Only)
	}
	r := request{slot: model.PortOf(q.self), family: k.Family, opts: opts, uid: k.UID, dev: k.Dev, verb: q.act.op.Verb, addr: q.act.op.Addr, fails: q.fails,
		seen: q.self & driftBits}
	if q.act.op.Verb == rc.VListen {
		r.addr = netip.AddrPortFrom(k.Local.Addr(), 0)
	}
	if q.opens() {
		r = request{verb: rc.VConnect, family: k.Family, addr: r.addr, fails: q.fails}
	}
	i, ok := t.byRead[r]
	if !ok {
		i = len(t.rows)
		t.byRead[r] = i
		t.rows = append(t.rows, nil)
		t.asks = append(t.asks, *q)
	}
	return i
}

// pastLife notes what a socket without a port may ask for that has one behind it,
// and gives its number; 0 for one that is as good as fresh.
func (t *tables) pastLife(w uint64) int {
	if w = clean(w); model.Pristine(w) {
		return 0
	}
	n, ok := t.past[w]
	if ok {
		return n
	}
	n = len(t.past) + 1
	t.past[w] = n
	acts := t.step.kinds.of(w).acts
	for i := range acts {
		switch acts[i].op.Verb {
		case rc.VBind, rc.VListen, rc.VConnect:
			t.asker(&acts[i], w, n)
		}
	}
	return n
}

// owner is the number of a word that holds the port.
func (t *tables) owner(w uint64) int {
	i, ok := t.index[w]
	if !ok {
		i = len(t.words)
		t.index[w] = i
		t.words = append(t.words, w)
		t.lives = append(t.lives, owner{class: t.class(w)})
	}
	return i
}

func (t *tables) class(w uint64) int {
	r := w & (model.ReadByScan | driftBits)
	c, ok := t.classes[r]
	if !ok {
		c = len(t.members)
		t.classes[r] = c
		t.members = append(t.members, w)
	}
	return c
}

// cache is the number of a port's word.
func (t *tables) cache(w uint64) int {
	w &= model.CacheBits
	c, ok := t.cacheIndex[w]
	if !ok {
		c = len(t.caches)
		t.cacheIndex[w] = c
		t.caches = append(t.caches, w)
	}
	return c
}

// follow finds what an owner's own steps make of it.
func (t *tables) follow(i int) {
	w := t.words[i]
	k := t.step.kinds.of(w)
	seen := map[turn]bool{}
	add := func(to uint64, needs feature, joins bool) {
		n := turn{needs: needs, joins: joins}
		switch {
		case to == 0 || model.PortOf(to) == 2:
			return
		case model.PortOf(to) == 0:
			if n.to = -t.pastLife(to); n.to == 0 {
				return
			}
		default:
			n.to = t.owner(clean(to))
		}
		if (joins || n.to != i) && !seen[n] {
			seen[n] = true
			t.lives[i].turns = append(t.lives[i].turns, n)
		}
	}
	if s := k.sock.State; s != rc.Idle && s != rc.Listening {
		t.leaves(i, 0) // by what its other end does
	}
	for j := range k.acts {
		a := &k.acts[j]
		switch {
		case a.op.Verb == rc.VClose || a.op.Verb == rc.VExpire:
			t.leaves(i, a.needs())
		case a.op.Verb == rc.VListen:
			if res, n, ok := t.run(model.BareCache, []uint64{w}, 0, a); ok && res.Errno != rc.EADDRINUSE && model.PortOf(w) == 1 {
				q := asker{act: a, self: w, needs: fListen, word: clean(n.Socks[0]), fails: res.Kind != rc.OK}
				q.row = t.row(&q)
				t.owner(q.word)
				t.lives[i].listen = &q
			}
		case a.op.Verb == rc.VInherit && a.op.Addr.Port() != 0:
			t.hand(i, a)
		default:
			if _, n, ok := t.run(model.BareCache, []uint64{w, t.helper}, 0, a); ok {
				if model.PortOf(n.Socks[0]) != 1 {
					t.leaves(i, a.needs())
				}
				add(n.Socks[0], a.needs(), false)
				add(n.Socks[model.MaxSockets-1], a.needs(), true)
			}
		}
	}
}

func (t *tables) leaves(i int, needs feature) {
	if !slices.Contains(t.lives[i].leaves, needs) {
		t.lives[i].leaves = append(t.lives[i].leaves, needs)
	}
}

// hand notes a connection that a listener hands to another port: the roles of
// the ports are exchanged, so that it lands on the one at issue.
func (t *tables) hand(i int, a *action) {
	b := *a
	b.op = rc.Inherit(0, 0, rcPort(a.op.Addr, t.e.world.Ports[0]))
	if _, n, ok := t.run(0, []uint64{withPort(t.words[i], 2)}, 0, &b); ok {
		if c := n.Socks[model.MaxSockets-1]; c != 0 && model.PortOf(c) == 1 {
			t.lives[i].hands = append(t.lives[i].hands, handing{withPort(t.words[i], 2), &b, a.needs(), t.owner(clean(c))})
		}
	}
}

// stand says how an owner stands to the requests of a row.
func (t *tables) stand(row, class int) stand {
	r := t.rows[row]
	if class >= len(r) {
		r = append(r, make([]stand, len(t.members)-len(r))...)
		t.rows[row] = r
	}
	if r[class] == 0 {
		r[class] = t.ask(&t.asks[row], t.members[class])
	}
	return r[class]
}

// ask puts the request to a stack with that one owner and a cache that says
// nothing, and to the oracle.
func (t *tables) ask(q *asker, own uint64) stand {
	if q.opens() {
		return standKnown | scanMayPass // no owner decides
	}
	s := standKnown
	caches := []uint64{model.BareCache}
	if t.step.codec.MakersCount() {
		caches = append(caches, model.BareCache|model.MakerBits)
	}
	refused := 0
	for _, c := range caches {
		if res, _ := t.do(c, []uint64{q.self, own}, 0, q.act); res.Errno == rc.EADDRINUSE {
			refused++
		}
	}
	if refused > 0 {
		s |= scanRefuses
	}
	if refused < len(caches) {
		s |= scanMayPass
	}
	if t.named(q) && t.against(q, own) {
		s |= oracleRefuses
	}
	return s
}

// named reports whether a request is for a port that the user named or holds:
// the oracle's verdict is then one on each owner.
func (t *tables) named(q *asker) bool {
	return q.act.op.Verb == rc.VBind && q.act.op.Addr.Port() != 0 || q.act.op.Verb == rc.VListen && model.PortOf(q.self) == 1
}

// against asks the oracle's relation about one owner.
func (t *tables) against(q *asker, own uint64) bool {
	b := t.step.kinds.of(q.word).seen
	if q.self != 0 {
		b = t.step.kinds.of(q.self).seen
	} else {
		b.Opts = q.act.create.Opts // v6only comes with the grant
	}
	addr := b.Local.Addr()
	if q.act.op.Verb == rc.VBind {
		addr = rc.Canonical(b.Family, q.act.op.Addr.Addr())
	}
	b.ID = rc.NoID
	o := t.step.kinds.of(own).seen
	o.ID = 0
	req := oracle.Request{Binder: &b, Addr: addr, Port: t.e.world.Ports[0], Purpose: oracle.Named}
	return len(oracle.Conflicts([]rc.Socket{o}, &req, nil)) > 0
}

// grant says what a cache makes of a request that every owner lets pass.
func (t *tables) grant(cache, row int) grant {
	for cache >= len(t.grants) {
		t.grants = append(t.grants, nil)
	}
	of := t.grants[cache]
	if row >= len(of) {
		of = append(of, make([]grant, len(t.rows)-len(of))...)
		t.grants[cache] = of
	}
	if !of[row].known {
		of[row] = t.findGrant(cache, row)
	}
	return of[row]
}

func (t *tables) findGrant(cache, row int) grant {
	g := grant{known: true, after: -1}
	q := &t.asks[row]
	w := t.caches[cache] | model.OpenBits
	if model.PortOf(q.self) == 1 {
		// It is an owner itself and passes itself.
		if res, after, ok := t.cacheAfter(w, q, 0); ok && res.Errno != rc.EADDRINUSE {
			g = grant{true, res.Path == rc.PathFast, int32(t.cache(after))}
		}
		return g
	}
	// The cache answers without a look at owners, so any will do; the scan
	// answers for one that it passes.
	own := t.members[max(0, t.passer(row))]
	for _, makers := range [2]uint64{0, model.MakerBits} {
		res, after, ok := t.cacheAfter(w|makers, q, own)
		if ok && res.Errno != rc.EADDRINUSE && res.Errno != rc.EADDRNOTAVAIL {
			return grant{true, res.Path == rc.PathFast, int32(t.cache(after))}
		}
		if !t.step.codec.MakersCount() {
			break
		}
	}
	return g
}

// passer is a class of owners that lets a row's requests pass, negative for none.
func (t *tables) passer(row int) int {
	for row >= len(t.passers) {
		t.passers = append(t.passers, -2)
	}
	if t.passers[row] == -2 {
		t.passers[row] = -1
		for c := range t.members {
			if t.stand(row, c)&scanMayPass != 0 {
				t.passers[row] = c
				break
			}
		}
	}
	return t.passers[row]
}

// cacheAfter performs a request beside one owner (0 for none) and gives the
// port's cache.
func (t *tables) cacheAfter(cache uint64, q *asker, own uint64) (rc.Result, uint64, bool) {
	var st model.State
	st.Socks[0], st.Socks[1] = q.self, own
	st.Ports[0] = cache
	if q.opens() {
		st.Socks[2], st.Ports[1] = t.helper, model.BareCache
	}
	s := t.step
	if err := s.codec.Load(s.base, t.e.kernel, &st); err != nil {
		return rc.Result{}, 0, false
	}
	create, op := q.act.at(0)
	if q.act.fresh {
		if _, err := s.base.Do(create); err != nil {
			return rc.Result{}, 0, false
		}
	}
	res, err := s.base.Do(op)
	if err != nil {
		return res, 0, false
	}
	w, err := s.codec.PortWord(s.base, 0)
	return res, w, err == nil
}

func rcPort(a netip.AddrPort, port uint16) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), port) }

func rcPort2(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, 0) }
