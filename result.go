package reusecheck

import (
	"fmt"
	"net/netip"
	"strconv"
)

// Kind says which sort of answer an [Answer] is.
type Kind uint8

// The kinds of answers. The zero Kind states nothing.
const (
	Unstated Kind = iota
	OK            // the operation succeeded; Port may say which port was picked
	Failed        // with Errno
	Received      // by Who: send's receiver, or the listener that took an inherit's connection in place of the one named
	Nobody        // send found no receiver
	Exited        // an exit, with Walks and Left
)

// Answer is what user space sees of an operation. It is comparable.
type Answer struct {
	Kind  Kind
	Errno Errno
	Port  uint16
	Who   ID    // meaningful when Kind is Received, else 0
	Walks int32 // Uncounted when the stack cannot tell, as Left
	Left  int32
}

// Uncounted stands in the place of a count of an exit that a stack could not take:
// a kernel does not tell. It states nothing, and no trace has it.
const Uncounted int32 = -1

// Success is the plain answer ok.
var Success = Answer{Kind: OK}

// Picked is ok with the port that the stack chose.
func Picked(port uint16) Answer { return Answer{Kind: OK, Port: port} }

// Fail is the answer of a failed operation.
func Fail(e Errno) Answer { return Answer{Kind: Failed, Errno: e} }

// Matches reports whether a stated answer holds of the one given: equal as far
// as it was counted, or stated nothing, or stated ok where a port was picked.
func (stated Answer) Matches(given Answer) bool {
	switch {
	case stated.Kind == Unstated || stated.Agrees(given):
		return true
	case stated.Kind == OK && stated.Port == 0:
		given.Port = 0
		return stated == given
	}
	return false
}

// Counted reports whether no count of the answer is missing.
func (a Answer) Counted() bool { return a.Walks != Uncounted && a.Left != Uncounted }

// Agrees reports whether two answers are equal, but for counts that one of them
// does not have.
func (a Answer) Agrees(b Answer) bool {
	if a.Walks == Uncounted || b.Walks == Uncounted {
		a.Walks, b.Walks = 0, 0
	}
	if a.Left == Uncounted || b.Left == Uncounted {
		a.Left, b.Left = 0, 0
	}
	return a == b
}

// Path is how a stack reached its answer.
type Path uint8

// The paths. PathUnknown is a stack that does not say.
const (
	PathUnknown Path = iota
	PathNone         // no owner was there to ask about, or the operation asks nobody
	PathFast         // the cache answered
	PathScan         // owners were visited
)

var pathNames = [...]string{PathUnknown: "unknown", PathNone: "none", PathFast: "fast", PathScan: "scan"}

func (p Path) String() string { return nameOf(pathNames[:], int(p), "path") }

// The values of a bind bucket's fastreuse and fastreuseport.
const (
	FastConnect int8 = -1 // every owner's port was picked by connect
	FastUnknown int8 = 0  // nothing is known
	FastReuse   int8 = 1  // fastreuse: every owner had reuseaddr and did not listen
	FastAny     int8 = 1  // fastreuseport: every owner had reuseport and the cached uid
	FastStrict  int8 = 2  // fastreuseport: the cached socket was admitted after a full look
)

// Cache is the state of a bind bucket's short cut. The zero value is "no
// bucket". The key (UID to V6Only) means something only while FastReusePort is
// positive: before that it is uninitialised memory and must not be compared.
type Cache struct {
	Exists        bool
	FastReuse     int8
	FastReusePort int8

	UID    uint32
	Family Family
	Addr   netip.Addr
	V6Only bool
}

// WithoutKey is c with the key dropped where it means nothing.
func (c Cache) WithoutKey() Cache {
	if c.FastReusePort > 0 {
		return c
	}
	return Cache{Exists: c.Exists, FastReuse: c.FastReuse, FastReusePort: c.FastReusePort}
}

// PortName is fastreuseport by the name that the kernel's source has for the value.
func (c Cache) PortName() string {
	switch c.FastReusePort {
	case FastAny:
		return "ANY"
	case FastStrict:
		return "STRICT"
	}
	return strconv.Itoa(int(c.FastReusePort))
}

// Short is fastreuse/fastreuseport, such as 1/STRICT.
func (c Cache) Short() string { return fmt.Sprintf("%d/%s", c.FastReuse, c.PortName()) }

// Pair is the two cache fields of an address bucket (Linux 6.18 and later).
type Pair struct {
	Exists        bool
	FastReuse     int8
	FastReusePort int8
}

// Result is an answer with the evidence behind it. A stack fills in what it can
// know; the zero value of the rest says that it does not.
type Result struct {
	Answer

	Path    Path
	Visited int    // owners stepped over, the asking socket included when it is one
	Decider ID     // the owner that decided, NoID when none did
	Reason  Reason // the rule that decided

	// Before and After are the cache of the port's bind bucket around the
	// operation; AddrAfter is its address bucket's own pair afterwards. They
	// are valid when HasCache is set.
	HasCache      bool
	Before, After Cache
	AddrAfter     Pair

	// Waiting are the TIME_WAIT sockets that are there after an exit, as far as
	// the trace has a name for them. They are valid when HasWaiting is set.
	HasWaiting bool
	Waiting    []ID

	// Passes are the passes that the purge of an exit made, 0 when the stack does
	// not say.
	Passes int

	// Lookup is how a datagram found its receiver, nil when the stack does not
	// say. It is valid until the stack's next operation.
	Lookup *Lookup
}

// Reason is the rule that decided an answer.
type Reason uint8

// The reasons. Those that refuse name what stands between binder and owner.
const (
	ReasonNone Reason = iota

	AdmitEmpty     // the port has no owner
	AdmitReuseAddr // fastreuse says that every owner has reuseaddr and none listens
	AdmitAny       // fastreuseport says that every owner has reuseport and this uid
	AdmitStrict    // fastreuseport says that a socket like this one was admitted
	AdmitScan      // no owner that was looked at conflicts
	AdmitShared    // connect: every owner came by connect and the 4-tuple is free

	RefuseNotShared   // the binder has neither reuseaddr nor reuseport
	RefuseNoReuseAddr // the owner lacks reuseaddr
	RefuseListening   // both have reuseaddr, but the owner listens
	RefuseNoReusePort // the owner lacks reuseport
	RefuseUID         // both have reuseport, but they belong to different users
	RefuseGroup       // the binder is in a reuseport group already
	RefuseAutomatic   // an automatic port shares with no overlapping owner
	RefuseTuple       // another connection has this 4-tuple
	RefuseExplicit    // connect shares no port that somebody bound explicitly
	RefuseExhausted   // no port of the range is free

	RefuseState      // the socket cannot do that in its state
	RefuseNotLocal   // the address is not local
	RefuseDevice     // the address is not on the socket's device
	RefuseFamily     // the address is not one of the socket's family
	RefuseNoListener // nobody listens there
	RefuseGone       // the socket is not there

	TakeTuple // send: the 4-tuple table has the receiver
	TakeScore // send: no socket fits the datagram better
	TakeGroup // send: the receiver's reuseport group fits best, and a hash picked it
	TakeNone  // send: no socket fits the datagram
	TakeEarly // send: early demultiplexing gave it to the first socket of the address slot

	BeatAddress // the better receiver is bound to the address itself
	BeatPeer    // ... is connected to the sender
	BeatDevice  // ... is bound to the device
	BeatFamily  // ... is an IPv4 socket, as the datagram is
	BeatCPU     // ... asked for the processor
	BeatNobody  // ... fits the datagram at all
	RefuseFit   // the receiver does not fit the datagram

	SkipWalk   // exit: no namespace of the batch has TIME_WAIT sockets
	WalkCount  // exit: the count of a namespace of the batch asked for a walk
	WalkAlways // exit: the table is walked whatever the counts say
	WalkNever  // exit: TIME_WAIT sockets are left to their timers
)

var reasonTexts = [...]string{
	ReasonNone:        "no rule was asked",
	AdmitEmpty:        "the port has no owner",
	AdmitReuseAddr:    "fastreuse says that every owner has reuseaddr and none listens",
	AdmitAny:          "fastreuseport says that every owner has reuseport and this uid",
	AdmitStrict:       "fastreuseport says that a socket like this one was admitted before",
	AdmitScan:         "no owner that was looked at conflicts",
	AdmitShared:       "every owner came by connect and the 4-tuple is free",
	RefuseNotShared:   "the binder has neither reuseaddr nor reuseport",
	RefuseNoReuseAddr: "the owner lacks reuseaddr",
	RefuseListening:   "the owner listens, and reuseaddr does not pass a listener",
	RefuseNoReusePort: "the owner lacks reuseport",
	RefuseUID:         "both have reuseport, but they belong to different users",
	RefuseGroup:       "the binder is already in a reuseport group",
	RefuseAutomatic:   "an automatic port is shared with no overlapping owner",
	RefuseTuple:       "another connection has this 4-tuple",
	RefuseExplicit:    "connect shares no port that somebody bound explicitly",
	RefuseExhausted:   "no port of the range is free",
	RefuseState:       "the socket cannot do that in its state",
	RefuseNotLocal:    "the address is not local",
	RefuseDevice:      "the address is not on the socket's device",
	RefuseFamily:      "the address does not fit the socket's family",
	RefuseNoListener:  "nobody listens there",
	RefuseGone:        "the socket is not there",
	TakeTuple:         "the 4-tuple table has the receiver",
	TakeScore:         "no socket fits the datagram better",
	TakeGroup:         "its reuseport group fits best, and a hash picked it",
	TakeNone:          "no socket fits the datagram",
	TakeEarly:         "early demultiplexing gives it to the first socket of the address slot",
	BeatAddress:       "it is bound to the address itself",
	BeatPeer:          "it is connected to the sender",
	BeatDevice:        "it is bound to the device",
	BeatFamily:        "it is an IPv4 socket, as the datagram is",
	BeatCPU:           "it asked for the processor that the datagram arrives on",
	BeatNobody:        "it fits the datagram",
	RefuseFit:         "it does not fit the datagram",
	SkipWalk:          "no namespace of the batch has TIME_WAIT sockets",
	WalkCount:         "the count of a namespace of the batch asks for a walk",
	WalkAlways:        "the table is walked whatever the counts say",
	WalkNever:         "TIME_WAIT sockets are left to their timers",
}

// String is the reason in words, fit to stand after "because".
func (r Reason) String() string { return nameOf(reasonTexts[:], int(r), "reason") }
