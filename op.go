package reusecheck

import "net/netip"

// Verb is what an operation does. The trace language writes it as the step's
// first word.
type Verb uint8

// The verbs of the trace language.
const (
	VSocket Verb = iota + 1
	VBind
	VListen
	VConnect
	VInherit
	VSet
	VShutdown
	VDisconnect
	VClose
	VTimeWait
	VExpire
	VSend
	VNetns
	VExit
)

var verbNames = [...]string{
	VSocket: "socket", VBind: "bind", VListen: "listen", VConnect: "connect",
	VInherit: "inherit", VSet: "set", VShutdown: "shutdown", VDisconnect: "disconnect",
	VClose: "close", VTimeWait: "timewait", VExpire: "expire", VSend: "send",
	VNetns: "netns", VExit: "exit",
}

func (v Verb) String() string { return nameOf(verbNames[:], int(v), "verb") }

// Verbs lists every verb in the order of the trace language's table.
func Verbs() []Verb {
	var vs []Verb
	for v := VSocket; int(v) < len(verbNames); v++ {
		vs = append(vs, v)
	}
	return vs
}

// Field is what a set operation changes.
type Field uint8

// The fields of a socket that can be set after its creation.
const (
	SetOpt Field = iota + 1 // the one option in Op.Opts, to Op.On
	SetUID                  // the owner, to Op.UID
	SetDev                  // the device, to Op.Dev
	SetCPU                  // the processor whose traffic it wants, to Op.CPU
)

// Op is one operation. Which fields count depends on the verb; the others are
// zero, so that equal operations are equal values (Batch aside). Build one with
// the function named after its verb.
type Op struct {
	Verb Verb
	// Sock is the socket (or the namespace) that the step is about; the
	// listener of an inherit. Not used by send and exit.
	Sock ID
	// Child is the socket that an inherit makes.
	Child ID

	Family Family // socket
	Opts   Opt    // socket: the options that are on; set: the one that changes
	On     bool   // set: the option's new value
	Field  Field  // set: what changes
	UID    uint32 // socket, set
	Dev    Dev    // socket, set; send: the device the datagram arrives on
	CPU    CPU    // socket, set; inherit, send: the processor the connection or datagram arrives on

	// HasNet says that Net, the namespace of a socket, was given.
	HasNet bool
	Net    ID

	Range PortRange // socket: IP_LOCAL_PORT_RANGE

	// Unaccepted says that the listener leaves connect's connection in its
	// queue: the other end is an owner that belongs to no file yet. It is
	// reset when the listener stops.
	Unaccepted bool

	// Addr is bind's address, connect's destination, the local end of an
	// inherited connection (port 0: the listener's) or send's destination.
	Addr netip.AddrPort
	// From is send's source.
	From netip.AddrPort

	Table ConnTable // netns

	// Batch is the namespaces that an exit tears down together.
	Batch []ID
}

// NewSocket creates socket id. Further attributes are set on the value returned.
func NewSocket(id ID, f Family, opts Opt) Op {
	return Op{Verb: VSocket, Sock: id, Family: f, Opts: opts}
}

// Bind binds to an address and port; port 0 lets the stack pick one.
func Bind(id ID, addr netip.AddrPort) Op { return Op{Verb: VBind, Sock: id, Addr: addr} }

// Listen starts listening, which checks the port a second time.
func Listen(id ID) Op { return Op{Verb: VListen, Sock: id} }

// Connect opens a connection to a listener of the same namespace, or sets the
// peer of a UDP socket.
func Connect(id ID, to netip.AddrPort) Op { return Op{Verb: VConnect, Sock: id, Addr: to} }

// ConnectUnaccepted is Connect to a listener that does not accept.
func ConnectUnaccepted(id ID, to netip.AddrPort) Op {
	return Op{Verb: VConnect, Sock: id, Addr: to, Unaccepted: true}
}

// Inherit lets a connection arrive at addr for listener, accepted as child.
// Port 0 in addr is the listener's own.
func Inherit(listener, child ID, addr netip.AddrPort) Op {
	return Op{Verb: VInherit, Sock: listener, Child: child, Addr: addr}
}

// InheritOn is Inherit of a connection that arrives on a processor.
func InheritOn(listener, child ID, addr netip.AddrPort, cpu CPU) Op {
	return Op{Verb: VInherit, Sock: listener, Child: child, Addr: addr, CPU: cpu}
}

// SetOption turns one option of a live socket on or off.
func SetOption(id ID, opt Opt, on bool) Op {
	return Op{Verb: VSet, Sock: id, Field: SetOpt, Opts: opt, On: on}
}

// SetOwner gives a live socket to another user.
func SetOwner(id ID, uid uint32) Op { return Op{Verb: VSet, Sock: id, Field: SetUID, UID: uid} }

// SetDevice binds a live socket to another device, or to none.
func SetDevice(id ID, dev Dev) Op { return Op{Verb: VSet, Sock: id, Field: SetDev, Dev: dev} }

// SetProcessor lets a live socket prefer the connections or datagrams of a processor, or of none.
func SetProcessor(id ID, cpu CPU) Op { return Op{Verb: VSet, Sock: id, Field: SetCPU, CPU: cpu} }

// Shutdown shuts down for reading and writing: a listener stops listening.
func Shutdown(id ID) Op { return Op{Verb: VShutdown, Sock: id} }

// Disconnect is connect to AF_UNSPEC.
func Disconnect(id ID) Op { return Op{Verb: VDisconnect, Sock: id} }

// Close ends a socket and leaves nothing behind.
func Close(id ID) Op { return Op{Verb: VClose, Sock: id} }

// LeaveTimeWait closes a connected socket first and its other end then, so that
// a TIME_WAIT socket takes its place.
func LeaveTimeWait(id ID) Op { return Op{Verb: VTimeWait, Sock: id} }

// Expire ends a TIME_WAIT socket.
func Expire(id ID) Op { return Op{Verb: VExpire, Sock: id} }

// Send lets a UDP datagram arrive, on dev if it is given.
func Send(from, to netip.AddrPort, dev Dev) Op {
	return Op{Verb: VSend, From: from, Addr: to, Dev: dev}
}

// SendOn is Send of a datagram that arrives on a processor.
func SendOn(from, to netip.AddrPort, dev Dev, cpu CPU) Op {
	return Op{Verb: VSend, From: from, Addr: to, Dev: dev, CPU: cpu}
}

// NewNetns makes a network namespace.
func NewNetns(id ID) Op { return Op{Verb: VNetns, Sock: id} }

// NewNetnsWith makes a network namespace with a table of connections.
func NewNetnsWith(id ID, table ConnTable) Op { return Op{Verb: VNetns, Sock: id, Table: table} }

// Exit tears down a batch of network namespaces.
func Exit(batch ...ID) Op { return Op{Verb: VExit, Batch: batch} }

// Defines gives the ID that the operation brings into being, if any.
func (op Op) Defines() (ID, bool) {
	switch op.Verb {
	case VSocket, VNetns:
		return op.Sock, true
	case VInherit:
		return op.Child, true
	}
	return NoID, false
}
