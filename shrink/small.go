package shrink

import (
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// grammar is the small world of a trace: the verbs, addresses and attributes
// that it uses, in their simplest values. All of its traces below a size can be
// listed, which no number of moves away from one of them can replace.
type grammar struct {
	verbs []rc.Verb
	last  rc.Verb // of the last step, 0 for any
	addrs []netip.Addr
	lines [][]rc.Op // socket lines, by the number of attributes given
	sets  []rc.Op   // set steps, of socket 0
	uids  []uint32
	devs  []rc.Dev
	udp   bool
	// inherited are the ports of inherits, 0 for the listener's.
	inherited  []uint16
	unaccepted bool // some connect is
	attrs      int
	spare      int // how many more traces may be made
}

// small tries every trace of the best one's small world that is simpler, the
// simplest first, size by size, as long as the sizes are within the bound on
// pairs. Then it tries shorter ones of binds only, of both families, with their
// wildcards and all reuse options. It reports whether one failed.
func (r *run) small() bool {
	if r.opts.MaxPairs < 0 || !r.hoist || r.over() {
		return false
	}
	r.enter("small")
	g, ok := r.world()
	if !ok {
		return false
	}
	if r.list(g, r.best.w[wSteps]) {
		return true
	}
	g.enrich()
	g.spare = r.opts.MaxPairs / 4
	return r.list(g, r.best.w[wSteps]-1)
}

func (r *run) list(g grammar, most int) (found bool) {
	for steps := 1; steps <= most; steps++ {
		for sockets := 1; sockets <= steps; sockets++ {
			if steps == r.best.w[wSteps] && sockets > r.best.w[wSockets] {
				return false
			}
			frames := g.frames(steps, sockets)
			for attrs := 0; attrs <= g.attrs; attrs++ {
				found, fits := r.level(&g, frames, attrs)
				if found || !fits {
					return found
				}
			}
		}
	}
	return false
}

// level tries the traces of one size and one number of attributes. fits says
// that there was room for all of them.
func (r *run) level(g *grammar, frames []frame, attrs int) (found, fits bool) {
	var out []draft
	for _, f := range frames {
		f.dress(g, attrs, func(ops []rc.Op) bool {
			if g.spare--; g.spare < 0 {
				return false
			}
			d := draft{ops: ops}
			d.tidy(true)
			if compare(&d, &r.best) < 0 {
				out = append(out, d)
			}
			return true
		})
	}
	if g.spare < 0 {
		return false, false
	}
	slices.SortFunc(out, func(a, b draft) int { return compare(&a, &b) })
	for i := range out {
		if r.ask(&out[i]) {
			r.keep(out[i])
			return true, true
		}
		if r.over() {
			return false, false
		}
	}
	return false, true
}

// world is the best trace's grammar. Traces with automatic ports, settings,
// namespaces or more than one port have none.
func (r *run) world() (g grammar, ok bool) {
	d := &r.best
	if d.ports != (rc.PortRange{}) || len(d.sysctl) > 0 || len(d.ops) == 0 {
		return g, false
	}
	opts, six, four := optsUsed(d), false, false
	for i := range d.ops {
		op := &d.ops[i]
		switch {
		case op.Verb == rc.VNetns || op.Verb == rc.VSend || op.Verb == rc.VExit, op.HasNet, op.Range.Size() > 0,
			hasAddr(op) && op.Addr.Port() != ports[0] && !(op.Verb == rc.VInherit && op.Addr.Port() == 0):
			return g, false
		case op.Verb == rc.VSocket:
			six, four = six || op.Family.Is6(), four || !op.Family.Is6()
			continue
		case hasAddr(op) && !slices.Contains(g.addrs, op.Addr.Addr()):
			g.addrs = append(g.addrs, op.Addr.Addr())
		}
		g.unaccepted = g.unaccepted || op.Unaccepted
		if op.Verb == rc.VInherit && !slices.Contains(g.inherited, op.Addr.Port()) {
			g.inherited = append(g.inherited, op.Addr.Port())
		}
		if !slices.Contains(g.verbs, op.Verb) {
			g.verbs = append(g.verbs, op.Verb)
		}
		g.last = op.Verb
	}
	uids := users[:min(len(users), distinct(d, func(op *rc.Op) uint32 { return op.UID }))]
	ds := devs[:min(len(devs), distinct(d, func(op *rc.Op) rc.Dev { return op.Dev }))]
	g.attrs = d.w[wAttrs] + 1
	g.spare = r.opts.MaxPairs / 2
	g.uids, g.devs, g.udp = uids, ds, d.ops[0].Family.IsUDP()
	g.addLines(six, four, opts)
	g.addSets(opts)
	return g, true
}

func distinct[T comparable](d *draft, of func(*rc.Op) T) int {
	var zero T
	list := []T{zero}
	for i := range d.ops {
		if v := of(&d.ops[i]); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return len(list)
}

// enrich makes the small world one of binds in which families mix.
func (g *grammar) enrich() {
	mapped := slices.ContainsFunc(g.addrs, netip.Addr.Is4In6)
	g.addrs = []netip.Addr{one4, any4, one6, any6}
	if mapped {
		g.addrs = append(g.addrs, addrs[6], addrs[8])
	}
	g.verbs, g.last = []rc.Verb{rc.VBind}, rc.VBind
	g.addLines(true, true, rc.ReuseAddr|rc.ReusePort|rc.V6Only)
}

// addLines makes the socket lines of the families, with any of the options.
func (g *grammar) addLines(six, four bool, used rc.Opt) {
	g.lines = nil
	fs := []rc.Family{rc.TCP4, rc.TCP6}
	if g.udp {
		fs = []rc.Family{rc.UDP4, rc.UDP6}
	}
	for _, f := range fs {
		if f.Is6() && !six || !f.Is6() && !four {
			continue
		}
		for o := rc.Opt(0); o <= used; o++ {
			if !used.Has(o) || o.Has(rc.V6Only) && !f.Is6() {
				continue
			}
			for _, uid := range g.uids {
				for _, dev := range g.devs {
					op := rc.NewSocket(0, f, o)
					op.UID, op.Dev = uid, dev
					g.addLine(op)
				}
			}
		}
	}
}

func (g *grammar) addLine(op rc.Op) {
	var w weight
	w.socket(&op)
	for len(g.lines) <= w[wAttrs] {
		g.lines = append(g.lines, nil)
	}
	g.lines[w[wAttrs]] = append(g.lines[w[wAttrs]], op)
}

func (g *grammar) addSets(used rc.Opt) {
	for _, o := range options[:2] {
		if used.Has(o) {
			g.sets = append(g.sets, rc.SetOption(0, o, false))
		}
	}
	for _, uid := range g.uids[1:] {
		g.sets = append(g.sets, rc.SetOwner(0, uid))
	}
	for _, dev := range g.devs {
		if len(g.devs) > 1 {
			g.sets = append(g.sets, rc.SetDevice(0, dev))
		}
	}
}

// frame is a trace without what its socket lines say: which sockets do what.
type frame struct {
	lines int // the sockets with a line; children come after them
	ops   []rc.Op
}

// frames lists the frames with so many steps and sockets, children included.
func (g *grammar) frames(steps, sockets int) []frame {
	var all []frame
	for lines := sockets; lines > 0; lines-- {
		b := builder{g: g, steps: steps, lines: lines, sockets: sockets, lives: make([]life, sockets), bound: make([]bool, sockets)}
		b.extend(func(ops []rc.Op) { all = append(all, frame{lines, slices.Clone(ops)}) })
		if lines == sockets && !slices.Contains(g.verbs, rc.VInherit) {
			break
		}
	}
	return all
}

// builder makes frames step by step.
type builder struct {
	g              *grammar
	steps          int
	lines, sockets int
	used, children int
	ops            []rc.Op
	lives          []life
	bound          []bool
}

func (b *builder) extend(emit func([]rc.Op)) {
	left := b.steps - len(b.ops)
	if left == 0 {
		if b.used == b.lines && b.lines+b.children == b.sockets {
			emit(b.ops)
		}
		return
	}
	if b.lines-b.used+b.sockets-b.lines-b.children > left {
		return
	}
	for _, v := range b.g.verbs {
		if left > 1 || b.g.last == 0 || v == b.g.last {
			b.verb(v, emit)
		}
	}
}

func (b *builder) verb(v rc.Verb, emit func([]rc.Op)) {
	for i := range b.sockets {
		id := rc.ID(i)
		fresh := i == b.used && i < b.lines
		if i > b.used && i < b.lines || i >= b.lines+b.children {
			continue
		}
		switch v {
		case rc.VBind, rc.VConnect:
			for _, a := range b.g.addrs {
				op := rc.Op{Verb: v, Sock: id, Addr: netip.AddrPortFrom(a, ports[0])}
				if v == rc.VConnect || !b.bound[i] {
					b.with(op, fresh, emit)
				}
				if op.Unaccepted = true; v == rc.VConnect && b.g.unaccepted {
					b.with(op, fresh, emit)
				}
			}
		case rc.VInherit:
			for _, a := range b.g.addrs {
				for _, p := range b.g.inherited {
					if !fresh && b.lines+b.children < b.sockets {
						b.with(rc.Inherit(id, rc.ID(b.lines+b.children), netip.AddrPortFrom(a, p)), false, emit)
					}
				}
			}
		case rc.VSet:
			for _, s := range b.g.sets {
				if s.Sock = id; !fresh {
					b.with(s, false, emit)
				}
			}
		default:
			if !fresh {
				b.with(rc.Op{Verb: v, Sock: id}, false, emit)
			}
		}
	}
}

// with goes on behind one more step, if it can stand there.
func (b *builder) with(op rc.Op, fresh bool, emit func([]rc.Op)) {
	lives, bound, used, children := slices.Clone(b.lives), slices.Clone(b.bound), b.used, b.children
	if fresh {
		b.lives[op.Sock] = alive
		b.used++
	}
	if step(b.lives, &op) {
		switch op.Verb {
		case rc.VBind:
			b.bound[op.Sock] = true
		case rc.VInherit:
			b.bound[op.Child] = true
			b.children++
		}
		b.ops = append(b.ops, op)
		b.extend(emit)
		b.ops = b.ops[:len(b.ops)-1]
	}
	b.lives, b.bound, b.used, b.children = lives, bound, used, children
}

// dress gives a frame socket lines with so many attributes in all, in every way,
// until yield returns false.
func (f *frame) dress(g *grammar, attrs int, yield func([]rc.Op) bool) {
	lines := make([]rc.Op, 0, f.lines)
	var more func(left int) bool
	more = func(left int) bool {
		if len(lines) == f.lines {
			if left > 0 {
				return true
			}
			ops, ok := f.put(lines)
			return !ok || yield(ops)
		}
		for n := 0; n <= left && n < len(g.lines); n++ {
			for _, line := range g.lines[n] {
				line.Sock = rc.ID(len(lines))
				lines = append(lines, line)
				ok := more(left - n)
				lines = lines[:len(lines)-1]
				if !ok {
					return false
				}
			}
		}
		return true
	}
	more(attrs)
}

// put joins lines and steps: addresses must fit, and what is set must change.
func (f *frame) put(lines []rc.Op) ([]rc.Op, bool) {
	now := slices.Clone(lines)
	ops := append(make([]rc.Op, 0, len(lines)+len(f.ops)), lines...)
	for _, op := range f.ops {
		if op.Verb == rc.VInherit {
			now = append(now, now[op.Sock])
		}
		s := &now[op.Sock]
		switch {
		case hasAddr(&op) && !fits(s.Family, op.Addr.Addr()):
			return nil, false
		case op.Verb == rc.VSet && op.Field == rc.SetOpt:
			op.On = !s.Opts.Has(op.Opts)
			s.Opts ^= op.Opts
		case op.Verb == rc.VSet && op.Field == rc.SetUID:
			if s.UID == op.UID {
				op.UID = 0
			}
			s.UID = op.UID
		case op.Verb == rc.VSet:
			if s.Dev == op.Dev {
				return nil, false
			}
			s.Dev = op.Dev
		}
		ops = append(ops, op)
	}
	return ops, true
}
