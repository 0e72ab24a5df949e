package explore

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/reusecheck/reusecheck/spec"
)

// refineWorld has four of what rules only compare: a step beside two tracked owners
// has both, the socket that the cache is keyed to, and the one that asks.
const refineWorld = "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,::,::1,fd00::1,fd00::2,fd00::3,fd00::4," +
	"::ffff:0.0.0.0,::ffff:127.0.0.1,::ffff:127.0.0.2,::ffff:127.0.0.3,::ffff:127.0.0.4 v6only reuseaddr reuseport uid=4 ports=2 " +
	"listen close shutdown disconnect connect inherit timewait expire set-opt set-uid auto other-port"

// Limits of a refinement: words of bit sets that are looked at (some ten seconds)
// and kept (1 GiB).
const (
	refineWork  = 6e9
	refineWords = 1 << 27
)

// Refine tries a proof with two tracked owners where one was not enough: a request
// is granted only if the cache grants it or both let it pass. It fills the verdict
// in, or says why two do not do.
func (p *Prover) Refine(ctx context.Context, d *Verdict, prop *spec.Property) error {
	without := feature(d.Assume)
	switch {
	case prop == spec.Precise:
		d.Refined = "precise asks no owner"
		return nil
	case without&fDev == 0:
		d.Refined = "with devices that takes four of them, and three can be packed"
		return nil
	}
	gone := without
	if without&(fConnect|fInherit) != fConnect|fInherit {
		gone &^= fV6 // who takes connections listens on ::
	}
	t, err := newTablesIn(p.Kernel, remaining(refineWorld, gone))
	if err != nil {
		return err
	}
	r := newTriples(t.closure(d.Assume, false), refineWork)
	if !r.close(ctx) {
		if err := ctx.Err(); err != nil {
			return err
		}
		d.Refined = fmt.Sprintf("broken off after %d words of %d kinds of owners", r.work, r.n)
		return nil
	}
	if bad, found := r.violation(prop); found {
		d.Refined = "two owners let it happen too: " + t.describe(bad)
		return nil
	}
	d.Proved, d.Owners, d.Pair, d.World, d.Sockets = true, 2, "", "", 0
	d.Caches, d.Pairs = r.size()
	return nil
}

// triples is the least set of caches with one owner that is alone, and with two of
// the owners where there are more, that holds what a bucket can be. Owners that do
// alike are of one kind.
type triples struct {
	v     *invariant
	t     *tables
	kind  []int // of each owner's word, negative for one that there is not
	words []int // one owner of each kind
	n     int
	one   []bitset   // by cache: may be the only owner
	two   [][]bitset // by cache and kind: who may be beside it
	fresh [][][2]int // what was added to a cache and has not moved yet; second negative: alone
	dirty []bool
	rows  map[int]*rowSets // by row, of kinds
	steps [][]grouped      // by cache
	work  int              // words of bit sets that were looked at
	limit int
	kept  int
	// anyLeaves says that there is a kind that may leave.
	anyLeaves bool
}

// grouped are requests that go alike from a cache.
type grouped struct {
	after int
	mask  bitset // who lets them pass, nil for everybody
	asks  bitset // who asks, as it is afterwards
}

func newTriples(v *invariant, limit int) *triples {
	r := &triples{v: v, t: v.t, rows: map[int]*rowSets{}, limit: limit}
	r.classify()
	r.anyLeaves = slices.ContainsFunc(r.words, r.leaves)
	return r
}

// classify finds the kinds: owners that look alike to every request, ask alike,
// and become what is alike.
func (r *triples) classify() {
	t := r.t
	alive := make(bitset, (len(t.words)+63)/64)
	for _, s := range r.v.sets {
		alive.union(s, nil)
	}
	r.kind = make([]int, len(t.words))
	for i := range r.kind {
		r.kind[i] = -1
	}
	alive.each(func(i int) { r.kind[i] = 0 })
	for r.n = 1; ; {
		kinds := map[string]int{}
		next := slices.Clone(r.kind)
		r.words = r.words[:0]
		alive.each(func(i int) {
			key := r.looks(i)
			k, ok := kinds[key]
			if !ok {
				k = len(kinds)
				kinds[key] = k
				r.words = append(r.words, i)
			}
			next[i] = k
		})
		r.kind = next
		if len(kinds) == r.n {
			return
		}
		r.n = len(kinds)
	}
}

// looks is what is known of an owner by the kinds so far.
func (r *triples) looks(i int) string {
	l := &r.t.lives[i]
	var becomes []int
	for _, n := range l.turns {
		if n.needs&r.v.without == 0 && n.to >= 0 {
			becomes = append(becomes, 2*r.kind[n.to]+int(when[uint64](n.joins, 1)))
		}
	}
	slices.Sort(becomes)
	asks, listens, fails := -1, -1, false
	if q := l.listen; q != nil && r.v.without&fListen == 0 {
		asks, listens, fails = q.row, r.kind[r.t.index[q.word]], q.fails
	}
	return fmt.Sprint(r.kind[i], l.class, asks, listens, fails, r.leaves(i), slices.Compact(becomes))
}

// leaves reports whether an owner may leave the port.
func (r *triples) leaves(i int) bool {
	return slices.ContainsFunc(r.t.lives[i].leaves, func(f feature) bool { return f&r.v.without == 0 })
}

func (r *triples) reach(c int) {
	for len(r.one) <= c {
		r.one = append(r.one, make(bitset, (r.n+63)/64))
		r.two = append(r.two, make([]bitset, r.n))
		r.fresh, r.dirty, r.steps = append(r.fresh, nil), append(r.dirty, false), append(r.steps, nil)
	}
}

func (r *triples) addOne(c, a int) {
	r.reach(c)
	if r.one[c].add(a) {
		r.fresh[c], r.dirty[c] = append(r.fresh[c], [2]int{a, -1}), true
	}
}

func (r *triples) beside(c, a int) bitset {
	r.reach(c)
	if r.two[c][a] == nil {
		r.two[c][a] = make(bitset, (r.n+63)/64)
		r.kept += len(r.two[c][a])
	}
	return r.two[c][a]
}

func (r *triples) addTwo(c, a, b int) {
	if r.beside(c, a).add(b) {
		r.beside(c, b).add(a)
		r.fresh[c], r.dirty[c] = append(r.fresh[c], [2]int{a, b}), true
	}
}

// addAll adds those of a set beside a.
func (r *triples) addAll(c, a int, s bitset) {
	to := r.beside(c, a)
	r.work += len(s)
	for i, w := range s {
		for w &^= to[i]; w != 0; w &= w - 1 {
			r.addTwo(c, a, i<<6+bits.TrailingZeros64(w))
		}
	}
}

// close adds until nothing is new. It gives up at the limits.
func (r *triples) close(ctx context.Context) bool {
	for _, row := range r.v.rows {
		for _, q := range r.v.by[row] {
			r.addOne(r.t.firstCache(q), r.of(q.word))
		}
	}
	for i := range r.v.hands {
		h := &r.v.hands[i]
		_, n, _ := r.t.run(0, []uint64{h.from}, 0, h.act)
		r.addOne(r.t.cache(n.Ports[0]), r.kind[h.child])
	}
	for again := true; again; {
		again = false
		for c := 0; c < len(r.one); c++ {
			if !r.dirty[c] {
				continue
			}
			if r.work > r.limit || r.kept > refineWords || ctx.Err() != nil {
				return false
			}
			r.dirty[c], again = false, true
			r.move(c)
			r.requests(c)
			r.listens(c)
			r.unchecked(c)
		}
	}
	return true
}

func (r *triples) of(word uint64) int { return r.kind[r.t.index[word]] }

// move lets what is new at a cache do what an owner does by itself.
func (r *triples) move(c int) {
	released := r.t.released(c)
	for len(r.fresh[c]) > 0 {
		at := r.fresh[c][len(r.fresh[c])-1]
		r.fresh[c] = r.fresh[c][:len(r.fresh[c])-1]
		r.turn(c, at[0], at[1])
		if at[1] < 0 {
			continue
		}
		r.turn(c, at[1], at[0])
		for k := range at {
			if r.leaves(r.words[at[k]]) {
				r.addOne(c, at[1-k])
				r.addOne(released, at[1-k])
			}
		}
		if released != c && r.anyLeaves { // as if a third had left
			r.addTwo(released, at[0], at[1])
		}
	}
}

// turn is what a does beside b, or alone.
func (r *triples) turn(c, a, b int) {
	r.work++
	for _, n := range r.t.lives[r.words[a]].turns {
		if n.needs&r.v.without != 0 || n.to < 0 {
			continue
		}
		to := r.kind[n.to]
		switch {
		case b < 0 && n.joins:
			r.addTwo(c, a, to)
		case b < 0:
			r.addOne(c, to)
		case n.joins:
			r.addTwo(c, a, to)
			r.addTwo(c, b, to)
		default:
			r.addTwo(c, to, b)
		}
	}
}

// sets are a row's stands as sets of kinds.
func (r *triples) sets(row int) *rowSets {
	s := r.rows[row]
	if s == nil {
		of := r.t.sets(row)
		pick := func(from bitset) bitset {
			b := make(bitset, (r.n+63)/64)
			for k, w := range r.words {
				if from.has(w) {
					b.add(k)
				}
			}
			return b
		}
		s = &rowSets{pass: pick(of.pass), unsound: pick(of.unsound), scan: pick(of.scan)}
		r.rows[row] = s
	}
	return s
}

// mask is who lets a row's request pass under a cache's grant, nil for everybody.
func (r *triples) mask(row int, g grant) bitset {
	if g.fast || r.t.asks[row].opens() {
		return nil
	}
	return r.sets(row).pass
}

// requests performs those of sockets without the port.
func (r *triples) requests(c int) {
	if r.steps[c] == nil {
		r.steps[c] = r.group(c)
	}
	for i := range r.steps[c] {
		g := &r.steps[c][i]
		for a := range r.n {
			if g.mask != nil && !g.mask.has(a) {
				continue
			}
			alone := r.one[c].has(a)
			if b := passed(r.two[c][a], g.mask); b != nil {
				r.addAll(g.after, a, b)
				alone = true
			}
			if alone {
				r.addAll(g.after, a, g.asks)
			}
		}
	}
}

// passed are the members of a set that are in a mask too, nil for none.
func passed(s, mask bitset) bitset {
	if s == nil || mask == nil {
		return s
	}
	var in bitset
	for i, w := range s {
		if w &= mask[i]; w != 0 {
			if in == nil {
				in = make(bitset, len(s))
			}
			in[i] = w
		}
	}
	return in
}

func (r *triples) group(c int) []grouped {
	gs := []grouped{}
	at := map[string]int{}
	for _, row := range r.v.rows {
		g := r.t.grant(c, row)
		if g.after < 0 {
			continue
		}
		mask := r.mask(row, g)
		key := fmt.Sprint(g.after, mask)
		i, ok := at[key]
		if !ok {
			i = len(gs)
			at[key] = i
			gs = append(gs, grouped{after: int(g.after), mask: mask, asks: make(bitset, (r.n+63)/64)})
		}
		for _, q := range r.v.by[row] {
			gs[i].asks.add(r.of(q.word))
		}
	}
	return gs
}

// listens lets an owner listen: alone, as one of the two, or as a third that may be
// beside each of them.
func (r *triples) listens(c int) {
	if r.v.without&fListen != 0 {
		return
	}
	for x := range r.n {
		q := r.t.lives[r.words[x]].listen
		if q == nil || !r.one[c].has(x) && r.two[c][x] == nil {
			continue
		}
		g := r.t.grant(c, q.row)
		if g.after < 0 {
			continue
		}
		after, to := int(g.after), r.of(q.word)
		if r.one[c].has(x) {
			r.addOne(after, to)
		}
		beside := passed(r.two[c][x], r.mask(q.row, g))
		if beside == nil {
			continue
		}
		beside = slices.Clone(beside) // it grows where the cache stays
		r.addAll(after, to, beside)
		beside.each(func(a int) {
			if b := passed(r.two[c][a], beside); b != nil {
				r.addAll(after, a, b)
			}
		})
	}
}

// unchecked lets children join that a listener of another port hands over.
func (r *triples) unchecked(c int) {
	for i := range r.v.hands {
		h := &r.v.hands[i]
		after, ok := r.v.after[[2]int{c, h.child}]
		if !ok || after < 0 {
			continue
		}
		for a := range r.n {
			alone := r.one[c].has(a)
			if b := r.two[c][a]; b != nil {
				r.addAll(after, a, b)
				alone = true
			}
			if alone {
				r.addTwo(after, a, r.kind[h.child])
			}
		}
	}
}

// owners are the kinds that may own the port with a cache.
func (r *triples) owners(c int) bitset {
	s := slices.Clone(r.one[c])
	for a, b := range r.two[c] {
		if b != nil {
			s.add(a)
		}
	}
	return s
}

func (r *triples) size() (caches, pairs int) {
	for c := range r.one {
		n := 0
		r.owners(c).each(func(int) { n++ })
		if pairs += n; n > 0 {
			caches++
		}
	}
	return caches, pairs
}

// violation looks for an owner in whose presence a property fails.
func (r *triples) violation(p *spec.Property) (bad abstract, found bool) {
	look := func(c, row int, owners bitset) {
		q := &r.t.asks[row]
		if found || owners == nil || q.fails || !r.t.named(q) {
			return
		}
		g, sets := r.t.grant(c, row), r.sets(row)
		against := sets.scan
		if g.fast {
			against = sets.unsound
		}
		if g.fast != (p == spec.Sound) {
			return
		}
		if o := owners.first(against); o >= 0 {
			bad, found = abstract{c, row, r.words[o]}, true
		}
	}
	for c := range r.one {
		s := r.owners(c)
		if s.empty() {
			continue
		}
		for _, row := range r.v.rows {
			look(c, row, s)
		}
		if r.v.without&fListen != 0 {
			continue
		}
		for x := range r.n {
			if q := r.t.lives[r.words[x]].listen; q != nil {
				look(c, q.row, r.two[c][x])
			}
		}
	}
	return bad, found
}
