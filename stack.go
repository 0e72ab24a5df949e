package reusecheck

import "net/netip"

// Config is the world that a trace starts in.
type Config struct {
	System System
	Ports  PortRange // the automatic range; zero is the system's default
	Sysctl []Sysctl
}

// Sysctl is one namespace setting.
type Sysctl struct{ Name, Value string }

// System is one of the three short cuts under test.
type System string

// The systems.
const (
	TCP          System = "tcp"
	UDP          System = "udp"
	TimeWaitExit System = "timewait"
)

// Stack answers socket operations: a modelled kernel, the running kernel, a
// kernel in an emulator, another implementation of TCP/IP.
//
// A stack is used by one goroutine at a time.
type Stack interface {
	// Reset drops every socket and starts a fresh namespace with the given
	// configuration. It fails when the stack cannot provide that world.
	Reset(Config) error
	// Do performs one operation. A socket operation that fails is a Result
	// like any other; the error is for a stack that could not perform the
	// operation at all (an unsupported verb, a wait that timed out), and
	// ends the trace. [Unsupported] says what is missing.
	Do(Op) (Result, error)
}

// A Chooser is a Stack whose rules sometimes leave it a choice (the automatic
// port, the member of a reuseport group).
type Chooser interface {
	Stack
	// DoAs is Do, but where the rules leave a choice it is made as seen, the
	// answer that another stack gave, if seen is one of those allowed.
	DoAs(op Op, seen Answer) (Result, error)
}

// A Limited is a Stack that can tell beforehand what it cannot do.
type Limited interface {
	Stack
	// Can gives the *Unsupported that Do would, and changes nothing.
	Can(Op) error
}

// An Inspector is a Stack that can be looked into.
type Inspector interface {
	Stack
	// Sockets calls yield for every live socket until it returns false, in
	// no particular order; TIME_WAIT sockets and nameless ends included.
	Sockets(yield func(*Socket) bool)
	// Check verifies the stack's own structure (every owner in exactly one
	// address bucket, that of its address; no empty bucket).
	Check() error
	// CacheOf is the cache of port's bind bucket.
	CacheOf(port uint16) Cache
}

// Unsupported is the error of a Stack that cannot perform an operation here.
type Unsupported struct {
	What string // what cannot be done, as a noun: "uids", "TIME_WAIT sockets"
	Why  string
}

func (u *Unsupported) Error() string { return u.What + " cannot be tested here: " + u.Why }

// Canonical gives an address the form that a socket of family f stores: IPv4
// in the plain form for IPv4 sockets, v4-mapped in the mapped form for IPv6
// ones, the wildcard for an invalid address.
func Canonical(f Family, a netip.Addr) netip.Addr {
	switch {
	case f.Is6() && !a.IsValid():
		return netip.IPv6Unspecified()
	case !f.Is6() && !a.IsValid():
		return netip.IPv4Unspecified()
	case f.Is6() && a.Is4():
		return netip.AddrFrom16(a.As16())
	case !f.Is6():
		return a.Unmap()
	}
	return a
}
