package explore

import (
	"math/bits"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// bitset is a set of owners' words, by number.
type bitset []uint64

func (b bitset) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) add(i int) bool {
	old := b[i>>6]
	b[i>>6] |= 1 << (i & 63)
	return old != b[i>>6]
}

// union adds those of o that are in mask (all for nil), and reports growth.
func (b bitset) union(o, mask bitset) (grew bool) {
	for i, w := range o {
		if mask != nil {
			w &= mask[i]
		}
		if w&^b[i] != 0 {
			b[i] |= w
			grew = true
		}
	}
	return grew
}

func (b bitset) meets(o bitset) bool {
	for i, w := range b {
		if w&o[i] != 0 {
			return true
		}
	}
	return false
}

// first is the first member of both, negative for none.
func (b bitset) first(o bitset) int {
	for i, w := range b {
		if w &= o[i]; w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

func (b bitset) empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

func (b bitset) each(f func(int)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + bits.TrailingZeros64(w))
		}
	}
}

// rowSets are a row's stands as sets of owners.
type rowSets struct {
	pass    bitset // the scan may let the request pass
	unsound bitset // the oracle refuses: a cached grant is wrong
	scan    bitset // the scan may answer otherwise than the oracle
	allowed bitset // the oracle lets the request pass
	right   bitset // both may
}

func (t *tables) sets(row int) *rowSets {
	for len(t.setsOf) < len(t.rows) {
		t.setsOf = append(t.setsOf, nil)
	}
	if t.setsOf[row] == nil {
		n := (len(t.words) + 63) / 64
		r := &rowSets{make(bitset, n), make(bitset, n), make(bitset, n), make(bitset, n), make(bitset, n)}
		named := t.named(&t.asks[row])
		for i := range t.words {
			s := t.stand(row, t.lives[i].class)
			if s&scanMayPass != 0 {
				r.pass.add(i)
			}
			if s&oracleRefuses != 0 {
				r.unsound.add(i)
			} else if r.allowed.add(i); s&scanMayPass != 0 {
				r.right.add(i)
			}
			if named && (s&oracleRefuses != 0 && s&scanMayPass != 0 || s&oracleRefuses == 0 && s&scanRefuses != 0) {
				r.scan.add(i)
			}
		}
		t.setsOf[row] = r
	}
	return t.setsOf[row]
}

// invariant is the least set of pairs (cache, owner) that holds what a bucket can
// be, for any number of owners: closed under every step, the owners that are not
// tracked being whatever they please.
type invariant struct {
	t       *tables
	without feature
	// right says that only grants that the oracle gives too are followed: what
	// is reached without a wrong one.
	right  bool
	by     [][]*asker // askers by row, those that the assumptions leave
	rows   []int      // rows that have some
	sets   []bitset   // by cache
	dirty  []bool
	alive  map[int]bool // whose askers there are
	hands  []handing
	handed map[int]bool
	after  map[[2]int]int // caches after an unchecked child
}

func (t *tables) closure(a Assumption, right bool) *invariant {
	v := &invariant{t: t, without: feature(a), right: right, by: make([][]*asker, len(t.rows)), handed: map[int]bool{}, after: map[[2]int]int{}, alive: map[int]bool{}}
	v.live(0)
	for again := true; again; {
		again = false
		for c := 0; c < len(v.sets); c++ {
			if v.dirty[c] {
				v.dirty[c], again = false, true
				v.close(c)
			}
		}
	}
	return v
}

// live lets the sockets of one past (0: fresh ones) ask for the port.
func (v *invariant) live(past int) {
	if v.alive[past] {
		return
	}
	v.alive[past] = true
	t := v.t
	for i := range t.askers {
		q := &t.askers[i]
		if q.past != past || q.needs&v.without != 0 || v.attributes(q.word)&v.without != 0 {
			continue
		}
		if v.by[q.row] == nil {
			v.rows = append(v.rows, q.row)
		}
		v.by[q.row] = append(v.by[q.row], q)
		v.put(t.firstCache(q), t.index[q.word])
	}
	for d := range v.dirty {
		v.dirty[d] = v.dirty[d] || !v.sets[d].empty()
	}
}

// attributes are the features that a word shows.
func (v *invariant) attributes(w uint64) feature {
	k := &v.t.step.kinds.of(w).sock
	return when(k.UID != 0, fUID) | when(k.Dev != rc.NoDev, fDev) | when(k.Family.Is6(), fV6) |
		when(k.Opts.Has(rc.ReuseAddr), fReuseAddr) | when(k.Opts.Has(rc.ReusePort), fReusePort)
}

// firstCache is the cache after a request on a port that nobody owns.
func (t *tables) firstCache(q *asker) int {
	c, ok := t.firsts[q.row]
	if !ok {
		_, n, _ := t.run(0, []uint64{q.self, t.helper}, 0, q.act)
		c = t.cache(n.Ports[0])
		t.firsts[q.row] = c
	}
	return c
}

func (v *invariant) set(c int) bitset {
	for len(v.sets) <= c {
		v.sets = append(v.sets, make(bitset, (len(v.t.words)+63)/64))
		v.dirty = append(v.dirty, false)
	}
	return v.sets[c]
}

func (v *invariant) put(c, word int) {
	if v.set(c).add(word) {
		v.dirty[c] = true
	}
}

func (v *invariant) merge(c int, from, mask bitset) {
	if v.set(c).union(from, mask) {
		v.dirty[c] = true
	}
}

// close performs every step from a cache with what may own the port then.
func (v *invariant) close(c int) {
	v.turn(c)
	s := v.sets[c]
	for _, row := range v.rows {
		g := v.t.grant(c, row)
		if g.after < 0 {
			continue
		}
		mask := v.passing(row, g)
		if mask != nil && !s.meets(mask) {
			continue
		}
		v.merge(int(g.after), s, mask)
		for _, q := range v.by[row] {
			v.put(int(g.after), v.t.index[q.word])
		}
	}
	v.listens(c)
	v.unchecked(c)
	if r := v.t.released(c); r != c {
		v.merge(r, s, nil)
	}
}

// passing are the owners that let a row's request pass under a cache's grant.
func (v *invariant) passing(row int, g grant) bitset {
	q := &v.t.asks[row]
	judged := v.right && !q.fails && v.t.named(q)
	switch {
	case judged && g.fast:
		return v.t.sets(row).allowed
	case judged:
		return v.t.sets(row).right
	case g.fast || q.opens():
		return nil
	}
	return v.t.sets(row).pass
}

// turn lets owners become what they can by themselves.
func (v *invariant) turn(c int) {
	s := v.sets[c]
	var todo []int
	s.each(func(i int) { todo = append(todo, i) })
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, n := range v.t.lives[i].turns {
			switch {
			case n.needs&v.without != 0:
			case n.to < 0:
				v.live(-n.to)
			case s.add(n.to):
				todo = append(todo, n.to)
			}
		}
		for k := range v.t.lives[i].hands {
			h := &v.t.lives[i].hands[k]
			if h.needs&v.without == 0 && !v.handed[h.child] {
				v.handed[h.child] = true
				v.hands = append(v.hands, *h)
				for d := range v.dirty {
					v.dirty[d] = v.dirty[d] || !v.sets[d].empty()
				}
				_, n, _ := v.t.run(0, []uint64{h.from}, 0, h.act)
				v.put(v.t.cache(n.Ports[0]), h.child)
			}
		}
	}
}

// listeners calls f for each row of requests to listen, with the owners that
// make them.
func (v *invariant) listeners(c int, f func(row int, who []int)) {
	if v.without&fListen != 0 {
		return
	}
	who := map[int][]int{}
	var rows []int
	v.sets[c].each(func(i int) {
		if q := v.t.lives[i].listen; q != nil {
			if who[q.row] == nil {
				rows = append(rows, q.row)
			}
			who[q.row] = append(who[q.row], i)
		}
	})
	for _, row := range rows {
		f(row, who[row])
	}
}

func (v *invariant) listens(c int) {
	s := v.sets[c]
	v.listeners(c, func(row int, who []int) {
		g := v.t.grant(c, row)
		if g.after < 0 {
			return
		}
		v.merge(int(g.after), s, v.passing(row, g))
		for _, i := range who {
			v.put(int(g.after), v.t.index[v.t.lives[i].listen.word])
		}
	})
}

// unchecked lets children join that a listener of another port hands over: no
// owner is asked, and the cache is updated.
func (v *invariant) unchecked(c int) {
	s := v.sets[c]
	o := s.first(s)
	for i := range v.hands {
		h := &v.hands[i]
		key := [2]int{c, h.child}
		after, ok := v.after[key]
		if !ok {
			_, n, done := v.t.run(v.t.caches[c]|model.OpenBits, []uint64{h.from, v.t.words[o]}, 0, h.act)
			after = -1
			if done {
				after = v.t.cache(n.Ports[0])
			}
			v.after[key] = after
		}
		if after >= 0 {
			v.merge(after, s, nil)
			v.put(after, h.child)
		}
	}
}

// released is the cache after an owner has left, if those who stay allow it all
// that they ever may.
func (t *tables) released(c int) int {
	r, ok := t.frees[c]
	if !ok {
		r = c
		x := t.members[0]
		if _, n, ok := t.run(t.caches[c]|model.OpenBits, []uint64{x, x}, 0, &action{op: rc.Close(0)}); ok {
			r = t.cache(n.Ports[0])
		}
		t.frees[c] = r
	}
	return r
}

// pairs counts the caches that have owners, and the pairs.
func (v *invariant) pairs() (caches, pairs int) {
	for _, s := range v.sets {
		n := 0
		for _, w := range s {
			n += bits.OnesCount64(w)
		}
		if n > 0 {
			caches++
		}
		pairs += n
	}
	return caches, pairs
}

// abstract is a violating pair and the request that shows it.
type abstract struct {
	cache int
	row   int
	owner int // negative where no owner takes part
}

// violation looks for a pair in which a property fails: of the first thousand
// caches and requests that show it one of little effort to search for.
func (v *invariant) violation(p *spec.Property) (abstract, bool) {
	if p == spec.Precise {
		return v.imprecise()
	}
	bad, found := abstract{}, false
	least, seen := 0, 0
	for c := range v.sets {
		s := v.sets[c]
		if s.empty() {
			continue
		}
		look := func(row int) {
			if seen == 1000 || v.t.asks[row].fails || !v.t.named(&v.t.asks[row]) {
				return
			}
			g, sets := v.t.grant(c, row), v.t.sets(row)
			against := sets.scan
			if g.fast {
				against = sets.unsound
			}
			if g.fast != (p == spec.Sound) {
				return
			}
			if !s.meets(against) {
				return
			}
			seen++
			rest := v.t.effort(v.t.asks[row].word) + v.t.keyEffort(c)
			s.each(func(o int) {
				if !against.has(o) {
					return
				}
				if e := rest + v.t.effort(v.t.words[o]); !found || e < least {
					bad, found, least = abstract{c, row, o}, true, e
				}
			})
		}
		for _, row := range v.rows {
			look(row)
		}
		v.listeners(c, func(row int, _ []int) { look(row) })
	}
	return bad, found
}

// effort is what a socket adds to a world in which it is searched for.
func (t *tables) effort(w uint64) (n int) {
	s := &t.step.kinds.of(w).sock
	for _, add := range []struct {
		is   bool
		cost int
	}{
		{s.State != rc.Idle, 2}, {s.Family.Is6(), 2}, {s.Local.Addr().Is4In6(), 3}, {s.UID != 0, 2}, {s.Dev != rc.NoDev, 2},
		{s.Opts.Has(rc.V6Only), 1}, {s.Opts.Has(rc.ReuseAddr), 1}, {s.Opts.Has(rc.ReusePort), 1}, {!s.Local.Addr().IsUnspecified(), 1},
	} {
		if add.is {
			n += add.cost
		}
	}
	return n
}

func (t *tables) keyEffort(c int) (n int) {
	k := t.step.codec.Cache(t.caches[c])
	if k.FastReusePort > 0 && (k.Family.Is6() || k.Addr.Is4In6() || k.UID != 0) {
		n = 3
	}
	return n
}

// twin is a cache beside the one that the documented intent would keep.
type twin struct {
	cache int
	ghost rc.Cache
}

// imprecise follows both caches through all grants, and asks the property.
func (v *invariant) imprecise() (abstract, bool) {
	seen := map[twin]bool{}
	var todo []twin
	bad, found := abstract{}, false
	visit := func(from twin, row int, q *asker, after int, fast bool) {
		k := v.t.step.kinds.of(q.word).seen
		to := twin{after, spec.Intended(from.ghost, &k)}
		switch {
		case q.fails: // nobody was admitted
			to.ghost = from.ghost
		case q.opens():
			if to.ghost = from.ghost; !to.ghost.Exists {
				to.ghost = spec.Opened
			}
		}
		if !found && !q.fails && v.t.imprecise(q, from, to, fast) {
			bad, found = abstract{from.cache, row, -1}, true
		}
		if !seen[to] {
			seen[to] = true
			todo = append(todo, to)
		}
	}
	for _, row := range v.rows {
		for _, q := range v.by[row] {
			visit(twin{cache: -1}, row, q, v.t.firstCache(q), false)
		}
	}
	for len(todo) > 0 && !found {
		at := todo[0]
		todo = todo[1:]
		if at.cache >= len(v.sets) {
			continue
		}
		for _, row := range v.rows {
			if g := v.t.grant(at.cache, row); g.after >= 0 {
				visit(at, row, v.by[row][0], int(g.after), g.fast)
			}
		}
		v.listeners(at.cache, func(row int, who []int) {
			if g := v.t.grant(at.cache, row); g.after >= 0 {
				visit(at, row, v.t.lives[who[0]].listen, int(g.after), g.fast)
			}
		})
		for i := range v.hands {
			h := &v.hands[i]
			if after, ok := v.after[[2]int{at.cache, h.child}]; ok && after >= 0 {
				k := v.t.step.kinds.of(v.t.words[h.child]).seen
				if to := (twin{after, spec.Intended(at.ghost, &k)}); !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		if r := v.t.released(at.cache); r != at.cache {
			if to := (twin{r, spec.Opened}); !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return bad, found
}

// imprecise asks the property about a grant.
func (t *tables) imprecise(q *asker, from, to twin, fast bool) bool {
	w := q.word
	if q.self != 0 {
		w = q.self
	}
	k := t.step.kinds.of(w).seen
	k.ID = 0
	o := spec.Observation{Op: q.act.op, GhostBefore: from.ghost, GhostAfter: to.ghost, Before: []rc.Socket{k}}
	o.Op.Sock = 0
	o.Got.Answer, o.Got.HasCache, o.Got.Path = rc.Success, true, rc.PathScan
	switch {
	case fast:
		o.Got.Path = rc.PathFast
	case from.cache < 0:
		o.Got.Path = rc.PathNone
	}
	o.Got.After = t.step.codec.Cache(t.caches[to.cache])
	return spec.Precise.Check(&o).Property != ""
}
