package explain

import (
	"fmt"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// request tells of a bind or a listen: who holds the port, who was looked at, who decided.
func (w *teller) request() {
	op, got := &w.o.Op, &w.o.Got
	b := w.o.Socket(op.Sock)
	if b == nil {
		w.say("%s is not there.", w.t.Name(op.Sock))
		w.out.Why = "it is not there"
		return
	}
	name, addr, port := w.t.Name(op.Sock), op.Addr.Addr(), portOf(w.o.Before, *op)
	if op.Verb == rc.VListen {
		addr = b.Local.Addr()
	}
	w.asks(b, name, addr, port)
	if got.Kind == rc.Failed && got.Reason >= rc.RefuseState && got.Reason <= rc.RefuseGone {
		w.unfit(b, name)
		return
	}
	switch {
	case port == 0 && op.Verb == rc.VBind && b.Opts.Has(rc.NoPort) && got.Kind == rc.OK:
		w.say("With no-port it takes the address only, so nobody is asked. The port comes with connect or listen.")
		return
	case port == 0:
		w.automatic(b, name, addr)
		return
	case b.State == rc.Listening:
		w.say("It listens already, so only the backlog changes.")
		return
	}
	w.out.Port = port
	owners := w.owners(port, op.Sock)
	if len(owners) == 0 {
		switch {
		case got.Kind == rc.Failed:
			w.haunted()
		case op.Verb == rc.VListen:
			w.say("%s is the port's only owner, so nobody is in its way.", name)
		default:
			w.say("Nobody has the port, so nobody is asked.")
		}
		w.cacheAfter()
		return
	}
	w.holders(owners, port)
	w.look(owners, b, name)
	if got.Kind == rc.Failed {
		w.refused(b, name, addr)
	} else {
		w.granted(owners, b, addr, port)
	}
	w.cacheAfter()
}

// haunted tells of a refusal that no owner of the namespace accounts for: a purge
// that left something behind is the only source of one.
func (w *teller) haunted() {
	who := "what was left of a namespace that is gone"
	if d := w.o.Got.Decider; d != rc.NoID {
		who = w.t.Name(d) + ", left by a namespace that is gone,"
	}
	w.out.Why = who + " is taken for an owner of the port"
	w.say("Nobody in this namespace has the port, and yet it is refused: %s.", w.out.Why)
}

// unfit tells of a socket or an address that no owner of the port could help.
func (w *teller) unfit(b *rc.Socket, name string) {
	w.out.Why = rule(w.o.Got.Reason, b, name, nil, "")
	if w.o.Got.Path == rc.PathNone && w.o.Got.Before == w.o.Got.After {
		w.say("No owner is asked: %s.", w.out.Why)
		return
	}
	w.say("The port is asked for and granted, and then it fails all the same: %s.", w.out.Why)
	w.cacheAfter()
}

func (w *teller) asks(b *rc.Socket, name string, addr netip.Addr, port uint16) {
	what := fmt.Sprintf("port %d", port)
	if port == 0 {
		what = fmt.Sprintf("any port of %s", w.rangeOf(b))
	}
	switch {
	case w.o.Op.Verb == rc.VListen && b.Family.IsUDP():
		w.say("%s is to listen, which only TCP sockets can.", name)
	case w.o.Op.Verb == rc.VListen && port != 0 && b.State == rc.Idle:
		w.say("%s is to listen, so its port %d is asked for a second time, now by a listener.", name, port)
	case w.o.Op.Verb == rc.VListen:
		w.say("%s is to listen.", name)
	default:
		w.say("%s asks for %s on %s.", name, what, where(b.Family, addr, b.Opts))
	}
}

func (w *teller) rangeOf(b *rc.Socket) rc.PortRange {
	switch {
	case b.Range.Size() > 0:
		return b.Range
	case w.t.Config.Ports.Size() > 0:
		return w.t.Config.Ports
	}
	return rc.DefaultPorts
}

// owners are the live sockets that hold a port, without the one that asks.
func (w *teller) owners(port uint16, self rc.ID) []*rc.Socket {
	var os []*rc.Socket
	for i := range w.o.Before {
		if s := &w.o.Before[i]; s.Local.Port() == port && s.ID != self && w.netOf(s.ID) == w.netOf(self) {
			os = append(os, s)
			w.out.Owners = append(w.out.Owners, w.t.Name(s.ID))
		}
	}
	return os
}

// netOf is the namespace that a socket is in, NoID for the trace's own.
func (w *teller) netOf(id rc.ID) rc.ID {
	if id.IsOtherEnd() {
		id = id.OtherEnd() // a connection stays in its namespace
	}
	if net, ok := w.nets[id]; ok {
		return net
	}
	return rc.NoID
}

// netsOf notes the sockets that are in other namespaces than the trace's own.
func netsOf(t *rc.Trace) map[rc.ID]rc.ID {
	nets := map[rc.ID]rc.ID{}
	for i := range t.Steps {
		op := &t.Steps[i].Op
		if op.Verb == rc.VSocket && op.HasNet {
			nets[op.Sock] = op.Net
		}
		if net, ok := nets[op.Sock]; ok && op.Verb == rc.VInherit {
			nets[op.Child] = net
		}
	}
	return nets
}

// holders names the owners of a port, and their address buckets where that says more.
func (w *teller) holders(owners []*rc.Socket, port uint16) {
	var s []string
	for _, o := range owners {
		s = append(s, fmt.Sprintf("%s (%s)", w.t.Name(o.ID), about(o)))
	}
	w.say("Port %d is held by %s.", port, listed(s, most))
	if len(w.layout) < 2 {
		return
	}
	var bs []string
	for _, b := range w.layout {
		bs = append(bs, fmt.Sprintf("%s (%s)", b.Addr.Unmap(), listed(w.names(b.Owners), most)))
	}
	w.say("They hang in %s: %s.", plural(len(bs), "address bucket"), listed(bs, most))
}

// look says who was looked at, who was not, and by which cache.
func (w *teller) look(owners []*rc.Socket, b *rc.Socket, name string) {
	got := &w.o.Got
	looked := slices.DeleteFunc(slices.Clone(w.looked), func(id rc.ID) bool { return id == b.ID })
	w.out.Looked = w.names(looked)
	for _, o := range owners {
		if !slices.Contains(looked, o.ID) {
			w.out.Skipped = append(w.out.Skipped, w.t.Name(o.ID))
		}
	}
	if b.Family.IsUDP() {
		w.lookUDP(name)
		return
	}
	cache := cacheText(got.Before)
	switch {
	case got.Path == rc.PathFast:
		w.say("The port's cache answers, and %s: %s.", w.skippedAll(), w.hit(name))
	case len(looked) == 0:
		w.say("The cache (%s) does not let %s in, but the kernel sees nobody in a bucket that %s could meet, so nobody is looked at.", cache, name, name)
	default:
		s := fmt.Sprintf("The cache (%s) does not let %s in, so the kernel looks at the owners: at %s", cache, name, listed(w.out.Looked, most))
		switch n := len(w.out.Skipped); {
		case n == 0:
		case got.Kind == rc.Failed:
			s += fmt.Sprintf(", and not at %s", listed(w.out.Skipped, most))
		default:
			s += fmt.Sprintf("; not at %s, in the bucket of another address", listed(w.out.Skipped, most))
		}
		w.say("%s.", s)
	}
}

func (w *teller) skippedAll() string {
	if len(w.out.Skipped) == 1 {
		return w.out.Skipped[0] + " is not looked at"
	}
	return "no owner is looked at"
}

// hit is a hit of the cache in words.
func (w *teller) hit(name string) string {
	c := w.o.Got.Before
	switch w.o.Got.Reason {
	case rc.AdmitReuseAddr:
		return fmt.Sprintf("fastreuse is 1, so every owner had reuseaddr and did not listen when it came, and %s has reuseaddr too", name)
	case rc.AdmitAny:
		return fmt.Sprintf("fastreuseport is ANY, so every owner has reuseport and user %d, as %s has", c.UID, name)
	case rc.AdmitStrict:
		return fmt.Sprintf("fastreuseport is STRICT, so a reuseport socket of user %d on %s was let in before, and %s is taken for one like it",
			c.UID, c.Addr, name)
	}
	return w.o.Got.Reason.String()
}

// lookUDP: UDP has no cache. Its list ends at the first owner that has a say.
func (w *teller) lookUDP(name string) {
	at := listed(w.out.Looked, most)
	switch {
	case w.o.Got.Path == rc.PathFast:
		w.say("The port has more than ten sockets, so the kernel looks only at those of the same address and of the wildcard: at %s.", at)
	default:
		w.say("The kernel walks through the port's sockets, the newest first: %s.", at)
	}
	if d := w.o.Got.Decider; w.o.Got.Kind == rc.OK && d != rc.NoID {
		w.say("It stops at %s, the first that overlaps and has a say: both have reuseport and one user, so %s may share, and whoever comes after is not asked.",
			w.t.Name(d), name)
	}
}

// refused says who decided and by which rule.
func (w *teller) refused(b *rc.Socket, name string, addr netip.Addr) {
	got := &w.o.Got
	o := w.o.Socket(got.Decider)
	if o == nil {
		w.out.Why = rule(got.Reason, b, name, nil, "an owner")
		w.say("It is refused: %s.", w.out.Why)
		return
	}
	oName := w.t.Name(o.ID)
	w.out.Why = fmt.Sprintf("%s, and %s", meet(name, b, addr, oName, o), rule(got.Reason, b, name, o, oName))
	w.say("%s decides: %s.", oName, w.out.Why)
	switch got.Reason {
	case rc.RefuseNotShared, rc.RefuseNoReuseAddr, rc.RefuseNoReusePort, rc.RefuseListening, rc.RefuseUID:
		if w.first("rule") {
			if b.Family.IsUDP() {
				w.say("%s", theUDPRule)
			} else {
				w.say("%s", theRule)
			}
		}
	}
}

// granted says for each owner why it is not in the way, as the oracle has it.
func (w *teller) granted(owners []*rc.Socket, b *rc.Socket, addr netip.Addr, port uint16) {
	if !w.o.Verdict.Agrees || w.o.Verdict.Open != "" {
		return
	}
	var order []string
	who := map[string][]string{}
	for _, o := range owners {
		if b.Family.IsUDP() && o.ID == w.o.Got.Decider {
			continue // said where the walk ended
		}
		why := sharing(*b, rc.Canonical(b.Family, addr), port, o)
		if who[why] == nil {
			order = append(order, why)
		}
		who[why] = append(who[why], w.t.Name(o.ID))
	}
	for _, why := range order {
		if why != "" {
			w.say(why+".", listed(who[why], most))
		}
	}
}

// sharing is why binder and owner may have one port, with %s for the owner. It is
// found by asking the oracle again with a binder that lacks an option or the
// device, and "" where they may not.
func sharing(b rc.Socket, addr netip.Addr, port uint16, o *rc.Socket) string {
	stands := func(without rc.Opt, dev bool) bool {
		x := b
		x.Opts &^= without
		if !dev {
			x.Dev = rc.NoDev
		}
		return len(oracle.Conflicts([]rc.Socket{*o}, &oracle.Request{Binder: &x, Addr: addr, Port: port}, nil)) > 0
	}
	const both = rc.ReuseAddr | rc.ReusePort
	idle := ""
	if !b.Family.IsUDP() && o.State != rc.TimeWait {
		idle = ", and no listener is passed over"
	}
	byAddr, byPort := !stands(rc.ReusePort, true), !stands(rc.ReuseAddr, true)
	switch {
	case stands(0, true):
		return ""
	case !stands(both, true) && stands(both, false):
		return "No conflict with %s: they are on different devices"
	case !stands(both, true):
		return "No conflict with %s: the addresses do not overlap"
	case byAddr && byPort:
		return "The port may be shared with %s: both have reuseaddr" + idle + ", and reuseport would do too"
	case byAddr:
		return "The port may be shared with %s: both have reuseaddr" + idle
	case byPort && o.State == rc.TimeWait:
		return "The port may be shared with %s: both have reuseport, and what is in TIME_WAIT has no user any more"
	case byPort:
		return "The port may be shared with %s: both have reuseport and belong to one user"
	}
	return ""
}

// automatic tells of a port that the kernel was to pick.
func (w *teller) automatic(b *rc.Socket, name string, addr netip.Addr) {
	got := &w.o.Got
	if got.Kind == rc.OK {
		w.say("The kernel picks %d.", got.Port)
		if got.Reason == rc.AdmitScan && got.Visited > 0 {
			w.say("It looked at %s on the way; none that overlaps may be on a port that is picked.", plural(got.Visited, "owner"))
		}
		w.cacheAfter()
		return
	}
	w.out.Why = "no port of the range is free"
	if o := w.o.Socket(got.Decider); o != nil {
		oName := w.t.Name(o.ID)
		w.out.Port = o.Local.Port()
		w.out.Why = fmt.Sprintf("every port of the range is taken (port %d: %s)", o.Local.Port(), meet(name, b, addr, oName, o))
	}
	w.say("It is refused: %s, and an automatic port is shared with nobody whose address overlaps, whatever the options.", w.out.Why)
}

// cacheAfter says what the port's cache came to.
func (w *teller) cacheAfter() {
	got := &w.o.Got
	if !got.HasCache || got.Before.WithoutKey() == got.After.WithoutKey() || !got.After.Exists {
		return
	}
	if !got.Before.Exists {
		w.say("Its new bind bucket's cache says %s: %s.", cacheText(got.After), promise(got.After))
		return
	}
	w.say("The cache now says %s: %s.", cacheText(got.After), promise(got.After))
}
