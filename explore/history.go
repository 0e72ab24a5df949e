package explore

import (
	"cmp"
	"maps"
	"slices"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// History is a shortest way to a step, as a trace without stated answers; the
// step is its last.
type History struct {
	Depth  int // steps, socket lines not counted
	Trace  *rc.Trace
	States int64 // that were met until then
}

// teller makes histories of stored states.
type teller struct {
	r     *run
	step  *stepper
	canon canon
	trace *rc.Trace
	ids   [model.MaxSockets]rc.ID
	state model.State
}

func (r *run) teller() *teller {
	t := &teller{r: r, step: r.ws[0].step}
	t.canon.s = t.step
	return t
}

// tell makes a history of each candidate, the simplest states first.
func (r *run) tell(found map[class]Candidate, yield func(*History) error) error {
	var cs []Candidate
	for c, n := range found {
		if len(r.classes) < maxClasses {
			r.classes[c] = n
		}
		cs = append(cs, n)
	}
	return r.yield(cs, yield)
}

// retell makes the histories again that were told before a checkpoint: who goes on
// from it has not heard of them, and a search is not without findings because
// they were early.
func (r *run) retell(yield func(*History) error) error {
	return r.yield(slices.Collect(maps.Values(r.classes)), yield)
}

func (r *run) yield(cs []Candidate, yield func(*History) error) error {
	slices.SortFunc(cs, compareCandidates)
	t := r.teller()
	for i := range cs {
		h, err := t.history(&cs[i])
		if err != nil {
			return err
		}
		if err := yield(h); err != nil {
			return err
		}
	}
	return nil
}

func compareCandidates(a, b Candidate) int {
	states := 0
	switch n := model.MaxSockets; {
	case less(&a.State, &b.State, n):
		states = -1
	case less(&b.State, &a.State, n):
		states = 1
	}
	return cmp.Or(cmp.Compare(a.Depth, b.Depth), states, cmp.Compare(a.Act, b.Act), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Wrong, b.Wrong))
}

// history goes from the empty state to a candidate's by concrete steps: a stored
// state stands for all its renamings, so each next one is looked for among what
// the state at hand leads to.
func (t *teller) history(c *Candidate) (*History, error) {
	var path []ref
	for f := c.From; f != noRef; f = t.r.store.parent(f) {
		path = append(path, f)
	}
	slices.Reverse(path)
	t.trace = &rc.Trace{}
	w := t.r.World
	// A child that gave its port up listens on an automatic one.
	if w.AutoPorts || w.Verbs[rc.VConnect] || w.Options.Has(rc.NoPort) || w.Verbs[rc.VInherit] && w.Verbs[rc.VDisconnect] {
		t.trace.Config = t.r.e.config
	}
	t.state = model.State{}
	for i := 1; i < len(path); i++ {
		if err := t.follow(path[i]); err != nil {
			return nil, err
		}
	}
	if err := t.last(c); err != nil {
		return nil, err
	}
	return &History{Depth: c.Depth, Trace: t.trace, States: t.r.store.states()}, nil
}

// follow takes the step that leads to a stored state.
func (t *teller) follow(to ref) error {
	var want, got model.State
	t.r.layout.read(t.step, t.r.store.words(to), &want)
	found := false
	var next model.State
	var create, op rc.Op
	var fresh bool
	from := t.state
	err := t.step.expand(&from, func(tr *transition) error {
		if found || tr.diverged {
			return nil
		}
		got = tr.next
		t.canon.of(&got)
		if got == want {
			found, next, create, op, fresh = true, tr.next, tr.create, tr.op, tr.act.fresh
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return &SelfError{"no step leads to a stored state", t.trace.String()}
	}
	t.write(fresh, create, op)
	t.state = next
	return nil
}

// write adds a step to the trace under the names that its sockets have there.
func (t *teller) write(fresh bool, create, op rc.Op) {
	next := rc.ID(len(t.trace.Names))
	name := func() rc.ID {
		t.trace.Names = append(t.trace.Names, next.String())
		return next
	}
	slot := op.Sock
	if fresh {
		t.ids[slot] = name()
		create.Sock = t.ids[slot]
		t.trace.Steps = append(t.trace.Steps, rc.Step{Op: create})
		next++
	}
	op.Sock = t.ids[slot]
	if op.Verb == rc.VInherit {
		t.ids[op.Child] = name()
		op.Child = t.ids[op.Child]
	}
	t.trace.Steps = append(t.trace.Steps, rc.Step{Op: op})
}

// last takes a candidate's own step: its sockets and values are those of the
// stored state, and go back through the renaming that led there.
func (t *teller) last(c *Candidate) error {
	g, idx := t.canon.how(&t.state)
	back := inverse(t.r.e.group[g])
	e := t.r.e
	var a action
	var slot int
	if c.Fresh {
		a = e.menu.fresh[c.Act]
		slot = slices.Index(t.state.Socks[:e.sockets], 0)
		if !e.reduce {
			slot = int(c.Slot)
		}
	} else {
		a = t.step.kinds.of(c.State.Socks[c.Slot]).acts[c.Act]
		slot = int(idx[c.Slot])
	}
	create, op := a.at(rc.ID(slot))
	users := e.world.UIDs
	if c.Fresh {
		create.UID = users[back.UID[slices.Index(users, create.UID)]]
		create.Dev = rc.Dev(back.Dev[create.Dev])
	}
	if op.Verb == rc.VSet && op.Field == rc.SetUID {
		op.UID = users[back.UID[slices.Index(users, op.UID)]]
	}
	op.Dev = rc.Dev(back.Dev[op.Dev])
	op.Addr = renameAddr(t.step.codec, back, e.world.Addrs, op.Addr)
	if op.Verb == rc.VInherit {
		op.Child = rc.ID(slices.Index(t.state.Socks[:e.sockets], 0))
	}
	t.write(c.Fresh, create, op)
	return nil
}

func inverse(r *model.Renaming) *model.Renaming {
	n := model.NoRenaming()
	for i, v := range r.Addr {
		n.Addr[v] = uint8(i)
	}
	for i, v := range r.UID {
		n.UID[v] = uint8(i)
	}
	for i, v := range r.Dev {
		n.Dev[v] = uint8(i)
	}
	return n
}

// how is of, but says by which member of the group and in which order of the
// sockets st comes to its representative.
func (c *canon) how(st *model.State) (g int, idx [model.MaxSockets]uint8) {
	for i := range idx {
		idx[i] = uint8(i)
	}
	if !c.s.e.reduce {
		return 0, idx
	}
	want := *st
	c.of(&want)
	for g := range c.s.e.group {
		var sorted model.State
		c.rename(st, g, c.s.e.sockets)
		c.sorted(&c.cand, &sorted, c.s.e.sockets)
		if sorted == want {
			return g, c.idx
		}
	}
	return 0, idx
}

// witnesses are the kinds of steps that were met, each with a history.
func (r *run) witnesses() ([]Step, error) {
	var steps []Step
	t := r.teller()
	for k := range r.kindsMet {
		m := &r.kindsMet[k]
		if m.count == 0 {
			continue
		}
		h, err := t.history(&m.at)
		if err != nil {
			return nil, err
		}
		st := Step{Verb: rc.Verb(k >> 6), Reason: rc.Reason(k & 31), Count: m.count, Depth: m.at.Depth, Trace: h.Trace}
		if k>>5&1 != 0 {
			st.Answer = rc.Success
		}
		steps = append(steps, st)
	}
	sortSteps(steps)
	return steps, nil
}

func sortSteps(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Answer.Kind, b.Answer.Kind), cmp.Compare(a.Reason, b.Reason))
	})
}
