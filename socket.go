package reusecheck

import (
	"fmt"
	"net/netip"
	"strconv"
)

// ID names a socket (or a network namespace) within one trace: the index of
// its definition, from 0. The texts of the names are in [Trace.Names].
type ID int32

// NoID is the ID of nobody.
const NoID ID = -1 << 31

// OtherEnd is the ID of the nameless socket at the other end of the connection
// that id opened: accepted by the listener's user, an owner of the listener's
// port until the connection ends. OtherEnd is its own inverse.
func (id ID) OtherEnd() ID { return ^id }

// IsOtherEnd reports whether id is the nameless end of a connection.
func (id ID) IsOtherEnd() bool { return id < 0 && id != NoID }

// String is the name that a socket has in a canonical trace: a, b, ... z, aa,
// ab ...; "a's other end" for a nameless one. A name that would read as a
// result (ok) has an underscore after it.
func (id ID) String() string {
	switch {
	case id == NoID:
		return "none"
	case id.IsOtherEnd():
		return id.OtherEnd().String() + "'s other end"
	}
	var b [8]byte
	i := len(b)
	for n := int(id); ; n = n/26 - 1 {
		i--
		b[i] = byte('a' + n%26)
		if n >= 26 {
			continue
		}
		if s := string(b[i:]); reserved(s) == "" {
			return s
		}
		return string(b[i:]) + "_"
	}
}

// Family is a socket's protocol and address family.
type Family uint8

// The families of the trace language. TCP6 and UDP6 sockets are dual-stack
// unless they have V6Only.
const (
	TCP4 Family = iota + 1
	TCP6
	UDP4
	UDP6
)

var familyNames = [...]string{TCP4: "tcp4", TCP6: "tcp6", UDP4: "udp4", UDP6: "udp6"}

func (f Family) String() string { return nameOf(familyNames[:], int(f), "family") }

// Is6 reports whether f is an IPv6 family.
func (f Family) Is6() bool { return f == TCP6 || f == UDP6 }

// Of is the family of f's protocol for an address: IPv4 for one in the plain form,
// else IPv6.
func (f Family) Of(a netip.Addr) Family {
	if f.Is6() != a.Is4() {
		return f
	}
	return [...]Family{TCP4: TCP6, TCP6: TCP4, UDP4: UDP6, UDP6: UDP4}[f]
}

// IsUDP reports whether f is a UDP family.
func (f Family) IsUDP() bool { return f == UDP4 || f == UDP6 }

// Opt is a set of socket options that are on or off.
type Opt uint8

// The options, by the setsockopt name that each stands for.
const (
	ReuseAddr   Opt = 1 << iota // SO_REUSEADDR
	ReusePort                   // SO_REUSEPORT
	V6Only                      // IPV6_V6ONLY
	NoPort                      // IP_BIND_ADDRESS_NO_PORT
	Transparent                 // IP_TRANSPARENT
)

// OptNames lists the options in the order in which they are printed.
var OptNames = []struct {
	Opt  Opt
	Name string
}{
	{V6Only, "v6only"}, // first: it narrows the family, which it stands beside
	{ReuseAddr, "reuseaddr"},
	{ReusePort, "reuseport"},
	{NoPort, "no-port"},
	{Transparent, "transparent"},
}

// Has reports whether every option of q is in o.
func (o Opt) Has(q Opt) bool { return o&q == q }

// String gives the options' names in printing order, separated by a space.
func (o Opt) String() string {
	s := ""
	for _, n := range OptNames {
		if o&n.Opt != 0 {
			if s != "" {
				s += " "
			}
			s += n.Name
		}
	}
	return s
}

// Dev is a network device of a trace's namespace. A fresh namespace has the
// loopback and the two ends of one veth pair; there are no others.
type Dev uint8

// The devices; NoDev is a socket that is bound to none.
const (
	NoDev Dev = iota
	DevLo
	Dev1
	Dev2
)

var devNames = [...]string{NoDev: "none", DevLo: "lo", Dev1: "d1", Dev2: "d2"}

func (d Dev) String() string { return nameOf(devNames[:], int(d), "device") }

// CPU is a processor of the machine: the one that a socket wants its connections
// or datagrams from (SO_INCOMING_CPU), or the one that they arrive on. The zero
// value is none; [Processor] gives the others.
type CPU uint16

// NoCPU is no processor: a socket that asked for none, a connection of which
// nobody says where it arrives.
const NoCPU CPU = 0

// MaxProcessor is the highest number of a processor that the trace language has.
const MaxProcessor = 1023

// Processor is the processor of a number, from 0 to MaxProcessor.
func Processor(n int) CPU { return CPU(n + 1) }

// Number is the processor's number, -1 for none: what SO_INCOMING_CPU takes.
func (c CPU) Number() int { return int(c) - 1 }

func (c CPU) String() string {
	if c == NoCPU {
		return "none"
	}
	return strconv.Itoa(c.Number())
}

// ConnTable is which table of connections a namespace gets that is made.
type ConnTable uint8

// The tables of connections. OwnTable has the size that the setting
// tcp_child_ehash_entries gives, [OwnTableSize] where it gives none.
const (
	TableAsSet  ConnTable = iota // what the trace's settings say
	SharedTable                  // the one that all share
	OwnTable                     // one of its own
)

// OwnTableSize is the size of a namespace's own table, in slots, where no setting
// gives one.
const OwnTableSize = 64

var connTableNames = [...]string{TableAsSet: "as set", SharedTable: "shared", OwnTable: "own"}

func (t ConnTable) String() string { return nameOf(connTableNames[:], int(t), "table") }

// PortRange is an inclusive range of ports; the zero value is "not given".
type PortRange struct{ Lo, Hi uint16 }

// DefaultPorts is the automatic port range of a namespace that sets none
// (ip_local_port_range as Linux ships it).
var DefaultPorts = PortRange{32768, 60999}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.Lo, r.Hi) }

// Contains reports whether p lies in r.
func (r PortRange) Contains(p uint16) bool { return r.Lo <= p && p <= r.Hi }

// Size is the number of ports in r, 0 when it is not given.
func (r PortRange) Size() int {
	if r == (PortRange{}) || r.Hi < r.Lo {
		return 0
	}
	return int(r.Hi) - int(r.Lo) + 1
}

// State is what a live socket is doing, as far as reuse depends on it.
type State uint8

// The states of a socket. A bound socket that neither listens nor is connected
// is Idle with a port.
const (
	Idle State = iota
	Listening
	Connected
	TimeWait
)

var stateNames = [...]string{Idle: "idle", Listening: "listening", Connected: "connected", TimeWait: "time-wait"}

func (s State) String() string { return nameOf(stateNames[:], int(s), "state") }

// Socket is what is known of a live socket from outside, without its kernel's
// help: what it was created with, what was changed since, where it is bound and
// what it is doing. An oracle judges from these alone.
type Socket struct {
	ID     ID
	HasNet bool // in the namespace Net, not in the trace's own
	Net    ID
	Family Family
	Opts   Opt // as they are now; V6Only is the effective one
	UID    uint32
	Dev    Dev
	CPU    CPU // SO_INCOMING_CPU as it was given; what arrives later may have changed it
	State  State
	Range  PortRange // IP_LOCAL_PORT_RANGE, if given

	// Local is the local address in the family's own form (an IPv6 socket's
	// v4-mapped address stays mapped) and the port held, 0 for none.
	Local netip.AddrPort
	// Peer is the other end's address of a connected socket.
	Peer netip.AddrPort

	PortLocked bool // bound to a port that the user named
	AddrLocked bool // bound to an address that the user named
	ByConnect  bool // its port was picked by connect
}

// Owner reports whether s holds a port.
func (s *Socket) Owner() bool { return s.Local.Port() != 0 }

func nameOf(names []string, i int, what string) string {
	if i < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", what, i)
}
