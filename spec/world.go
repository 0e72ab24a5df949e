package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// World is the domain of a generator: few values, so that they collide.
type World struct {
	Families []reusecheck.Family
	Addrs    []netip.Addr
	Ports    []uint16
	Options  reusecheck.Opt
	UIDs     []uint32
	Devs     []reusecheck.Dev
	// CPUs are the processors that sockets ask for and connections and datagrams
	// arrive on, the first of them none; empty for a world without.
	CPUs    []reusecheck.CPU
	Verbs   map[reusecheck.Verb]bool
	Fields  map[reusecheck.Field]bool // what set may change
	Sockets int                       // at most so many live at once
	// AutoPorts allows binds to port 0, within a range of at most four ports.
	AutoPorts bool
	// OtherPort allows children on a port other than their listener's.
	OtherPort bool
	// Unaccepted allows connections that their listener leaves in its queue.
	Unaccepted bool
	// Rivals allows connections that more than one listener could take.
	Rivals bool
	// Twins makes every other socket the last one but for one attribute, and binds
	// it where the last one was bound: near twins are what a short cut that
	// compares too little takes for the same.
	Twins bool
	// Crowds are histories that begin with a port of many sockets, so that its
	// address slots are looked at.
	Crowds bool
	// Arrivals are datagrams on other devices than the loopback, which takes packet
	// sockets on a real kernel.
	Arrivals bool
	// Nets is how many namespaces may live beside the trace's own, Batch how
	// many of them may exit together.
	Nets, Batch int
	// Tables are the connection tables that namespaces are told to have, beside what
	// the settings say.
	Tables []reusecheck.ConnTable
	// Base is what every history of an exploration begins with; the sockets that it
	// makes stay as they are. Generators do without.
	Base []reusecheck.Op
	// Sysctls are the settings that a history may turn on.
	Sysctls []reusecheck.Sysctl
}

// Processors are the processors of a world, none of them first.
func (w *World) Processors() []reusecheck.CPU {
	if len(w.CPUs) == 0 {
		return []reusecheck.CPU{reusecheck.NoCPU}
	}
	return w.CPUs
}

// Core is the part of a world in which sockets do no more than bind to one named
// port and listen, at the wildcards and one other address of each family: the
// shortest histories, where little gets in the way.
func (w *World) Core() *World {
	c := *w
	c.Addrs = nil
	var has [2]bool
	for _, a := range w.Addrs {
		at := &has[flag(a.Is6())]
		if a.Is4In6() || !a.IsUnspecified() && *at {
			continue
		}
		*at = *at || !a.IsUnspecified()
		c.Addrs = append(c.Addrs, a)
	}
	c.Ports, c.Sysctls, c.AutoPorts, c.Twins, c.CPUs = w.Ports[:1], nil, false, true, nil
	c.Options &^= reusecheck.NoPort
	c.Verbs = map[reusecheck.Verb]bool{}
	for _, v := range []reusecheck.Verb{reusecheck.VBind, reusecheck.VListen} {
		c.Verbs[v] = w.Verbs[v]
	}
	return &c
}

func addrs(ss ...string) []netip.Addr {
	var as []netip.Addr
	for _, s := range ss {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

// TCPWorld is everything that a TCP trace can say, in small domains.
func TCPWorld() *World {
	return &World{
		Families: []reusecheck.Family{reusecheck.TCP4, reusecheck.TCP6},
		Addrs: addrs("127.0.0.1", "127.0.0.2", "0.0.0.0", "::", "::1", "fd00::1",
			"::ffff:127.0.0.1", "::ffff:0.0.0.0"),
		Ports:   []uint16{40000, 40001},
		Options: reusecheck.ReuseAddr | reusecheck.ReusePort | reusecheck.V6Only | reusecheck.NoPort,
		UIDs:    []uint32{0, 1001, 1002},
		Devs:    []reusecheck.Dev{reusecheck.NoDev, reusecheck.Dev1, reusecheck.Dev2, reusecheck.DevLo},
		CPUs:    []reusecheck.CPU{reusecheck.NoCPU, reusecheck.Processor(0), reusecheck.Processor(1)},
		Verbs: map[reusecheck.Verb]bool{
			reusecheck.VBind: true, reusecheck.VListen: true, reusecheck.VConnect: true,
			reusecheck.VInherit: true, reusecheck.VSet: true, reusecheck.VShutdown: true,
			reusecheck.VDisconnect: true, reusecheck.VClose: true, reusecheck.VTimeWait: true,
			reusecheck.VExpire: true,
		},
		Fields:    map[reusecheck.Field]bool{reusecheck.SetOpt: true, reusecheck.SetUID: true, reusecheck.SetDev: true},
		Sockets:   6,
		AutoPorts: true,
		OtherPort: true,
		Rivals:    true,

		Unaccepted: true,
		Sysctls:    []reusecheck.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}},
	}
}

// words are what can be taken out of a world by name, in the order in which
// they are listed to a person.
var words = []struct {
	name, doc string
	remove    func(*World)
}{
	{"listen", "no listening sockets", dropVerbs(reusecheck.VListen, reusecheck.VConnect, reusecheck.VInherit, reusecheck.VTimeWait, reusecheck.VExpire)},
	{"connect", "no active opens", dropVerbs(reusecheck.VConnect)},
	{"inherit", "no incoming connections", dropVerbs(reusecheck.VInherit)},
	{"timewait", "no TIME_WAIT sockets", dropVerbs(reusecheck.VTimeWait, reusecheck.VExpire)},
	{"expire", "TIME_WAIT sockets stay", dropVerbs(reusecheck.VExpire)},
	{"shutdown", "no shutdown", dropVerbs(reusecheck.VShutdown)},
	{"disconnect", "no disconnect", dropVerbs(reusecheck.VDisconnect)},
	{"close", "sockets stay open", dropVerbs(reusecheck.VClose)},
	{"set", "nothing changes after creation", dropVerbs(reusecheck.VSet)},
	{"dev", "no devices", func(w *World) { w.Devs = []reusecheck.Dev{reusecheck.NoDev}; delete(w.Fields, reusecheck.SetDev) }},
	{"uid", "one user", func(w *World) { w.UIDs = w.UIDs[:1]; delete(w.Fields, reusecheck.SetUID) }},
	{"cpu", "no processors", func(w *World) { w.CPUs = nil }},
	{"v4", "no IPv4 sockets", dropFamily(false)},
	{"v6", "no IPv6 sockets", dropFamily(true)},
	{"mapped", "no v4-mapped addresses", dropAddrs(netip.Addr.Is4In6)},
	{"wildcard", "no wildcard addresses", dropAddrs(func(a netip.Addr) bool { return a.Unmap().IsUnspecified() })},
	{"v6only", "no v6only sockets", dropOption(reusecheck.V6Only)},
	{"reuseaddr", "no SO_REUSEADDR", dropOption(reusecheck.ReuseAddr)},
	{"reuseport", "no SO_REUSEPORT", dropOption(reusecheck.ReusePort)},
	{"no-port", "no IP_BIND_ADDRESS_NO_PORT", dropOption(reusecheck.NoPort)},
	{"auto", "no automatic ports by bind", func(w *World) { w.AutoPorts = false }},
	{"other-port", "children stay on their listener's port", func(w *World) { w.OtherPort = false }},
	{"unaccepted", "listeners accept at once", func(w *World) { w.Unaccepted = false }},
	{"rivals", "one listener for each connection", func(w *World) { w.Rivals = false }},
	{"sysctl", "all settings as shipped", func(w *World) { w.Sysctls = nil }},
	{"send", "no datagrams", dropVerbs(reusecheck.VSend)},
	{"arrival", "datagrams on the loopback only", func(w *World) { w.Arrivals = false }},
	{"crowd", "no port with more than ten sockets", func(w *World) { w.Crowds = false }},
	{"netns", "no namespace but the trace's own", func(w *World) { w.Nets = 0; dropVerbs(reusecheck.VNetns, reusecheck.VExit)(w) }},
	{"table", "all namespaces have the connection table that the settings say", func(w *World) { w.Tables = nil }},
	{"batch", "namespaces exit one by one", func(w *World) { w.Batch = min(w.Batch, 1) }},
	{"ports", "one port only", func(w *World) { w.Ports = w.Ports[:1] }},
}

// Words lists what [World.Without] understands, with what each takes away.
func Words() (names, docs []string) {
	for _, w := range words {
		names = append(names, w.name)
		docs = append(docs, w.doc)
	}
	return names, docs
}

// Without takes parts out of a world by name.
func (w *World) Without(names ...string) error {
	for _, n := range names {
		i := slices.IndexFunc(words, func(c struct {
			name, doc string
			remove    func(*World)
		}) bool {
			return c.name == n
		})
		if i < 0 {
			known, _ := Words()
			return fmt.Errorf("a world has no part %q%s; take away any of %s", n, didYouMean(n, known), strings.Join(known, ", "))
		}
		words[i].remove(w)
	}
	if len(w.Families) == 0 || len(w.Addrs) == 0 {
		return fmt.Errorf("nothing is left of the world: %s together leave no socket or no address", strings.Join(names, ", "))
	}
	return nil
}

func dropVerbs(vs ...reusecheck.Verb) func(*World) {
	return func(w *World) {
		for _, v := range vs {
			delete(w.Verbs, v)
		}
	}
}

func dropFamily(six bool) func(*World) {
	return func(w *World) {
		w.Families = slices.DeleteFunc(w.Families, func(f reusecheck.Family) bool { return f.Is6() == six })
		dropAddrs(func(a netip.Addr) bool {
			return !slices.ContainsFunc(w.Families, func(f reusecheck.Family) bool { return fits(f, a) })
		})(w)
	}
}

func dropAddrs(drop func(netip.Addr) bool) func(*World) {
	return func(w *World) { w.Addrs = slices.DeleteFunc(w.Addrs, drop) }
}

func dropOption(o reusecheck.Opt) func(*World) { return func(w *World) { w.Options &^= o } }

// fits reports whether a socket of family f can be asked for address a.
func fits(f reusecheck.Family, a netip.Addr) bool { return f.Is6() == a.Is6() }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
