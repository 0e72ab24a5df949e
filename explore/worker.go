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
	wrong   uint8
	verb    rc.Verb
	path    rc.Path
	reason  rc.Reason
	reasons uint64
	binder  int // action, or kind behind the actions
	port    uint64
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
	width := w.run.store.width
	n := int64(0)
	for at := b.from; at < b.to; at++ {
		c := chunks[at>>chunkBits]
		o := int(at&(chunkLen-1)) * width
		w.run.layout.read(w.step.kinds, c[o:o+width], &w.state)
		from := ref(at<<shardBits | b.shard)
		err := w.step.expand(&w.state, func(t *transition) error {
			n++
			w.note(t, from, c[o:o+width])
			if t.diverged || t.next == w.state {
				return nil
			}
			w.canon.of(&t.next)
			return w.put(&t.next, from)
		})
		if err != nil {
			return err
		}
	}
	w.run.done.Add(n)
	return nil
}

// put sends a state on its way into the store.
func (w *worker) put(st *model.State, from ref) error {
	s := w.run.store
	if len(w.words) == 0 {
		w.words = make([]uint64, s.width)
	}
	if !w.run.layout.write(w.step.kinds, st, w.words) {
		return fmt.Errorf("the world is too large: more than %d different sockets", maxKinds)
	}
	h := hash(w.words)
	b := &w.out[h&(shardCount-1)]
	b.hashes = append(b.hashes, h)
	b.words = append(b.words, w.words...)
	b.parents = append(b.parents, from)
	if len(b.hashes) == batchLen {
		s.insert(int(h&(shardCount-1)), b)
	}
	return nil
}

func (w *worker) flushAll() {
	for i := range w.out {
		if len(w.out[i].hashes) > 0 {
			w.run.store.insert(i, &w.out[i])
		}
	}
}

// note counts a transition, and remembers it if it is the first of its kind or
// violates a property.
func (w *worker) note(t *transition, from ref, words []uint64) {
	m := &w.met[stepKind(t)]
	if m.count++; m.count == 1 || from < m.at.from {
		m.at = w.candidate(t, from, words, m.at.words)
	}
	if t.wrong == 0 {
		return
	}
	w.wrong++
	for bit := uint8(1); bit <= broken; bit <<= 1 {
		if t.wrong&bit == 0 {
			continue
		}
		c := class{wrong: bit, verb: t.op.Verb, path: t.res.Path}
		c.binder = t.act.id
		if !t.act.fresh {
			c.binder = len(w.step.e.menu.fresh) + w.step.slots[t.slot].id
		}
		if bit == disagrees {
			c.reason, c.reasons = t.res.Reason, t.reasons
			c.port = w.state.Ports[w.portIndex(t)] & (1<<model.GhostShift - 1)
		}
		old, ok := w.found[c]
		if !ok && len(w.found) >= maxClasses || ok && !lessWords(words, old.words) {
			continue
		}
		n := w.candidate(t, from, words, old.words)
		n.wrong = bit
		w.found[c] = n
	}
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

func lessWords(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func (w *worker) candidate(t *transition, from ref, words, buf []uint64) Candidate {
	c := Candidate{Depth: w.run.stats.Covered + 1, from: from, slot: uint8(t.slot), fresh: t.act.fresh, words: append(buf[:0], words...)}
	if t.act.fresh {
		c.act = uint16(t.act.id)
	} else {
		acts := w.step.slots[t.slot].acts
		for i := range acts {
			if &acts[i] == t.act {
				c.act = uint16(i)
			}
		}
	}
	return c
}

// merge hands over what a worker found in a level. What an earlier level found
// of the same class is shorter.
func (w *worker) merge(r *run, found map[class]Candidate) {
	for c, n := range w.found {
		if _, ok := r.classes[c]; ok {
			continue
		}
		if old, ok := found[c]; !ok || lessWords(n.words, old.words) {
			found[c] = n
		}
	}
	clear(w.found)
	for k := range w.met {
		m := &w.met[k]
		if m.count == 0 {
			continue
		}
		if g := &r.kindsMet[k]; g.count == 0 {
			g.at = m.at
			g.at.words = append([]uint64(nil), m.at.words...)
		}
		r.kindsMet[k].count += m.count
		m.count = 0
	}
	r.violations += w.wrong
	w.wrong = 0
}
