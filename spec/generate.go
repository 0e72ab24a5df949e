package spec

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// tcpGenerator makes TCP histories. Each history uses a part of the world only,
// picked at its start: a few values that meet often find more than all of them
// that meet rarely.
type tcpGenerator struct {
	world *World

	families []reusecheck.Family
	addrs    []netip.Addr
	ports    []uint16
	auto     reusecheck.PortRange
	chance   [4]int // of each option, in quarters
	uids     []uint32
	devs     []reusecheck.Dev
	cpus     []reusecheck.CPU // empty in a history without processors
	drawn    int              // from 1 to 4, for what takes no choice of its own
	verbs    []reusecheck.Verb
	fields   []reusecheck.Field
	next     reusecheck.ID
	pick     []int         // scratch: candidates of the step at hand
	last     reusecheck.Op // the last socket line, where the world has twins
	twin     reusecheck.ID // the last of them
	at       netip.Addr    // where a bind was last asked
}

func newTCPGenerator(w *World) Generator { return &tcpGenerator{world: w} }

var tcpOptions = [...]reusecheck.Opt{reusecheck.ReuseAddr, reusecheck.ReusePort, reusecheck.V6Only, reusecheck.NoPort}

// some picks between 1 and most members of all.
func some[T any](src Source, dst, all []T, most int) []T {
	dst = append(dst[:0], all...)
	n := 1 + src.Intn(min(most, len(all)))
	for i := range n {
		j := i + src.Intn(len(dst)-i)
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst[:n]
}

// always are the verbs that no history does without.
func always(v reusecheck.Verb) bool { return v == reusecheck.VBind }

func (g *tcpGenerator) Start(src Source) reusecheck.Config {
	w := g.world
	g.next, g.last, g.twin, g.at = 0, reusecheck.Op{}, -1, netip.Addr{}
	g.families = some(src, g.families, w.Families, len(w.Families))
	g.addrs = some(src, g.addrs, w.Addrs, 4)
	for _, f := range g.families { // at least one address for each family
		if !containsFit(g.addrs, f) {
			for _, a := range w.Addrs {
				if fits(f, a) {
					g.addrs = append(g.addrs, a)
					break
				}
			}
		}
	}
	g.ports = g.ports[:0]
	g.ports = append(g.ports, w.Ports[0])
	if len(w.Ports) > 1 && src.Intn(4) == 0 {
		g.ports = append(g.ports, w.Ports[1:]...)
	}
	g.auto = reusecheck.PortRange{Lo: w.Ports[0], Hi: w.Ports[0] + uint16(src.Intn(4))}
	g.cpus, g.drawn = nil, g.auto.Size()
	if src.Intn(2) == 0 {
		if g.drawn == 4 {
			g.cpus = w.CPUs
		}
		g.auto.Hi = g.auto.Lo // one port: what one step takes, the next one meets
	}
	for i, o := range tcpOptions {
		g.chance[i] = 0
		if w.Options.Has(o) {
			g.chance[i] = src.Intn(5)
		}
	}
	g.uids = some(src, g.uids, w.UIDs, len(w.UIDs))
	g.devs = some(src, g.devs, w.Devs, 3)
	if src.Intn(2) == 0 {
		g.devs = append(g.devs[:0], reusecheck.NoDev)
	}
	g.verbs = g.verbs[:0]
	for v := reusecheck.VBind; v <= reusecheck.VExpire; v++ {
		if w.Verbs[v] && (always(v) || src.Intn(3) > 0) {
			g.verbs = append(g.verbs, v)
		}
	}
	g.fields = g.fields[:0]
	for f := reusecheck.SetOpt; f <= reusecheck.SetDev; f++ {
		if w.Fields[f] {
			g.fields = append(g.fields, f)
		}
	}
	cfg := reusecheck.Config{System: reusecheck.TCP, Ports: g.auto}
	if len(w.Sysctls) > 0 && src.Intn(4) == 0 {
		cfg.Sysctl = w.Sysctls
	}
	return cfg
}

func containsFit(as []netip.Addr, f reusecheck.Family) bool {
	for _, a := range as {
		if fits(f, a) {
			return true
		}
	}
	return false
}

func (g *tcpGenerator) Verbs() []reusecheck.Verb { return g.verbs }

// weight is how often a verb is tried against the others.
func weight(v reusecheck.Verb) int {
	switch v {
	case reusecheck.VBind:
		return 8
	case reusecheck.VConnect: // seldom possible: it needs a listener of its own
		return 12
	case reusecheck.VListen, reusecheck.VInherit:
		return 4
	case reusecheck.VClose, reusecheck.VTimeWait, reusecheck.VSet:
		return 2
	}
	return 1
}

func (g *tcpGenerator) Next(src Source, live []reusecheck.Socket) reusecheck.Op {
	idle, named := 0, 0
	for i := range live {
		if live[i].ID >= 0 && live[i].State != reusecheck.TimeWait {
			named++
			if !live[i].Owner() && live[i].State == reusecheck.Idle {
				idle++
			}
		}
	}
	for range 8 {
		if idle == 0 && (named < 2 || named < g.world.Sockets && src.Intn(3) > 0) {
			return g.socket(src)
		}
		total := 0
		for _, v := range g.verbs {
			total += weight(v)
		}
		n := src.Intn(total)
		for _, v := range g.verbs {
			if n -= weight(v); n < 0 {
				if op, ok := g.Of(v, src, live); ok {
					return op
				}
				break
			}
		}
	}
	if named < g.world.Sockets || idle == 0 {
		return g.socket(src)
	}
	op, _ := g.Of(reusecheck.VBind, src, live)
	return op
}

func (g *tcpGenerator) socket(src Source) reusecheck.Op {
	if g.world.Twins && g.last.Verb == reusecheck.VSocket && src.Intn(2) == 0 {
		return g.twinOf(src, g.last)
	}
	op := reusecheck.NewSocket(g.next, g.families[src.Intn(len(g.families))], 0)
	g.next++
	for i, o := range tcpOptions {
		if src.Intn(4) < g.chance[i] && (o != reusecheck.V6Only || op.Family.Is6()) {
			op.Opts |= o
		}
	}
	op.UID = g.uids[src.Intn(len(g.uids))]
	op.Dev = g.devs[src.Intn(len(g.devs))]
	op.CPU = g.processor(op.Sock, 0)
	g.last = op
	return op
}

// processor is the processor of the socket with an ID, not one of the first skip.
// It takes no choice of the source: a world has the same histories with
// processors and without, and the few that have them are the same but for them.
func (g *tcpGenerator) processor(id reusecheck.ID, skip int) reusecheck.CPU {
	if len(g.cpus) <= skip {
		return reusecheck.NoCPU
	}
	return g.cpus[skip+int(id)%(len(g.cpus)-skip)]
}

// twinOf is one more socket like op but for one attribute.
func (g *tcpGenerator) twinOf(src Source, op reusecheck.Op) reusecheck.Op {
	op.Sock, g.twin = g.next, g.next
	g.next++
	switch src.Intn(4) {
	case 0:
		op.UID = g.uids[src.Intn(len(g.uids))]
	case 1:
		op.Dev = g.devs[src.Intn(len(g.devs))]
	default:
		o := tcpOptions[src.Intn(len(tcpOptions))]
		if g.world.Options.Has(o) && (o != reusecheck.V6Only || op.Family.Is6()) {
			op.Opts ^= o
		}
	}
	g.last = op
	return op
}

// choose picks one of the named live sockets that suit, or now and then (one
// time in sixteen) any other, so that refusals by state are seen too.
func (g *tcpGenerator) choose(src Source, live []reusecheck.Socket, any bool, suits func(*reusecheck.Socket) bool) *reusecheck.Socket {
	g.pick = g.pick[:0]
	if any && src.Intn(16) == 0 {
		suits = func(*reusecheck.Socket) bool { return true }
	}
	for i := range live {
		if live[i].ID >= 0 && (suits(&live[i]) && (!any || live[i].State != reusecheck.TimeWait)) {
			g.pick = append(g.pick, i)
		}
	}
	if len(g.pick) == 0 {
		return nil
	}
	return &live[g.pick[src.Intn(len(g.pick))]]
}

func unbound(s *reusecheck.Socket) bool   { return s.State == reusecheck.Idle && !s.Owner() }
func idle(s *reusecheck.Socket) bool      { return s.State == reusecheck.Idle }
func listening(s *reusecheck.Socket) bool { return s.State == reusecheck.Listening }
func connected(s *reusecheck.Socket) bool { return s.State == reusecheck.Connected }
func timeWait(s *reusecheck.Socket) bool  { return s.State == reusecheck.TimeWait }
func here(s *reusecheck.Socket) bool      { return s.State != reusecheck.TimeWait }
func busy(s *reusecheck.Socket) bool      { return listening(s) || connected(s) }
func bound(s *reusecheck.Socket) bool     { return idle(s) && s.Owner() }

func (g *tcpGenerator) Of(v reusecheck.Verb, src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	one := func(any bool, suits func(*reusecheck.Socket) bool, op func(reusecheck.ID) reusecheck.Op) (reusecheck.Op, bool) {
		if s := g.choose(src, live, any, suits); s != nil {
			return op(s.ID), true
		}
		return reusecheck.Op{}, false
	}
	switch v {
	case reusecheck.VSocket:
		return g.socket(src), true
	case reusecheck.VBind:
		return g.bind(src, live)
	case reusecheck.VListen:
		return one(true, bound, reusecheck.Listen)
	case reusecheck.VConnect:
		return g.connect(src, live)
	case reusecheck.VInherit:
		return g.inherit(src, live)
	case reusecheck.VSet:
		return g.set(src, live)
	case reusecheck.VShutdown:
		return one(true, busy, reusecheck.Shutdown)
	case reusecheck.VDisconnect:
		return one(true, busy, reusecheck.Disconnect)
	case reusecheck.VClose:
		return one(false, here, reusecheck.Close)
	case reusecheck.VTimeWait:
		return one(false, connected, reusecheck.LeaveTimeWait)
	case reusecheck.VExpire:
		return one(false, timeWait, reusecheck.Expire)
	}
	return reusecheck.Op{}, false
}

func (g *tcpGenerator) bind(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	s := g.choose(src, live, true, unbound)
	if s == nil {
		return reusecheck.Op{}, false
	}
	g.pick = g.pick[:0]
	for i, a := range g.addrs {
		if fits(s.Family, a) {
			g.pick = append(g.pick, i)
		}
	}
	if len(g.pick) == 0 { // the socket is of a family that this history has no address of
		return reusecheck.Op{}, false
	}
	port := g.ports[src.Intn(len(g.ports))]
	// A no-port socket is only of interest with port 0.
	if g.world.AutoPorts && src.Intn(6) == 0 || s.Opts.Has(reusecheck.NoPort) && src.Intn(4) > 0 {
		port = 0
	}
	at := g.addrs[g.pick[src.Intn(len(g.pick))]]
	if s.ID == g.twin && g.at.IsValid() && fits(s.Family, g.at) {
		at = g.at
	}
	g.at = at
	return reusecheck.Bind(s.ID, netip.AddrPortFrom(at, port)), true
}

// nowhere is a port that nobody listens on and no range contains.
const nowhere = 9

var (
	loop4      = netip.MustParseAddr("127.0.0.1")
	loop4b     = netip.MustParseAddr("127.0.0.2")
	loop6      = netip.MustParseAddr("::1")
	loopMapped = netip.MustParseAddr("::ffff:127.0.0.1")
)

func (g *tcpGenerator) connect(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	s := g.choose(src, live, true, idle)
	if s == nil {
		return reusecheck.Op{}, false
	}
	id, family := s.ID, s.Family
	if src.Intn(12) == 0 {
		if src.Intn(3) > 0 {
			return g.toItself(src, s)
		}
		to := loop4
		if family.Is6() {
			to = loop6
		}
		return reusecheck.Connect(id, netip.AddrPortFrom(to, nowhere)), true
	}
	l := g.choose(src, live, false, listening)
	if l == nil || !g.alone(live, l) {
		return reusecheck.Op{}, false
	}
	to, ok := destination(src, l, family)
	if !ok {
		return reusecheck.Op{}, false
	}
	op := reusecheck.Connect(id, netip.AddrPortFrom(to, l.Local.Port()))
	op.Unaccepted = g.world.Unaccepted && src.Intn(8) == 0
	return op, true
}

// toItself connects a socket to its own address and port, or, where the port is yet
// to be picked, to one that may be.
func (g *tcpGenerator) toItself(src Source, s *reusecheck.Socket) (reusecheck.Op, bool) {
	to, ok := destination(src, s, s.Family)
	port := s.Local.Port()
	if port == 0 {
		port = g.auto.Lo
	}
	return reusecheck.Connect(s.ID, netip.AddrPortFrom(to, port)), ok
}

// alone reports whether l is the only listener of its port: the nameless end of
// a connection takes after the listener that took it, so there must be no doubt.
func (g *tcpGenerator) alone(live []reusecheck.Socket, l *reusecheck.Socket) bool {
	for i := range live {
		if listening(&live[i]) && live[i].ID != l.ID && live[i].Local.Port() == l.Local.Port() {
			return false
		}
	}
	return true
}

// destination is an address that reaches what is bound like l from a socket of the
// given family.
func destination(src Source, l *reusecheck.Socket, from reusecheck.Family) (netip.Addr, bool) {
	a := l.Local.Addr()
	switch {
	case a == netip.IPv6Unspecified():
		switch {
		case from.Is6() && (l.Opts.Has(reusecheck.V6Only) || src.Intn(2) == 0):
			return loop6, true
		case l.Opts.Has(reusecheck.V6Only):
			return a, false
		case from.Is6():
			return loopMapped, true
		}
		return loop4, true
	case a.Unmap().IsUnspecified():
		a = loop4
		if src.Intn(4) == 0 {
			a = loop4b
		}
	}
	a = a.Unmap()
	switch {
	case from.Is6() == a.Is6():
		return a, true
	case from.Is6():
		return netip.AddrFrom16(a.As16()), true
	}
	return a, false
}

func (g *tcpGenerator) inherit(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	l := g.choose(src, live, false, listening)
	if l == nil || !g.world.Rivals && !g.alone(live, l) {
		return reusecheck.Op{}, false
	}
	from := l.Family
	if l.Local.Addr() == netip.IPv6Unspecified() && src.Intn(2) == 0 {
		from ^= reusecheck.TCP4 ^ reusecheck.TCP6 // a connection over IPv4
	}
	to, ok := destination(src, l, from)
	if !ok {
		return reusecheck.Op{}, false
	}
	port := uint16(0)
	if g.world.OtherPort && src.Intn(4) == 0 {
		// The port next to the listener's: a history's other steps meet it.
		port = g.ports[len(g.ports)-1]
		if port == l.Local.Port() {
			port = l.Local.Port() ^ 1
		}
	}
	op := reusecheck.InheritOn(l.ID, g.next, netip.AddrPortFrom(to.Unmap(), port), g.processor(g.next, 1))
	g.next++
	return op, true
}

func (g *tcpGenerator) set(src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	s := g.choose(src, live, false, here)
	if s == nil || len(g.fields) == 0 {
		return reusecheck.Op{}, false
	}
	switch g.fields[src.Intn(len(g.fields))] {
	case reusecheck.SetUID:
		uid := g.uids[src.Intn(len(g.uids))]
		if len(g.cpus) > 0 && (s.ID+g.next)%2 == 0 {
			return reusecheck.SetProcessor(s.ID, g.processor(g.next, 0)), true
		}
		return reusecheck.SetOwner(s.ID, uid), true
	case reusecheck.SetDev:
		return reusecheck.SetDevice(s.ID, g.devs[src.Intn(len(g.devs))]), true
	}
	o := tcpOptions[src.Intn(2)]
	if g.world.Options.Has(reusecheck.V6Only) && s.Family.Is6() && src.Intn(8) == 0 {
		o = reusecheck.V6Only
	}
	if !g.world.Options.Has(o) {
		return reusecheck.Op{}, false
	}
	return reusecheck.SetOption(s.ID, o, !s.Opts.Has(o)), true
}
