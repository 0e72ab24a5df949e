package explore

import (
	"math/bits"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// fast expands states by numbers alone: it knows for each row, port and
// circumstance what the model made of it the first time (entry), and only asks
// the model itself when it does not.
type fast struct {
	w       *worker
	ids     [8]uint16 // of the state at hand: sockets, then ports
	of      [model.MaxSockets]*kind
	entries [][]entry   // by row, then by port's number and circumstance
	listens [][]against // by row, then by owner's number
	acc     []against   // how all owners stand to fresh sockets' requests
	rows    []*row
	loaded  bool // the stepper has the state at hand
	from    ref  // where it is stored
	key     uint64
	counts  [stepKinds]int64
	n       int64
	met     [stepKinds]bool   // an earlier level has a witness
	told    map[told]struct{} // violations of which an earlier level has the class
	canon   numbers
}

// entry is what a step comes to.
type entry struct {
	how    uint8
	wrong  uint8 // what does not depend on what the oracle says of owners
	path   rc.Path
	reason rc.Reason // of what is not a refusal by the scan
	step   uint16    // the kind of step, without the reason of such a refusal
	to     uint16    // number of the socket afterwards, 0 for none
	port   uint16    // and of its port
}

// The values of entry.how.
const (
	unknown uint8 = iota
	granted
	refused
	settled  // it fails, whatever the owners are
	slowStep // the model is asked every time
)

type told struct {
	row  int
	port uint16
	bit  uint8
	how  against
}

func newFast(w *worker) *fast {
	f := &fast{w: w, acc: make([]against, len(w.step.e.menu.fresh)), told: map[told]struct{}{}}
	f.canon.f = f
	return f
}

// work expands a block of states.
func (f *fast) work(b block, chunks [][]uint64) error {
	f.n = 0
	w := f.w
	width := w.run.store.width
	for at := b.from; at < b.to; at++ {
		o := int(at&(chunkLen-1)) * width
		words := chunks[at>>chunkBits][o : o+width]
		for i := range f.ids {
			if i>>2 < width {
				f.ids[i] = uint16(words[i>>2] >> (16 * (i & 3)))
			}
		}
		w.run.layout.read(w.step, words, &w.state)
		f.from, f.key, f.loaded = ref(at<<shardBits|b.shard), contents(&w.state), false
		if err := f.expand(); err != nil {
			return err
		}
	}
	w.run.done.Add(f.n)
	return nil
}

func (f *fast) expand() error {
	w := f.w
	e := w.step.e
	free, plain := -1, true
	for i := e.sockets - 1; i >= 0; i-- {
		f.of[i] = nil
		if f.ids[i] == 0 {
			free = i
			continue
		}
		f.of[i] = w.step.kinds.number(int(f.ids[i]))
		plain = plain && f.of[i].plain
	}
	if !plain {
		n, err := w.expand(f.from, f.key)
		f.n += n
		return err
	}
	if free >= 0 {
		if err := f.newcomers(free); err != nil {
			return err
		}
	}
	for slot, k := range f.of[:e.sockets] {
		if k == nil || e.reduce && slot > 0 && f.ids[slot] == f.ids[slot-1] {
			continue
		}
		for j, n := range k.rows {
			if err := f.step(slot, &k.acts[j], n); err != nil {
				return err
			}
		}
	}
	return nil
}

// newcomers performs the steps of fresh sockets.
func (f *fast) newcomers(free int) error {
	e := f.w.step.e
	acc := f.acc
	clear(acc)
	for i, k := range f.of[:e.sockets] {
		if k == nil || i > 0 && f.ids[i] == f.ids[i-1] {
			continue
		}
		for j, a := range k.fresh[:len(acc)] {
			acc[j] |= a
		}
	}
	f.rows = f.w.step.kinds.rowsNow(len(acc))
	for slot := free; slot < e.sockets; slot++ {
		if f.ids[slot] != 0 || e.reduce && slot != free {
			continue
		}
		for i := range acc {
			r := f.rows[i]
			if r == nil {
				if err := f.ask(slot, &e.menu.fresh[i]); err != nil {
					return err
				}
			} else if err := f.answer(slot, i, r, acc[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// step performs a step of a socket that is there.
func (f *fast) step(slot int, a *action, n int) error {
	if n < 0 {
		return f.ask(slot, a)
	}
	f.rows = f.w.step.kinds.rowsNow(n + 1)
	r := f.rows[n]
	acc := against(0)
	for i, k := range f.of[:f.w.step.e.sockets] {
		switch {
		case k == nil || i == slot:
		case r.asks:
			acc |= f.listen(n, r, k)
		case r.port >= 0 && model.PortOf(k.word) == r.port+1:
			acc |= isOwner
		}
	}
	return f.answer(slot, n, r, acc)
}

// listen is how an owner stands to a request to listen.
func (f *fast) listen(n int, r *row, owner *kind) against {
	for n >= len(f.listens) {
		f.listens = append(f.listens, nil)
	}
	of := f.listens[n]
	if owner.id >= len(of) {
		of = append(of, make([]against, owner.id+1-len(of)+16)...)
		f.listens[n] = of
	}
	if of[owner.id] == 0 {
		of[owner.id] = f.w.step.kinds.ask(r, owner)
	}
	return of[owner.id]
}

// answer looks up what a step comes to, counts it, and goes where it leads.
func (f *fast) answer(slot, n int, r *row, acc against) error {
	port := uint16(0)
	if r.port >= 0 {
		port = f.ids[f.w.step.e.sockets+r.port]
	}
	en := f.entry(n, int(port)*int(circumstances)+int(acc.circumstance()))
	if en.how == unknown {
		if err := f.learn(en, slot, r, acc); err != nil {
			return err
		}
	}
	if en.how == slowStep {
		return f.ask(slot, r.act)
	}
	step, wrong, reason := en.step, en.wrong, en.reason
	switch {
	case en.how == refused:
		reason = rc.RefuseNotShared + rc.Reason(bits.TrailingZeros32(uint32(acc)))
		step |= uint16(reason)
		if acc&oracleBits == 0 {
			wrong |= disagrees
		}
	case en.how == granted && acc&oracleBits != 0:
		wrong |= disagrees
	}
	f.n++
	f.counts[step]++
	if wrong != 0 || !f.met[step] {
		f.remark(slot, n, port, en, reason, wrong, acc)
	}
	if f.w.step.e.thorough {
		if err := f.verify(slot, r, en, wrong, acc); err != nil {
			return err
		}
	}
	if en.how != granted || wrong&disagrees != 0 {
		return nil
	}
	return f.lead(slot, r, en)
}

func (f *fast) entry(n, i int) *entry {
	for n >= len(f.entries) {
		f.entries = append(f.entries, nil)
	}
	of := f.entries[n]
	if i >= len(of) {
		of = append(of, make([]entry, i+1-len(of)+32)...)
		f.entries[n] = of
	}
	return &of[i]
}

// load brings the stepper to the state at hand.
func (f *fast) load() error {
	if f.loaded {
		return nil
	}
	f.loaded = true
	return f.w.step.load(&f.w.state)
}

// ask lets the model perform a step.
func (f *fast) ask(slot int, a *action) error {
	if err := f.load(); err != nil {
		return err
	}
	return f.w.step.perform(slot, a, func(t *transition) error {
		f.n++
		return f.w.take(t, f.from, f.key)
	})
}

// perform lets the model perform a step, for what can be learned from it; ok is
// false for one that is not possible.
func (f *fast) perform(slot int, a *action) (t *transition, ok bool, err error) {
	if err := f.load(); err != nil {
		return nil, false, err
	}
	s := f.w.step
	s.always = true
	defer func() { s.always = false }()
	err = s.perform(slot, a, func(*transition) error { ok = true; return nil })
	return &s.t, ok, err
}

// learn notes what the model makes of a step.
func (f *fast) learn(en *entry, slot int, r *row, acc against) error {
	*en = entry{how: slowStep}
	t, ok, err := f.perform(slot, r.act)
	if err != nil || !ok || t.wrong&broken != 0 {
		return err
	}
	s := f.w.step
	n := entry{wrong: t.wrong &^ disagrees, path: t.res.Path, reason: t.res.Reason, step: uint16(stepKind(t))}
	rest := t.next // what must not have changed
	rest.Socks[slot] = f.w.state.Socks[slot]
	if r.port >= 0 {
		rest.Ports[r.port] = f.w.state.Ports[r.port]
	}
	switch {
	case rest != f.w.state:
		return nil
	case t.res.Kind == rc.OK:
		n.how = granted
		if w := t.next.Socks[slot]; w != 0 {
			n.to = uint16(s.kinds.of(w).id)
		}
		if r.port >= 0 && t.next.Ports[r.port] != 0 {
			n.port = uint16(s.ports.of(t.next.Ports[r.port]).id)
		}
		if len(s.kinds.byID) >= maxKinds || len(s.ports.byID) >= maxKinds {
			return errTooLarge
		}
	case t.next != f.w.state:
		return nil
	case t.res.Errno == rc.EADDRINUSE && acc&scanBits != 0:
		n.how = refused
		n.step &^= 31
	case t.res.Kind == rc.Failed && t.wrong == 0 && t.res.Errno != rc.EADDRINUSE:
		n.how = settled
	default:
		return nil
	}
	*en = n
	return nil
}

// remark keeps a witness of a kind of step, and looks at a violation.
func (f *fast) remark(slot, n int, port uint16, en *entry, reason rc.Reason, wrong uint8, acc against) {
	w := f.w
	r := f.rows[n]
	w.step.place(&w.state)
	t := &w.step.t
	*t = transition{slot: slot, act: r.act, create: r.act.create, op: r.act.op, wrong: wrong, reasons: acc.oracleReasons()}
	t.res.Path, t.res.Reason, t.res.Kind = en.path, reason, rc.Failed
	if en.how == granted {
		t.res.Kind = rc.OK
	}
	k := stepKind(t)
	if f.met[k] = w.run.kindsMet[k].count > 0; !f.met[k] {
		w.witness(k, t, f.from)
	}
	if wrong == 0 {
		return
	}
	w.wrong++
	for bit := uint8(1); bit <= broken; bit <<= 1 {
		if wrong&bit == 0 {
			continue
		}
		c := told{n, port, bit, acc}
		if _, ok := f.told[c]; !ok && w.violation(t, f.from, bit) {
			f.told[c] = struct{}{}
		}
	}
}

// lead sends the state that a step leads to into the store.
func (f *fast) lead(slot int, r *row, en *entry) error {
	n := f.w.step.e.sockets
	ids := f.ids
	ids[slot] = en.to
	if r.port >= 0 {
		ids[n+r.port] = en.port
	}
	if ids == f.ids {
		return nil
	}
	if f.w.step.e.reduce {
		f.canon.of(&ids)
	}
	words := f.w.words
	clear(words)
	for i, id := range ids {
		if id != 0 {
			words[i>>2] |= uint64(id) << (16 * (i & 3))
		}
	}
	return f.w.send(f.from, f.key)
}

// verify holds what the tables say to the model, for tests.
func (f *fast) verify(slot int, r *row, en *entry, wrong uint8, acc against) error {
	t, ok, err := f.perform(slot, r.act)
	if err != nil {
		return err
	}
	s := f.w.step
	next := f.w.state
	if en.how == granted {
		if next.Socks[slot] = 0; en.to != 0 {
			next.Socks[slot] = s.kinds.number(int(en.to)).word
		}
		if r.port >= 0 {
			if next.Ports[r.port] = 0; en.port != 0 {
				next.Ports[r.port] = s.ports.number(int(en.port)).word
			}
		}
	}
	same := ok && (t.res.Kind == rc.OK) == (en.how == granted) && t.res.Path == en.path && t.wrong == wrong && t.next == next
	switch {
	case en.how == refused:
		same = same && t.res.Errno == rc.EADDRINUSE && reasonBit(t.res.Reason)&acc&scanBits != 0 && t.reasons == acc.oracleReasons()
	case r.asks && en.how == granted:
		same = same && t.res.Reason == en.reason && t.reasons == acc.oracleReasons()
	}
	if !same {
		return &SelfError{"the model and the tables of its answers differ", s.trace(t)}
	}
	return nil
}
