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
	cpus  []rc.CPU
	of    rc.Family // one of the trace's: the sockets are of its protocol
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
	found = r.first(out)
	return found, found || !r.over()
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
	g.cpus = cpus[:min(len(cpus), distinct(d, func(op *rc.Op) rc.CPU { return op.CPU }))]
	g.attrs = d.w[wAttrs] + 1
	g.spare = r.opts.MaxPairs / 2
	g.uids, g.devs, g.of = uids, ds, d.ops[0].Family
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
	for _, f := range []rc.Family{g.of.Of(one4), g.of.Of(one6)} {
		if f.Is6() && !six || !f.Is6() && !four {
			continue
		}
		for o := rc.Opt(0); o <= used; o++ {
			if !used.Has(o) || o.Has(rc.V6Only) && !f.Is6() {
				continue
			}
			for _, uid := range g.uids {
				for _, dev := range g.devs {
					for _, cpu := range g.cpus {
						op := rc.NewSocket(0, f, o)
						op.UID, op.Dev, op.CPU = uid, dev, cpu
						g.addLine(op)
					}
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
	for _, cpu := range g.cpus {
		if len(g.cpus) > 1 {
			g.sets = append(g.sets, rc.SetProcessor(0, cpu))
		}
	}
}
