package explore

import (
	"fmt"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// worker expands states and sends what they lead to into the store.
type worker struct {
	run   *run
	step  *stepper
	canon canon
	state model.State
	words []uint64
	out   [shardCount]batch
	fast  *fast // nil where only the model answers
	found map[class]Candidate
	met   [stepKinds]firstStep
	wrong int64
}

func newWorker(r *run, s *stepper) *worker {
	w := &worker{run: r, step: s, found: map[class]Candidate{}}
	w.canon.s = s
	return w
}

// class is a set of violations of which one is told: the same step of the same
// socket, in the same state of its port's cache, against owners that the oracle
// refuses for the same reasons.
type class struct {
	Wrong   uint8
	Verb    rc.Verb
	Path    rc.Path
	Reason  rc.Reason
	Reasons uint64
	Action  int    // of a fresh socket
	Binder  uint64 // word of the socket that was there
	Port    uint64
}

// The kinds of steps: verb, whether it was granted, and the reason.
const stepKinds = 16 * 2 * 32

func stepKind(t *transition) int {
	k := int(t.op.Verb&15)<<6 | int(t.res.Reason&31)
	if t.res.Kind == rc.OK {
		k |= 1 << 5
	}
	return k
}

// maxClasses bounds what is remembered of violations of one kind.
const maxClasses = 1 << 16

func (w *worker) work(b block, chunks [][]uint64) error {
	if w.fast != nil {
		return w.fast.work(b, chunks)
	}
	width := w.run.store.width
	n := int64(0)
	for at := b.from; at < b.to; at++ {
		c := chunks[at>>chunkBits]
		o := int(at&(chunkLen-1)) * width
		w.run.layout.read(w.step, c[o:o+width], &w.state)
		m, err := w.expand(ref(at<<shardBits|b.shard), contents(&w.state))
		if err != nil {
			return err
		}
		n += m
	}
	w.run.done.Add(n)
	return nil
}

// expand lets the model perform every step of the state at hand, which is stored
// at from and has the contents key.
func (w *worker) expand(from ref, key uint64) (n int64, err error) {
	err = w.step.expand(&w.state, func(t *transition) error {
		n++
		return w.take(t, from, key)
	})
	return n, err
}

// take notes a transition from the state at hand and goes where it leads.
func (w *worker) take(t *transition, from ref, key uint64) error {
	w.note(t, from)
	if t.diverged || t.next == w.state {
		return nil
	}
	w.canon.of(&t.next)
	return w.put(&t.next, from, key)
}

var errTooLarge = fmt.Errorf("the world is too large: more than %d different sockets or ports", maxKinds-1)

// put sends a state on its way into the store. key is the contents of the state
// that it comes from.
func (w *worker) put(st *model.State, from ref, key uint64) error {
	if !w.run.layout.write(w.step, st, w.words) {
		return errTooLarge
	}
	return w.send(from, key)
}

// send sends the state in w.words.
func (w *worker) send(from ref, key uint64) error {
	h := hash(w.words)
	b := &w.out[h&(shardCount-1)]
	b.hashes = append(b.hashes, h)
	b.words = append(b.words, w.words...)
	b.parents = append(b.parents, parent{from, key})
	if len(b.hashes) == batchLen {
		w.run.store.insert(int(h&(shardCount-1)), b)
	}
	return nil
}

// contents is a number that depends on a state alone, and not on the order in
// which workers met what is in it.
func contents(st *model.State) uint64 {
	h := uint64(0)
	for i := range st.Socks {
		h = (h ^ st.Socks[i]) * 0xff51afd7ed558ccd
		h = (h ^ h>>32 ^ st.Ends[i]) * 0xc4ceb9fe1a85ec53
	}
	for _, w := range st.Ports {
		h = (h ^ h>>29 ^ w) * 0xff51afd7ed558ccd
	}
	return h ^ h>>31 ^ st.Order[0] ^ st.Order[1]
}

func (w *worker) flushAll() {
	for i := range w.out {
		if len(w.out[i].hashes) > 0 {
			w.run.store.insert(i, &w.out[i])
		}
	}
}

// note counts a transition, and remembers it if it is the first of its kind or
// violates a property. Of several the one from the least state is kept, so that
// the number of workers changes nothing.
func (w *worker) note(t *transition, from ref) {
	k := stepKind(t)
	w.met[k].count++
	w.witness(k, t, from)
	if t.wrong == 0 {
		return
	}
	w.wrong++
	for bit := uint8(1); bit <= broken; bit <<= 1 {
		if t.wrong&bit != 0 {
			w.violation(t, from, bit)
		}
	}
}

// witness keeps the first transition of a kind, where no earlier level has one.
func (w *worker) witness(k int, t *transition, from ref) {
	m := &w.met[k]
	if w.run.kindsMet[k].count == 0 && (m.at.Depth != w.run.stats.Covered+1 || w.before(t, &m.at)) {
		m.at = w.candidate(t, from)
	}
}

// violation keeps the first transition of a class, and reports whether an earlier
// level has one.
func (w *worker) violation(t *transition, from ref, bit uint8) (known bool) {
	c := class{Wrong: bit, Verb: t.op.Verb, Path: t.res.Path, Action: t.act.id}
	if !t.act.fresh {
		c.Binder = w.step.slots[t.slot].word
	}
	if bit == disagrees {
		c.Reason, c.Reasons = t.res.Reason, t.reasons
		c.Port = w.state.Ports[w.portIndex(t)] & (1<<model.GhostShift - 1)
	}
	if _, ok := w.run.classes[c]; ok {
		return true // and it is shorter
	}
	old, ok := w.found[c]
	if !ok && len(w.found) >= maxClasses || ok && !w.before(t, &old) {
		return false
	}
	n := w.candidate(t, from)
	n.Wrong = bit
	w.found[c] = n
	return false
}

// before reports whether a transition from the state at hand comes before c.
func (w *worker) before(t *transition, c *Candidate) bool {
	n := w.step.e.sockets
	if less(&w.state, &c.State, n) {
		return true
	}
	return !less(&c.State, &w.state, n) && w.actionIndex(t) < int(c.Act)
}

// actionIndex is an action's place among those of its slot.
func (w *worker) actionIndex(t *transition) int {
	if t.act.fresh {
		return t.act.id
	}
	acts := w.step.slots[t.slot].acts
	for i := range acts {
		if &acts[i] == t.act {
			return i
		}
	}
	return -1
}

func (w *worker) portIndex(t *transition) int {
	port := t.op.Addr.Port()
	if !t.act.fresh && t.op.Verb != rc.VBind {
		port = w.step.slots[t.slot].sock.Local.Port()
	}
	for i, p := range w.step.e.world.Ports {
		if p == port {
			return i
		}
	}
	return 0
}

func (w *worker) candidate(t *transition, from ref) Candidate {
	return Candidate{Depth: w.run.stats.Covered + 1, From: from, Slot: uint8(t.slot), Fresh: t.act.fresh,
		Act: uint16(w.actionIndex(t)), State: w.state}
}

// merge hands over what a worker found in a level. What an earlier level found
// of the same class is shorter.
func (w *worker) merge(r *run, found map[class]Candidate) {
	for c, n := range w.found {
		if _, ok := r.classes[c]; ok {
			continue
		}
		if old, ok := found[c]; !ok || compareCandidates(n, old) < 0 {
			found[c] = n
		}
	}
	clear(w.found)
	if w.fast != nil {
		for k := range w.met {
			w.met[k].count += w.fast.counts[k]
			w.fast.counts[k] = 0
		}
	}
	for k := range w.met {
		m := &w.met[k]
		if m.count == 0 {
			continue
		}
		g := &r.kindsMet[k]
		if g.count == 0 || g.at.Depth == m.at.Depth && m.at.Depth == r.stats.Covered+1 && compareCandidates(m.at, g.at) < 0 {
			g.at = m.at
		}
		g.count += m.count
		m.count = 0
	}
	r.violations += w.wrong
	w.wrong = 0
}
