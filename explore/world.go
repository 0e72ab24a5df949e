package explore

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// word is one word of a world's description: what it adds.
type word struct {
	name, doc string
	add       func(*spec.World)
}

var (
	any4   = netip.IPv4Unspecified()
	loopA  = netip.MustParseAddr("127.0.0.1")
	any6   = netip.IPv6Unspecified()
	loop6  = netip.IPv6Loopback()
	anyM   = netip.MustParseAddr("::ffff:0.0.0.0")
	loopMA = netip.MustParseAddr("::ffff:127.0.0.1")
)

// named are worlds that are made of other words.
var named = []struct{ name, words, doc string }{
	{"v4", "tcp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 reuseaddr reuseport listen close", "IPv4 sockets on the wildcard and two addresses"},
	{"mixed", "tcp4 tcp6 addr=0.0.0.0,127.0.0.1,::,::1,::ffff:0.0.0.0,::ffff:127.0.0.1 v6only reuseaddr reuseport listen close",
		"both families, v4-mapped addresses, v6only"},
	{"devices", "v4 dev=2 set-dev", "v4 with two devices that may change"},
	{"users", "v4 uid=2 set-uid", "v4 with two users, and sockets that change hands"},
	{"connections", "tcp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 reuseaddr reuseport listen close connect inherit timewait expire shutdown disconnect auto",
		"connections in and out, TIME_WAIT, automatic ports"},
	{"udp", "udp4 udp6 addr=0.0.0.0,127.0.0.1,::,::1 v6only reuseaddr reuseport close send", "UDP sockets of both families, and datagrams"},
	{"tuple", "udp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 reuseaddr reuseport connect disconnect close send",
		"UDP sockets that connect, connect again and disconnect, and datagrams"},
	{"exits", "tcp4 tcp6 addr=127.0.0.1,::1 listen inherit timewait expire close nets=2", "namespaces with TIME_WAIT sockets that exit"},
}

var worldWords = []word{
	{"tcp4", "IPv4 sockets", func(w *spec.World) { w.Families = with(w.Families, rc.TCP4) }},
	{"tcp6", "IPv6 sockets", func(w *spec.World) { w.Families = with(w.Families, rc.TCP6) }},
	{"mapped", "the v4-mapped addresses ::ffff:0.0.0.0 and ::ffff:127.0.0.1", func(w *spec.World) { w.Addrs = with(w.Addrs, anyM, loopMA) }},
	{"udp4", "IPv4 sockets of system udp", func(w *spec.World) { w.Families = with(w.Families, rc.UDP4) }},
	{"udp6", "IPv6 sockets of system udp", func(w *spec.World) { w.Families = with(w.Families, rc.UDP6) }},
	{"reuseaddr", "SO_REUSEADDR", option(rc.ReuseAddr)},
	{"reuseport", "SO_REUSEPORT", option(rc.ReusePort)},
	{"v6only", "IPV6_V6ONLY", option(rc.V6Only)},
	{"no-port", "IP_BIND_ADDRESS_NO_PORT", option(rc.NoPort)},
	{"listen", "listening sockets", step(rc.VListen)},
	{"close", "sockets close", step(rc.VClose)},
	{"shutdown", "shutdown of listeners and connections", step(rc.VShutdown)},
	{"disconnect", "connect to AF_UNSPEC", step(rc.VDisconnect)},
	{"connect", "active opens", step(rc.VConnect)},
	{"inherit", "incoming connections", step(rc.VInherit)},
	{"timewait", "connections leave TIME_WAIT sockets", step(rc.VTimeWait)},
	{"expire", "TIME_WAIT sockets end", step(rc.VExpire)},
	{"send", "datagrams", step(rc.VSend)},
	{"arrivals", "datagrams on other devices than the loopback", func(w *spec.World) { w.Arrivals = true }},
	{"crowd", "eleven udp4 sockets that stay, on addresses of their own: the port's address slots are looked at", func(w *spec.World) {
		stay(w, 11, 0, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(10 + i)}) })
	}},
	{"child-tables", "namespaces with a connection table of their own each", func(w *spec.World) {
		w.Sysctls = []rc.Sysctl{{Name: "net.ipv4.tcp_child_ehash_entries", Value: "64"}}
	}},
	{"mixed-tables", "namespaces with a connection table of their own beside such as share one", func(w *spec.World) { w.Tables = []rc.ConnTable{rc.OwnTable} }},
	{"set-opt", "reuseaddr and reuseport change on live sockets", field(rc.SetOpt)},
	{"set-uid", "live sockets change hands", field(rc.SetUID)},
	{"set-dev", "live sockets change their device", field(rc.SetDev)},
	{"set-cpu", "live sockets ask for another processor", field(rc.SetCPU)},
	{"auto", "automatic ports, from a range that is the ports in play", func(w *spec.World) { w.AutoPorts = true }},
	{"other-port", "children on a port other than their listener's", func(w *spec.World) { w.OtherPort = true }},
	{"rivals", "connections that more than one listener could take", func(w *spec.World) { w.Rivals = true }},
	{"no-early-demux", "the setting udp_early_demux is off", func(w *spec.World) {
		w.Sysctls = []rc.Sysctl{{Name: "net.ipv4.udp_early_demux", Value: "0"}}
	}},
	{"unaccepted", "connections that their listener leaves in its queue", func(w *spec.World) { w.Unaccepted = true }},
	{"autobind-reuse", "the setting ip_autobind_reuse is on", func(w *spec.World) {
		w.Sysctls = []rc.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}}
	}},
}

func with[T comparable](list []T, more ...T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func option(o rc.Opt) func(*spec.World) { return func(w *spec.World) { w.Options |= o } }
func step(v rc.Verb) func(*spec.World)  { return func(w *spec.World) { w.Verbs[v] = true } }

func field(f rc.Field) func(*spec.World) {
	return func(w *spec.World) { w.Verbs[rc.VSet], w.Fields[f] = true, true }
}

// Words lists the words of a world's description with what each adds, named
// worlds first. uid=N, dev=N, cpu=N, ports=N, nets=N, group=N
// and addr=A,B.. are words too.
func Words() (names, docs []string) {
	for _, n := range named {
		names, docs = append(names, n.name), append(docs, n.doc+": "+n.words)
	}
	for _, w := range worldWords {
		names, docs = append(names, w.name), append(docs, w.doc)
	}
	return append(names, "addr=A,B..", "uid=N", "dev=N", "cpu=N", "ports=N", "nets=N", "group=N"),
		append(docs, "these addresses too", "N users", "N devices beside none", "N processors, which sockets ask for, and connections and datagrams arrive on", "N ports", "N namespaces at one time, which exit alone or together",
			"a reuseport group of N udp4 sockets that stay, on 127.0.0.1")
}

var (
	allUsers   = []uint32{0, 1001, 1002, 1003}
	allDevices = []rc.Dev{rc.NoDev, rc.Dev1, rc.Dev2, rc.DevLo}
	allPorts   = []uint16{40000, 40001, 40002, 40003, 40004, 40005, 40006, 40007}
	allCPUs    = []rc.CPU{rc.NoCPU, rc.Processor(0), rc.Processor(1), rc.Processor(2)}
)

// The most namespaces that a world has at one time, and members of a group that
// stays.
const (
	maxNets  = 4
	maxGroup = 200
)

// stay adds sockets that every history begins with.
func stay(w *spec.World, n int, opts rc.Opt, at func(int) netip.Addr) {
	next := rc.ID(len(w.Base) / 2) // each is made and bound
	for i := range n {
		id := next + rc.ID(i)
		w.Base = append(w.Base, rc.NewSocket(id, rc.UDP4, opts), rc.Bind(id, netip.AddrPortFrom(at(i), allPorts[0])))
	}
}

// ParseWorld reads a world's description: words with spaces between them. Each
// adds to the world; a named world stands for the words that make it.
func ParseWorld(text string) (*spec.World, error) {
	w := &spec.World{
		Verbs: map[rc.Verb]bool{rc.VBind: true}, Fields: map[rc.Field]bool{},
		UIDs: allUsers[:1], Devs: allDevices[:1], Ports: allPorts[:1],
	}
	if err := addWords(w, text); err != nil {
		return nil, err
	}
	if err := complete(w); err != nil {
		return nil, err
	}
	return w, nil
}

func addWords(w *spec.World, text string) error {
next:
	for _, s := range strings.Fields(text) {
		for _, n := range named {
			if n.name == s {
				if err := addWords(w, n.words); err != nil {
					return err
				}
				continue next
			}
		}
		for _, c := range worldWords {
			if c.name == s {
				c.add(w)
				continue next
			}
		}
		if err := addValue(w, s); err != nil {
			return err
		}
	}
	return nil
}

// addValue adds a word of the form NAME=VALUE.
func addValue(w *spec.World, s string) error {
	name, value, ok := strings.Cut(s, "=")
	count := func(most int) (int, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > most {
			return 0, fmt.Errorf("%s: want a number from 1 to %d", s, most)
		}
		return n, nil
	}
	var n int
	var err error
	switch {
	case ok && name == "addr":
		return addAddrs(w, value)
	case ok && name == "uid":
		if n, err = count(len(allUsers)); err == nil {
			w.UIDs = allUsers[:n]
		}
		return err
	case ok && name == "dev":
		if n, err = count(len(allDevices) - 1); err == nil {
			w.Devs = allDevices[:n+1]
		}
		return err
	case ok && name == "cpu":
		if n, err = count(len(allCPUs) - 1); err == nil {
			w.CPUs = allCPUs[:n+1]
		}
		return err
	case ok && name == "ports":
		if n, err = count(len(allPorts)); err == nil {
			w.Ports = allPorts[:n]
		}
		return err
	case ok && name == "nets":
		if n, err = count(maxNets); err == nil {
			w.Nets, w.Batch = n, n
			w.Verbs[rc.VNetns], w.Verbs[rc.VExit] = true, true
		}
		return err
	case ok && name == "group":
		if n, err = count(maxGroup); err == nil {
			stay(w, n, rc.ReusePort, func(int) netip.Addr { return loopA })
		}
		return err
	}
	names, _ := Words()
	near := rc.Nearest(s, names)
	if near != "" {
		near = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Errorf("a world has no word %q%s; there are %s", s, near, strings.Join(names, ", "))
}

func addAddrs(w *spec.World, list string) error {
	for _, s := range strings.Split(list, ",") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("addr=%s: %q is not an address", list, s)
		}
		if a.Zone() != "" {
			return fmt.Errorf("addr=%s: %q has a zone, which a trace has no word for; give the address without", list, s)
		}
		w.Addrs = with(w.Addrs, a)
	}
	return nil
}

// complete fills in what a description leaves unsaid, and refuses a world in
// which nothing can happen.
func complete(w *spec.World) error {
	if len(w.Families) == 0 {
		return fmt.Errorf("the world has no sockets: add tcp4, tcp6, udp4 or udp6, or a named world such as v4")
	}
	if len(w.Addrs) == 0 {
		for _, f := range w.Families {
			if f.Is6() {
				w.Addrs = with(w.Addrs, any6, loop6)
			} else {
				w.Addrs = with(w.Addrs, any4, loopA)
			}
		}
	}
	for _, f := range w.Families {
		if !slices.ContainsFunc(w.Addrs, func(a netip.Addr) bool { return fits(f, a) }) {
			return fmt.Errorf("no address of the world is for %s sockets: add one with addr=", f)
		}
	}
	return nil
}

// fits reports whether a socket of family f is asked for address a.
func fits(f rc.Family, a netip.Addr) bool { return f.Is6() == a.Is6() }

// config is the namespace that a world's histories start in: automatic ports
// are the ports in play.
func config(sys *spec.System, w *spec.World) rc.Config {
	return rc.Config{System: sys.Name, Sysctl: w.Sysctls,
		Ports: rc.PortRange{Lo: w.Ports[0], Hi: w.Ports[len(w.Ports)-1]}}
}

// passive reports whether nothing connects in a world: every step is judged by
// the owners of one port, and the places of listeners do not count.
func passive(w *spec.World) bool {
	return !w.Verbs[rc.VConnect] && !w.Verbs[rc.VInherit]
}
