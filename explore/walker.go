package explore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// act is a step of a walk: an operation, with the creation of its socket before
// it if that is new, and the answer where the stack could choose.
type act struct {
	ops  []rc.Op
	seen rc.Answer
}

func (a *act) last() *rc.Op { return &a.ops[len(a.ops)-1] }

func (a *act) text() string {
	var b strings.Builder
	for _, op := range a.ops {
		b.WriteString(op.Text(nil))
		b.WriteByte('\n')
	}
	fmt.Fprint(&b, a.seen)
	return b.String()
}

// expansion is what the steps of one state come to.
type expansion struct {
	next        []arrival
	wrongs      []misstep
	steps       []stepCounted
	skipped     map[string]int
	transitions int64
	violations  int64
	err         error
}

type arrival struct {
	key stateKey
	act act
}

type misstep struct {
	violation spec.Violation
	act       act
}

type stepCounted struct {
	kind  walkedKind
	count int64
	act   act
}

// walker expands states on a machine of its own.
type walker struct {
	r       *walking
	machine *spec.Machine
	path    []*act
	next    rc.ID    // the name of what is made next
	nets    rc.Order // the namespaces that live
	text    []byte
	other   []byte // scratch
	x       *expansion
	dirty   bool // the machine is not in the state that is expanded
}

type nameText struct {
	id   rc.ID
	text []byte
}

func newWalker(r *walking) (*walker, error) {
	stack, err := r.Stack()
	if err != nil {
		return nil, err
	}
	return &walker{r: r, machine: spec.NewMachine(r.System, stack, r.Properties...)}, nil
}

// replay plays a history.
func (w *walker) replay(path []*act) error {
	if err := w.machine.Reset(w.r.config); err != nil {
		return err
	}
	w.next, w.nets, w.dirty = 0, w.nets[:0], false
	for _, op := range w.r.World.Base {
		if _, _, err := w.do(&act{ops: []rc.Op{op}}, 0); err != nil {
			return err
		}
	}
	for _, a := range path {
		for i := range a.ops {
			if _, _, err := w.do(a, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// do performs one operation of an act and keeps track of names.
func (w *walker) do(a *act, i int) (*spec.Observation, []spec.Violation, error) {
	op, seen := a.ops[i], rc.Answer{}
	if i == len(a.ops)-1 {
		seen = a.seen
	}
	o, found, err := w.machine.StepAs(op, seen)
	if err != nil {
		return nil, nil, err
	}
	if id, ok := op.Defines(); ok {
		w.next = id + 1
	}
	switch {
	case op.Verb == rc.VNetns && o.Got.Kind == rc.OK:
		w.nets = append(w.nets, op.Sock)
	case op.Verb == rc.VExit && o.Got.Kind == rc.Exited:
		w.nets = slices.DeleteFunc(w.nets, func(id rc.ID) bool { return slices.Contains(op.Batch, id) })
	}
	return o, found, nil
}

// maxOrders is how many orders of names a state is written down under at most.
// With more, some states are told apart that differ in names only.
const maxOrders = 720

// key is the state that the machine is in: the least of what is written of it
// under the orders that what is known of sockets and namespaces allows.
func (w *walker) key() (stateKey, error) {
	w.text = w.text[:0]
	n, told := 0, true
	for order := range w.orders {
		if n++; n > maxOrders {
			break
		}
		var text []byte
		if text, told = w.machine.AppendState(w.other[:0], order); !told {
			return stateKey{}, fmt.Errorf("system %s cannot be explored: its states cannot be told apart", w.r.System.Name)
		}
		w.other = text
		if n == 1 || bytes.Compare(text, w.text) < 0 {
			w.text, w.other = w.other, w.text
		}
	}
	return stateKeyOf(w.text), nil
}

// orders are those that depend on names as little as is cheap: namespaces and
// sockets by what is known of them, equal ones in every order.
func (w *walker) orders(yield func(rc.Order) bool) {
	live := w.machine.Live()
	if w.r.byName {
		yield(append(slices.Clone(w.nets), ids(live, 0)...))
		return
	}
	stay := firstOwn(w.r.World)
	base := ids(live, 0)
	base = base[:len(base)-len(ids(live, stay))]
	for nets := range ties(byText(w.nets, func(id rc.ID) []byte { return inside(live, id) })) {
		sockets := byText(ids(live, stay), func(id rc.ID) []byte {
			i := slices.IndexFunc(live, func(s rc.Socket) bool { return s.ID == id })
			return live[i].AppendState(nil, nets)
		})
		for names := range ties(sockets) {
			if !yield(slices.Concat(nets, base, names)) {
				return
			}
		}
	}
}

// byText are names in the order of what is known of them.
func byText(ids []rc.ID, text func(rc.ID) []byte) []nameText {
	parts := make([]nameText, len(ids))
	for i, id := range ids {
		parts[i] = nameText{id, text(id)}
	}
	slices.SortFunc(parts, func(a, b nameText) int { return cmp.Or(bytes.Compare(a.text, b.text), cmp.Compare(a.id, b.id)) })
	return parts
}

// ties gives names in the order of their texts, those with equal ones in every order.
func ties(parts []nameText) func(yield func(rc.Order) bool) {
	return func(yield func(rc.Order) bool) {
		order := make(rc.Order, len(parts))
		for i := range parts {
			order[i] = parts[i].id
		}
		reorder(parts, order, 0, yield)
	}
}

func reorder(parts []nameText, order rc.Order, at int, yield func(rc.Order) bool) bool {
	if at == len(order) {
		return yield(order)
	}
	for i := at; i < len(order) && bytes.Equal(parts[i].text, parts[at].text); i++ {
		order[at], order[i] = order[i], order[at]
		on := reorder(parts, order, at+1, yield)
		order[at], order[i] = order[i], order[at]
		if !on {
			return false
		}
	}
	return true
}

// ids are the names of sockets from one on, in the order in which they were given.
func ids(live []rc.Socket, from rc.ID) (names rc.Order) {
	for i := range live {
		if live[i].ID >= from {
			names = append(names, live[i].ID)
		}
	}
	slices.Sort(names)
	return names
}

// inside is what there is in a namespace.
func inside(live []rc.Socket, net rc.ID) []byte {
	var texts [][]byte
	for i := range live {
		if s := &live[i]; s.HasNet && s.Net == net {
			texts = append(texts, s.AppendState(nil, nil))
		}
	}
	slices.SortFunc(texts, bytes.Compare)
	return slices.Concat(texts...)
}

// expand takes every step of a state.
func (w *walker) expand(at int32) expansion {
	w.x = &expansion{}
	w.path = w.r.path(at)
	w.x.err = w.steps()
	return *w.x
}

func (w *walker) steps() error {
	if err := w.replay(w.path); err != nil {
		return err
	}
	home, err := w.key()
	if err != nil {
		return err
	}
	live := slices.Clone(w.machine.Live())
	nets := slices.Clone(w.nets)
	first := w.next
	for _, op := range w.r.menu.steps(live, nets, first, w.r.Sockets) {
		if err := w.try(act{ops: []rc.Op{op}}, home, nil); err != nil {
			return err
		}
	}
	if !w.r.menu.room(live, w.r.Sockets) {
		return nil
	}
	for _, kind := range w.r.menu.births(live, nets, first) {
		if err := w.fresh(kind); err != nil {
			return err
		}
	}
	return nil
}

// fresh takes the first steps of a new socket. One that its first step leaves as
// it was made is not kept: it may as well be made later.
func (w *walker) fresh(kind birth) error {
	create := act{ops: []rc.Op{kind.create}}
	w.dirty = true
	var unborn stateKey
	for i, op := range kind.first {
		if i == 0 {
			if err := w.replay(w.path); err != nil {
				return err
			}
			if _, _, err := w.do(&create, 0); err != nil {
				return w.unable(err)
			}
			k, err := w.key()
			if err != nil {
				return err
			}
			unborn = k
		}
		if err := w.try(act{ops: []rc.Op{kind.create, op}}, unborn, &create); err != nil {
			return err
		}
	}
	w.dirty = true
	return nil
}

// unable counts a step that the stack cannot perform.
func (w *walker) unable(err error) error {
	lacks := new(rc.Unsupported)
	if !errors.As(err, &lacks) {
		return err
	}
	if w.x.skipped == nil {
		w.x.skipped = map[string]int{}
	}
	w.x.skipped[lacks.What]++
	return nil
}

// try takes a step in every way in which the stack may choose to. home is the
// state from which the act's last operation starts, after create if that is given.
func (w *walker) try(a act, home stateKey, create *act) error {
	done := []rc.Answer{}
	for ways := []rc.Answer{{}}; len(ways) > 0; ways = ways[1:] {
		a.seen = ways[0]
		if w.dirty {
			if err := w.replay(w.path); err != nil {
				return err
			}
			if create != nil {
				if _, _, err := w.do(create, 0); err != nil {
					return w.unable(err)
				}
			}
		}
		o, found, err := w.do(&a, len(a.ops)-1)
		if err != nil {
			w.dirty = true
			if err := w.unable(err); err != nil {
				return err
			}
			continue
		}
		if a.seen == (rc.Answer{}) {
			more := w.r.others(o)
			ways = append(ways, more...)
			if len(more) > 0 {
				a.seen = o.Got.Answer
			}
		}
		if slices.Contains(done, o.Got.Answer) {
			w.dirty = true
			continue
		}
		done = append(done, o.Got.Answer)
		if err := w.judge(&a, o, found, home); err != nil {
			return err
		}
	}
	return nil
}

// judge notes what a step came to.
func (w *walker) judge(a *act, o *spec.Observation, found []spec.Violation, home stateKey) error {
	x := w.x
	x.transitions++
	x.count(walkedKind{a.last().Verb, o.Got.Kind, o.Got.Reason}, a)
	if len(found) > 0 {
		x.violations++
		for _, v := range found {
			x.wrongs = append(x.wrongs, misstep{v, a.clone()})
		}
	}
	if o.Diverged() {
		w.dirty = true
		if w.r.watch != nil {
			w.r.watch(a, o, found, stateKey{})
		}
		return nil
	}
	k, err := w.key()
	if err != nil {
		return err
	}
	if w.r.watch != nil {
		w.r.watch(a, o, found, k)
	}
	if k == home {
		return nil
	}
	w.dirty = true
	if _, met := w.r.seen[k]; met || slices.ContainsFunc(x.next, func(n arrival) bool { return n.key == k }) {
		return nil
	}
	x.next = append(x.next, arrival{k, a.clone()})
	return nil
}

func (a *act) clone() act { return act{slices.Clone(a.ops), a.seen} }

func (x *expansion) count(kind walkedKind, a *act) {
	for i := range x.steps {
		if x.steps[i].kind == kind {
			x.steps[i].count++
			return
		}
	}
	x.steps = append(x.steps, stepCounted{kind, 1, a.clone()})
}

// others are the answers that the stack could have given as well.
func (r *walking) others(o *spec.Observation) (ways []rc.Answer) {
	switch l := o.Got.Lookup; {
	case o.Op.Verb == rc.VSend:
		if l != nil && len(l.Could) > 1 {
			for _, id := range l.Could {
				ways = append(ways, rc.Answer{Kind: rc.Received, Who: id})
			}
		}
	case r.config.Ports.Size() > 1 && (o.Got.Kind == rc.OK && o.Got.Port != 0 || o.Got.Errno == rc.ECONNREFUSED):
		// A connection that is refused could have met itself, from one port.
		for _, p := range r.World.Ports {
			ways = append(ways, rc.Picked(p))
		}
	}
	return ways
}
