package explore

import (
	"testing"

	"pgregory.net/rapid"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

// TestTheInvariantHoldsWhatRandomHistoriesReach makes histories of all that the
// assumptions leave, with more sockets than the abstraction tracks: each owner
// beside its cache is a pair of the invariant.
func TestTheInvariantHoldsWhatRandomHistoriesReach(t *testing.T) {
	for _, c := range []struct {
		p      *Prover
		assume string
		until  *spec.Property // histories end with the first wrong grant
	}{
		{fixed(), "no-redirect,no-dev,no-v6", nil},
		{fixed(), "no-connect,no-inherit,no-uid,no-set", nil},
		{prover(t, "4.9"), "no-uid,no-dev,no-v6", nil},
		{fixed(), "no-redirect,no-dev,no-v6,no-uid,no-set,no-connect,no-inherit", spec.Structure},
	} {
		p, a := c.p, assume(t, c.assume)
		v := p.closure(a, c.until != nil)
		t.Run(p.Kernel.String()+", "+c.assume, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				walkWithin(t, p, feature(a), c.until, func(st *model.State) {
					if w, lacks := v.lacks(st); lacks {
						t.Fatalf("%s beside %+v is not in the invariant", p.t.sock(w), p.t.step.codec.Cache(st.Ports[0]))
					}
				})
			})
		})
	}
}

// lacks finds an owner of the first port that is no pair of the invariant.
func (v *invariant) lacks(st *model.State) (word uint64, lacks bool) {
	if st.Ports[0] == 0 {
		return 0, false
	}
	n, known := v.t.cacheIndex[st.Ports[0]&model.CacheBits]
	for _, w := range append(st.Socks[:], st.Ends[:]...) {
		if model.PortOf(w) != 1 {
			continue
		}
		held := false
		for _, past := range [4]uint64{0, usedBit, shutBit, usedBit | shutBit} { // which the state does not say
			o, ok := v.t.index[clean(w)&^(usedBit|shutBit)|past]
			held = held || known && ok && n < len(v.sets) && v.sets[n].has(o)
		}
		if !held {
			return w, true
		}
	}
	return 0, false
}

// TestNoRandomHistoryBreaksAProof judges histories within the assumptions of a
// proof as any other search does.
func TestNoRandomHistoryBreaksAProof(t *testing.T) {
	p := fixed()
	for _, c := range []struct {
		assume string
		prop   *spec.Property
	}{
		{"no-set,no-redirect,no-dev,no-connect,no-v6,no-reuseaddr", spec.Sound},
		{"no-connect,no-inherit,no-dev,no-v6", spec.Complete},
		{"no-connect,no-inherit,no-dev,no-v6", spec.Precise},
	} {
		a := assume(t, c.assume)
		if d := p.Prove(c.prop, a); !d.Proved {
			t.Errorf("%s assuming %s: %s", c.prop.Name, a, d.Pair)
			continue
		}
		t.Run(c.prop.Name+", "+c.assume, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				walkWithin(t, p, feature(a), c.prop, func(*model.State) {})
			})
		})
	}
}

// walkWithin makes one history, and calls visit after every step. It leaves more
// out than it has to, so that what remains meets. No request for a port that the
// user named may violate prop.
func walkWithin(t *rapid.T, p *Prover, without feature, prop *spec.Property, visit func(*model.State)) {
	without |= feature(rapid.Uint32Range(0, 1<<features-1).Draw(t, "leave out"))
	k := p.Kernel.New()
	var props []*spec.Property
	if prop != nil {
		props = append(props, prop)
	}
	m := spec.NewMachine(spec.TCP, k, props...)
	if err := m.Reset(p.t.e.config); err != nil {
		t.Fatal(err)
	}
	known := oracle.New() // what the machine's own knows for certain
	known.Reset(p.t.e.config)
	fresh := left(p.t.e.menu.fresh, without)
	var st model.State
	var live []rc.Socket
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		slot := rapid.IntRange(0, 4).Draw(t, "slot")
		acts := fresh
		if w := st.Socks[slot]; w != 0 {
			acts = left(p.t.step.kinds.of(w).acts, without)
		}
		if len(acts) == 0 {
			continue
		}
		act := acts[rapid.IntRange(0, len(acts)-1).Draw(t, "step")]
		create, op := act.at(rc.ID(slot))
		switch op.Verb {
		case rc.VInherit:
			if op.Child = free(&st); op.Child == rc.NoID {
				continue
			}
		case rc.VConnect: // of which nobody can say who takes it: no engine has it
			if s := (rc.Socket{}); !p.t.e.menu.Clear(op, &s, listenersBeside(live, &s)) {
				continue
			}
		}
		if act.fresh {
			if _, _, err := m.Step(create); err != nil {
				t.Fatal(err)
			}
			known.Follow(create, rc.Success)
			t.Log(create.Text(rc.ID.String))
		}
		o, found, err := m.Step(op)
		if err != nil || p.t.step.codec.Pack(k, &st) != nil {
			return // the model does not know, or a port that the proof has not
		}
		known.Follow(op, o.Got.Answer)
		t.Logf("%s => %v", op.Text(rc.ID.String), o.Got.Answer)
		named := op.Verb == rc.VBind && op.Addr.Port() != 0
		if s := o.Socket(op.Sock); op.Verb == rc.VListen && s != nil {
			named = s.Owner()
		}
		if prop != nil && named && len(found) > 0 {
			t.Fatalf("%s is violated: %s", prop.Name, spec.Sentence(o, found[0]))
		}
		live = append(live[:0], o.After...)
		if prop != nil && o.Diverged() {
			return // by a step that this proof says nothing of
		}
		for i := range o.After {
			s := &o.After[i]
			w := &st.Ends
			id := s.ID
			if id.IsOtherEnd() {
				id = id.OtherEnd()
			} else {
				w = &st.Socks
			}
			// Of a child that another listener took nothing is known.
			if w[id] != 0 && !known.Past(s.ID).Vague {
				w[id] |= p.t.seenOf(w[id], s)
			}
		}
		visit(&st)
	}
}

// left are the steps that need nothing that is left out.
func left(acts []action, without feature) (some []*action) {
	for i := range acts {
		if acts[i].needs()&without == 0 {
			some = append(some, &acts[i])
		}
	}
	return some
}

// free is a slot without a socket.
func free(st *model.State) rc.ID {
	for i, w := range st.Socks {
		if w == 0 {
			return rc.ID(i)
		}
	}
	return rc.NoID
}
