package spec

import (
	"slices"

	"github.com/reusecheck/reusecheck"
)

// timeWaitGenerator makes histories of namespaces: in each of them sockets, pairs
// and TIME_WAIT sockets as TCP's generator makes them, and exits of one or more.
type timeWaitGenerator struct {
	tcpGenerator
	nets  []reusecheck.ID     // those that live
	where []reusecheck.ID     // the namespace of each socket by its ID, NoID for the trace's own
	part  []reusecheck.Socket // scratch: the sockets of one namespace
	batch []reusecheck.ID     // scratch
}

func newTimeWaitGenerator(w *World) Generator {
	return &timeWaitGenerator{tcpGenerator: tcpGenerator{world: w}}
}

func (g *timeWaitGenerator) Start(src Source) reusecheck.Config {
	cfg := g.tcpGenerator.Start(src)
	// What a small range shows of automatic ports is TCP's business.
	cfg.System, cfg.Ports = reusecheck.TimeWaitExit, reusecheck.PortRange{}
	g.verbs = g.verbs[:0]
	for v := reusecheck.VBind; v <= reusecheck.VExit; v++ {
		if g.world.Verbs[v] {
			g.verbs = append(g.verbs, v)
		}
	}
	g.nets, g.where = g.nets[:0], g.where[:0]
	return cfg
}

// timeWaitWeight is how often a verb is tried: what is seldom possible, and what
// is rare in a history of a few steps, more often.
func timeWaitWeight(v reusecheck.Verb) int {
	switch v {
	case reusecheck.VTimeWait:
		return 48
	case reusecheck.VInherit:
		return 24
	case reusecheck.VListen, reusecheck.VBind, reusecheck.VConnect:
		return 12
	case reusecheck.VExit, reusecheck.VExpire:
		return 2
	}
	return 1
}

func (g *timeWaitGenerator) Next(src Source, live []reusecheck.Socket) reusecheck.Op {
	if len(g.nets) == 0 && g.world.Nets > 0 {
		return g.netns()
	}
	net := g.somewhere(src)
	idle, named := 0, 0
	for _, s := range g.within(net, live) {
		if s.ID >= 0 && s.State != reusecheck.TimeWait {
			named++
			if unbound(&s) {
				idle++
			}
		}
	}
	// A listener, and now and then somebody who connects or wants its place.
	if named == 0 || idle == 0 && named < g.world.Sockets && src.Intn(4) == 0 {
		return g.socketIn(src, net)
	}
	total := 0
	for _, v := range g.verbs {
		total += timeWaitWeight(v)
	}
	for range 8 {
		n := src.Intn(total)
		for _, v := range g.verbs {
			if n -= timeWaitWeight(v); n < 0 {
				if op, ok := g.inside(v, src, net, live); ok {
					return op
				}
				break
			}
		}
	}
	return g.socketIn(src, net)
}

func (g *timeWaitGenerator) netns() reusecheck.Op {
	op := reusecheck.NewNetns(g.next)
	if n := len(g.world.Tables); n > 0 && g.drawn == 3 { // as with processors, without a choice of the source
		if i := int(g.next) % (n + 1); i < n {
			op.Table = g.world.Tables[i]
		}
	}
	g.place(g.next, reusecheck.NoID)
	g.nets = append(g.nets, g.next)
	g.next++
	return op
}

// place notes where a socket is.
func (g *timeWaitGenerator) place(id, net reusecheck.ID) {
	for len(g.where) <= int(id) {
		g.where = append(g.where, reusecheck.NoID)
	}
	g.where[id] = net
}

// somewhere picks a namespace; the trace's own, which never exits, now and then.
func (g *timeWaitGenerator) somewhere(src Source) reusecheck.ID {
	if len(g.nets) == 0 || src.Intn(8) == 0 {
		return reusecheck.NoID
	}
	return g.nets[src.Intn(len(g.nets))]
}

func (g *timeWaitGenerator) socketIn(src Source, net reusecheck.ID) reusecheck.Op {
	op := g.socket(src)
	g.place(op.Sock, net)
	if net != reusecheck.NoID {
		op.HasNet, op.Net = true, net
	}
	return op
}

// within are the sockets of one namespace.
func (g *timeWaitGenerator) within(net reusecheck.ID, live []reusecheck.Socket) []reusecheck.Socket {
	g.part = g.part[:0]
	for i := range live {
		id := live[i].ID
		if id.IsOtherEnd() {
			id = id.OtherEnd()
		}
		if int(id) < len(g.where) && g.where[id] == net {
			g.part = append(g.part, live[i])
		}
	}
	return g.part
}

func (g *timeWaitGenerator) Of(v reusecheck.Verb, src Source, live []reusecheck.Socket) (reusecheck.Op, bool) {
	return g.inside(v, src, g.somewhere(src), live)
}

// inside is an operation of one verb in one namespace.
func (g *timeWaitGenerator) inside(v reusecheck.Verb, src Source, net reusecheck.ID, live []reusecheck.Socket) (reusecheck.Op, bool) {
	switch v {
	case reusecheck.VSocket:
		return g.socketIn(src, net), true
	case reusecheck.VNetns:
		if len(g.nets) >= g.world.Nets {
			return reusecheck.Op{}, false
		}
		return g.netns(), true
	case reusecheck.VExit:
		return g.exit(src)
	}
	op, ok := g.tcpGenerator.Of(v, src, g.within(net, live))
	if ok && v == reusecheck.VInherit {
		g.place(op.Child, net)
	}
	return op, ok
}

// exit tears down some of the namespaces that live: mostly one.
func (g *timeWaitGenerator) exit(src Source) (reusecheck.Op, bool) {
	if len(g.nets) == 0 {
		return reusecheck.Op{}, false
	}
	g.batch = append(g.batch[:0], g.nets...)
	n := 1
	if most := min(len(g.nets), g.world.Batch); most > 1 && src.Intn(2) == 0 {
		n = 2 + src.Intn(most-1)
	}
	for i := range n {
		j := i + src.Intn(len(g.batch)-i)
		g.batch[i], g.batch[j] = g.batch[j], g.batch[i]
	}
	batch := slices.Clone(g.batch[:n])
	slices.Sort(batch)
	g.nets = slices.DeleteFunc(g.nets, func(id reusecheck.ID) bool { return slices.Contains(batch, id) })
	return reusecheck.Exit(batch...), true
}
