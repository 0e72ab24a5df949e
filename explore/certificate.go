package explore

import (
	"errors"
	"io"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Certificate writes the proof of soundness under assumptions as SMT-LIB 2: the
// invariant, and three obligations that a solver finds unsatisfiable. They say
// that what a first owner leaves is in the invariant, that no step leads out of
// it, and that no pair in it violates the property. The rules are the model's
// answers, request by request, as decision diagrams.
func (p *Prover) Certificate(out io.Writer, a Assumption) error {
	return p.certificate(out, a, nil)
}

// certificate leaves pairs out of the invariant that spoil names.
func (p *Prover) certificate(out io.Writer, a Assumption, spoil func(cache, word int) bool) error {
	v := p.invariant(a)
	if _, found := v.violation(spec.Sound); found {
		return errors.New("there is no certificate where one tracked owner is not enough for a proof: its invariant is one of pairs")
	}
	c := &certificate{v: v, t: p.t, f: &formula{out: out}, spoil: spoil}
	if err := c.measure(); err != nil {
		return err
	}
	c.f.printf("; checker prove --kernel %s --property sound --assume %s\n", p.Kernel, a)
	c.f.printf("; A bucket is a cache and one owner, the others doing what they please. Variables: c the cache, o the\n" +
		"; owner, q a request by a socket without the port, x another owner that asks to listen, n an owner afterwards.\n" +
		"(set-logic QF_FD)\n")
	c.declare()
	c.tables()
	c.obligation("what a first owner leaves is in the invariant", c.initial)
	c.obligation("no step leads out of the invariant", c.step)
	c.obligation("no pair of the invariant violates soundness", c.violation)
	return c.f.err
}

type certificate struct {
	v     *invariant
	t     *tables
	f     *formula
	spoil func(cache, word int) bool

	caches       []int // that have owners
	cacheBits    uint64
	wordBits     uint64
	constant     uint64 // what the other bits of every word are
	order        []model.Bit
	variants     map[int]uint64 // of requests that lead to one word, by row
	extra        uint
	in           *diagram // the invariant
	first        *diagram
	asks, listen requests
	turns        *diagram
	released     []*diagram
	child        *diagram
	handed       []*diagram
}

// requests are the tables of one sort of request.
type requests struct {
	who           string // the word that asks
	is            *diagram
	granted, fast *diagram
	pass, against *diagram
	after         []*diagram // bits of the cache
	becomes       []*diagram // bits of the asker's word, nil: its own
	rows          []int
	words         [][]uint64 // by row: what asks
}

// measure finds the bits that differ at all.
func (c *certificate) measure() error {
	var all uint64
	one := ^uint64(0)
	note := func(w uint64) { all |= w; one &= w }
	for i, s := range c.v.sets {
		if s.empty() {
			continue
		}
		c.caches = append(c.caches, i)
		c.cacheBits |= c.t.caches[i]
		s.each(func(w int) { note(c.t.words[w]) })
	}
	for _, row := range c.v.rows {
		for _, q := range c.v.by[row] {
			note(q.word)
		}
	}
	c.wordBits, c.constant = all&^one, one
	c.order = append(model.BitOrder(), model.Bit{At: usedAt}, model.Bit{At: shutAt})
	if all&driftBit != 0 {
		return &rc.Unsupported{What: "a certificate of a kernel on which the oracle remembers more of an owner than the stack has",
			Why: "a certificate compares an owner's stand by what the scan reads"}
	}
	c.variants = map[int]uint64{}
	same := map[uint64]uint64{}
	most := uint64(0)
	for _, row := range c.v.rows {
		w := c.v.by[row][0].word
		c.variants[row] = same[w]
		most = max(most, same[w])
		same[w]++
	}
	for ; 1<<c.extra <= most; c.extra++ {
	}
	return nil
}

// variantBit is where a request's word has the number of its variant.
const variantBit = 50

func (c *certificate) vars(cache, word string) (vs []variable) {
	for _, b := range c.order {
		switch {
		case b.OfCache && cache != "" && c.cacheBits>>b.At&1 != 0:
			vs = append(vs, variable{cache, b.At})
		case !b.OfCache && word != "" && c.wordBits>>b.At&1 != 0:
			vs = append(vs, variable{word, b.At})
		}
	}
	if word == "q" {
		for i := range c.extra {
			vs = append(vs, variable{word, variantBit + i})
		}
	}
	return vs
}

// pairVars are the bits of an asker and an owner side by side; the owner's are
// those that a scan reads.
func (c *certificate) pairVars(asker string) (vs []variable) {
	for _, b := range c.order {
		if b.OfCache || c.wordBits>>b.At&1 == 0 {
			continue
		}
		vs = append(vs, variable{asker, b.At})
		if model.ReadByScan>>b.At&1 != 0 {
			vs = append(vs, variable{"o", b.At})
		}
	}
	if asker == "q" {
		for i := range c.extra {
			vs = append(vs, variable{asker, variantBit + i})
		}
	}
	return vs
}

// key puts the bits of words in the order of variables.
func key(vs []variable, words map[string]uint64) (k uint64) {
	for _, v := range vs {
		k = k<<1 | words[v.word]>>v.bit&1
	}
	return k
}

func (c *certificate) declare() {
	seen := map[string]bool{}
	for _, w := range []string{"o", "q", "x", "n"} {
		for _, v := range c.vars("c", w) {
			if !seen[v.String()] {
				seen[v.String()] = true
				c.f.printf("(declare-const %s Bool)\n", v)
			}
		}
	}
}

func (c *certificate) tables() {
	v, t := c.v, c.t
	vs := c.vars("c", "o")
	var in, first []uint64
	pair := func(cache, word int) uint64 {
		return key(vs, map[string]uint64{"c": t.caches[cache], "o": t.words[word]})
	}
	for _, i := range c.caches {
		v.sets[i].each(func(w int) {
			if c.spoil == nil || !c.spoil(i, w) {
				in = append(in, pair(i, w))
			}
		})
	}
	for _, row := range v.rows {
		for _, q := range v.by[row] {
			first = append(first, pair(t.firstCache(q), t.index[q.word]))
		}
	}
	c.in, c.first = diagramOf(vs, in), diagramOf(vs, first)
	c.asks = requests{who: "q", rows: v.rows, words: make([][]uint64, len(v.rows))}
	for k, row := range v.rows {
		for _, q := range v.by[row] {
			c.asks.words[k] = append(c.asks.words[k], q.word|c.variants[row]<<variantBit)
		}
	}
	c.fill(&c.asks)
	c.listen = requests{who: "x"}
	to := map[uint64]uint64{}
	c.collectListeners(to)
	c.fill(&c.listen)
	c.become(&c.listen, to)
	c.turnTables()
}

// collectListeners notes every owner that asks to listen, by the rows it does so.
func (c *certificate) collectListeners(to map[uint64]uint64) {
	at := map[int]int{}
	for _, i := range c.caches {
		c.v.listeners(i, func(row int, who []int) {
			k, ok := at[row]
			if !ok {
				k = len(c.listen.rows)
				at[row] = k
				c.listen.rows = append(c.listen.rows, row)
				c.listen.words = append(c.listen.words, nil)
			}
			for _, w := range who {
				if _, ok := to[c.t.words[w]]; !ok {
					to[c.t.words[w]] = c.t.lives[w].listen.word
					c.listen.words[k] = append(c.listen.words[k], c.t.words[w])
				}
			}
		})
	}
}

// fill makes the tables of one sort of request.
func (c *certificate) fill(r *requests) {
	t := c.t
	who, vs, ps := c.vars("", r.who), c.vars("c", r.who), c.pairVars(r.who)
	var is, granted, fast, pass, against []uint64
	after := map[uint][]uint64{}
	for k, row := range r.rows {
		named := t.named(&t.asks[row])
		for _, w := range r.words[k] {
			is = append(is, key(who, map[string]uint64{r.who: w}))
			for _, i := range c.caches {
				g := t.grant(i, row)
				if g.after < 0 {
					continue
				}
				at := key(vs, map[string]uint64{"c": t.caches[i], r.who: w})
				granted = append(granted, at)
				if g.fast {
					fast = append(fast, at)
				}
				for b := uint(0); b < 64; b++ {
					if c.cacheBits>>b&1 != 0 && t.caches[g.after]>>b&1 != 0 {
						after[b] = append(after[b], at)
					}
				}
			}
			for class, m := range t.members {
				if (m^c.constant)&model.ReadByScan&^c.wordBits != 0 {
					continue // no owner of this world
				}
				s := t.stand(row, class)
				at := key(ps, map[string]uint64{r.who: w, "o": m})
				if s&scanMayPass != 0 {
					pass = append(pass, at)
				}
				if named && s&oracleRefuses != 0 {
					against = append(against, at)
				}
			}
		}
	}
	r.is = diagramOf(who, is)
	r.granted, r.fast = diagramOf(vs, granted), diagramOf(vs, fast)
	r.pass, r.against = diagramOf(ps, pass), diagramOf(ps, against)
	for b := uint(0); b < 64; b++ {
		r.after = append(r.after, diagramOf(vs, after[b]))
	}
}

// become says bit by bit what a listener's word is once it listens.
func (c *certificate) become(r *requests, to map[uint64]uint64) {
	who := c.vars("", r.who)
	bits := map[uint][]uint64{}
	for w, n := range to {
		for b := uint(0); b < 64; b++ {
			if n>>b&1 != 0 {
				bits[b] = append(bits[b], key(who, map[string]uint64{r.who: w}))
			}
		}
	}
	for b := uint(0); b < 64; b++ {
		r.becomes = append(r.becomes, diagramOf(who, bits[b]))
	}
}

func (c *certificate) turnTables() {
	t, v := c.t, c.v
	vs := append(c.vars("", "o"), c.vars("", "n")...)
	var turns []uint64
	alive := make(bitset, (len(t.words)+63)/64)
	for _, i := range c.caches {
		alive.union(v.sets[i], nil)
	}
	alive.each(func(w int) {
		for _, n := range t.lives[w].turns {
			if n.to >= 0 && n.needs&v.without == 0 {
				turns = append(turns, key(vs, map[string]uint64{"o": t.words[w], "n": t.words[n.to]}))
			}
		}
	})
	c.turns = diagramOf(vs, turns)
	cs := c.vars("c", "")
	ch := c.vars("c", "n")
	released, handed := map[uint][]uint64{}, map[uint][]uint64{}
	var child []uint64
	for _, i := range c.caches {
		for b := uint(0); b < 64; b++ {
			if t.caches[t.released(i)]>>b&1 != 0 {
				released[b] = append(released[b], key(cs, map[string]uint64{"c": t.caches[i]}))
			}
		}
		for k := range v.hands {
			h := &v.hands[k]
			after, ok := v.after[[2]int{i, h.child}]
			if !ok || after < 0 {
				continue
			}
			at := key(ch, map[string]uint64{"c": t.caches[i], "n": t.words[h.child]})
			child = append(child, at)
			for b := uint(0); b < 64; b++ {
				if t.caches[after]>>b&1 != 0 {
					handed[b] = append(handed[b], at)
				}
			}
		}
	}
	c.child = diagramOf(ch, child)
	for b := uint(0); b < 64; b++ {
		c.released = append(c.released, diagramOf(cs, released[b]))
		c.handed = append(c.handed, diagramOf(ch, handed[b]))
	}
}

func (c *certificate) obligation(what string, assert func() string) {
	c.f.printf("\n; %s\n(push 1)\n", what)
	c.f.printf("(assert %s)\n(check-sat)\n(pop 1)\n", assert())
}

func plain(v variable) string { return v.String() }

func and(terms ...string) string { return "(and " + strings.Join(terms, " ") + ")" }
func or(terms ...string) string  { return "(or " + strings.Join(terms, " ") + ")" }
func not(term string) string     { return "(not " + term + ")" }

// bits writes diagrams bit by bit and gives the terms by bit.
func (c *certificate) bits(ds []*diagram, mask uint64) map[uint]string {
	terms := map[uint]string{}
	for b, d := range ds {
		if mask>>b&1 != 0 {
			terms[uint(b)] = c.f.write(d, plain)
		}
	}
	return terms
}

// inside says that a pair is in the invariant: the cache's bits are given, or its
// own, and so are the owner's.
func (c *certificate) inside(cache map[uint]string, word string, owner map[uint]string) string {
	return c.f.write(c.in, func(v variable) string {
		switch {
		case v.word == "c" && cache != nil:
			return cache[v.bit]
		case v.word == "o" && owner != nil:
			return owner[v.bit]
		case v.word == "o":
			return variable{word, v.bit}.String()
		}
		return v.String()
	})
}

func (c *certificate) initial() string {
	return and(c.f.write(c.first, plain), not(c.inside(nil, "o", nil)))
}

func (c *certificate) step() string {
	here := c.inside(nil, "o", nil)
	var steps []string
	for _, r := range []*requests{&c.asks, &c.listen} {
		after := c.bits(r.after, c.cacheBits)
		var becomes map[uint]string
		who := here
		if r.becomes != nil {
			becomes = c.bits(r.becomes, c.wordBits)
			who = c.inside(nil, r.who, nil) // it is an owner too
		}
		is, granted := c.f.write(r.is, plain), c.f.write(r.granted, plain)
		passes := or(c.f.write(r.fast, plain), c.f.write(r.pass, plain))
		stays, joins := c.inside(after, "o", nil), c.inside(after, r.who, becomes)
		steps = append(steps, and(here, who, is, granted, passes, not(and(stays, joins))))
		if r.becomes != nil { // alone on its port
			steps = append(steps, and(who, is, granted, not(joins)))
		}
	}
	steps = append(steps, and(here, c.f.write(c.turns, plain), not(c.inside(nil, "n", nil))))
	steps = append(steps, and(here, not(c.inside(c.bits(c.released, c.cacheBits), "o", nil))))
	handed := c.bits(c.handed, c.cacheBits)
	steps = append(steps, and(here, c.f.write(c.child, plain), not(and(c.inside(handed, "o", nil), c.inside(handed, "n", nil)))))
	return or(steps...)
}

func (c *certificate) violation() string {
	here := c.inside(nil, "o", nil)
	one := func(r *requests, who string) string {
		return and(here, who, c.f.write(r.is, plain), c.f.write(r.fast, plain), c.f.write(r.against, plain))
	}
	return or(one(&c.asks, "true"), one(&c.listen, c.inside(nil, "x", nil)))
}
