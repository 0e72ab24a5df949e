package explore

import (
	"testing"

	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// needsTwo are assumptions under which one tracked owner is not enough on 6.1: a
// v4-mapped binder slips past a wildcard that only a disconnect leads back to, and
// it is not there beside a cache that a binder has left.
const needsTwo = "no-set,no-dev,no-uid,no-inherit,no-auto,no-close,no-v6only,no-wildcard"

func TestTwoTrackedOwnersProveWhatOneDoesNot(t *testing.T) {
	p := prover(t, "6.1")
	a := assume(t, needsTwo)
	d := p.Prove(spec.Complete, a)
	if d.Proved {
		t.Fatal("one owner is enough")
	}
	if err := p.Refine(t.Context(), &d, spec.Complete); err != nil || !d.Proved || d.Owners != 2 {
		t.Errorf("two owners are not enough: %s: %v", d.Refined, err)
	}
	// What happens is not proved away.
	d = p.Prove(spec.Complete, a&^assume(t, "no-wildcard"))
	if err := p.Refine(t.Context(), &d, spec.Complete); err != nil || d.Proved || d.Refined == "" {
		t.Errorf("with wildcards it is proved that nothing slips past them: %v", err)
	}
}

func TestARefinementThatIsBrokenOffProvesNothing(t *testing.T) {
	p := prover(t, "6.1")
	r := newTriples(p.closure(assume(t, needsTwo), false), 100)
	if r.close(t.Context()) {
		t.Error("100 words are enough to look at all")
	}
}

// TestEveryTwoOwnersThatExplorationReachesAreTracked compares the two owners with
// every reachable bucket of small worlds: each is there alone, or each two are there.
func TestEveryTwoOwnersThatExplorationReachesAreTracked(t *testing.T) {
	p := fixed()
	for _, c := range []struct {
		assume, world string
		sockets       int
	}{
		{smallProof + ",no-dev,no-close", "tcp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 reuseaddr reuseport listen", 3},
		{"no-set,no-redirect,no-dev,no-uid,no-v6", "tcp4 addr=0.0.0.0,127.0.0.1 listen connect inherit timewait close shutdown disconnect ports=2", 2},
		{"no-set,no-redirect,no-dev,no-uid,no-v6,no-connect", "tcp4 addr=0.0.0.0,127.0.0.1 reuseport listen inherit close", 3},
	} {
		v := p.closure(assume(t, c.assume), false)
		r := newTriples(v, refineWork)
		if !r.close(t.Context()) {
			t.Fatalf("%s: broken off", c.assume)
		}
		for i := range r.one { // what two may own, one may own
			pairs := make(bitset, (r.n+63)/64)
			v.set(i).each(func(w int) { pairs.add(r.kind[w]) })
			if pairs.union(r.owners(i), nil) {
				t.Errorf("%s: with cache %d two owners let in more than one", c.assume, i)
			}
		}
		s := search(t, p.Kernel.String(), c.world, c.sockets, spec.Sound)
		s.Unreduced = true
		found := finish(t, s)
		at := found.ws[0].step
		states, bad := 0, 0
		visit(found, func(st *model.State) {
			var in model.State
			if at.codec.Load(at.base, p.Kernel, st) != nil || p.t.step.codec.Pack(at.base, &in) != nil {
				t.Fatal("a state is not one of the proof's world")
			}
			states++
			if r.lacks(&in) {
				bad++
			}
		})
		if bad > 0 || states < 400 {
			t.Errorf("%s, assuming %s: %d of %d states are not among the two owners", c.world, c.assume, bad, states)
		}
	}
}

// lacks reports whether an only owner of the first port, or some two, are not there.
func (r *triples) lacks(st *model.State) bool {
	c, known := r.t.cacheIndex[st.Ports[0]&model.CacheBits]
	var owners [][]int // of each, the kinds that it may be by what it did before
	for _, w := range append(st.Socks[:], st.Ends[:]...) {
		if model.PortOf(w) != 1 {
			continue
		}
		var kinds []int
		for _, past := range [4]uint64{0, usedBit, shutBit, usedBit | shutBit} {
			if i, ok := r.t.index[clean(w)|past]; ok && r.kind[i] >= 0 {
				kinds = append(kinds, r.kind[i])
			}
		}
		owners = append(owners, kinds)
	}
	if len(owners) == 0 {
		return false
	}
	if !known || c >= len(r.one) {
		return true
	}
	has := func(a, b int) bool { return r.two[c][a] != nil && r.two[c][a].has(b) }
	for i, as := range owners {
		if len(owners) == 1 {
			found := false
			for _, a := range as {
				found = found || r.one[c].has(a)
			}
			return !found
		}
		for _, bs := range owners[:i] {
			found := false
			for _, a := range as {
				for _, b := range bs {
					found = found || has(a, b)
				}
			}
			if !found {
				return true
			}
		}
	}
	return false
}
