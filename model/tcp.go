package model

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// none is the index of nothing.
const none int32 = -1

// TCP is the TCP side of one modelled kernel's network namespace. It is a
// reusecheck.Stack that can be told what to choose and be looked into.
//
// Sockets and buckets stand in slices and refer to one another by index, so
// that a copy is a few memmoves and a port can hold a hundred thousand owners.
type TCP struct {
	rules   Rules
	profile *Profile

	socks []sock
	owns  []owner // socks[i]'s entry in its buckets, kept apart for the scan's sake
	freeS int32
	named []int32 // by ID

	ports []portBucket
	freeP int32
	index portIndex

	addrs []addrBucket
	freeA int32

	auto         reusecheck.PortRange
	reserved     []reusecheck.PortRange
	autobind     bool // ip_autobind_reuse
	listenSerial int32
	waiting      int32    // connections in listeners' queues
	waits        [2]int32 // TIME_WAIT sockets of IPv4 and of IPv6 sockets

	trail // who was looked at, for an explanation
}

// sock is a live socket, TIME_WAIT sockets and nameless ends included.
type sock struct {
	id   reusecheck.ID
	addr addr // local
	peer addr
	num  uint16 // local port, 0 for none
	dest uint16

	is6, noPort, transparent bool
	portLock, addrLock       bool
	linked                   bool // to the application: connect answers EISCONN
	sentSYN, listened        bool
	twin                     bool // another connection has its 4-tuple
	behind                   bool // stands behind the other listeners
	heard                    bool // a packet has set its processor since it asked for one
	live                     bool

	cpu reusecheck.CPU // the processor it asked for

	span   reusecheck.PortRange
	queue  int32 // the listener in whose queue a pending child waits
	other  int32 // the other end of its connection, if it lives here
	serial int32 // place among listeners
	group  int32 // the reuseport group it listens in, by its first member's serial
}

// owner is what the scan reads of a socket, and its place in the buckets.
type owner struct {
	next, prev   int32 // in the address bucket
	nextP, prevP int32 // in the port bucket
	uid          uint32
	flags        flags
	dev          reusecheck.Dev
	port, addr   int32 // its buckets
}

type flags uint8

const (
	reuseAddr flags = 1 << iota
	reusePort
	v6only
	listens
	timeWait
	established
	byConnect
	pending // a child that nobody accepted yet
)

type portBucket struct {
	port   uint16
	live   bool
	fast   int8 // fastreuse
	share  int8 // fastreuseport
	count  int32
	owners int32 // newest first, where the generation keeps such a list
	addrs  int32 // newest first, where it has address buckets
	key    key
}

// key is the socket that set fastreuseport last. The kernel keeps uid, family,
// address and v6only; the rest is what exact-strict-match would add.
type key struct {
	uid   uint32
	addr  addr
	flags flags
	dev   reusecheck.Dev
	is6   bool
}

type addrBucket struct {
	addr       addr
	made6      bool // by an IPv6 socket
	live       bool
	fast       int8
	share      int8
	port       int32
	owners     int32 // newest first
	last       int32
	count      int32
	connects   int32 // owners whose port came by connect
	next, prev int32
}

// Reset drops everything and starts in a fresh namespace.
func (t *TCP) Reset(cfg reusecheck.Config) error {
	if cfg.System != "" && cfg.System != reusecheck.TCP {
		return &reusecheck.Unsupported{What: "system " + string(cfg.System), Why: "this model is of tcp"}
	}
	t.socks, t.owns, t.named = t.socks[:0], t.owns[:0], t.named[:0]
	t.ports, t.addrs = t.ports[:0], t.addrs[:0]
	t.freeS, t.freeP, t.freeA = none, none, none
	t.index.reset()
	t.listenSerial, t.waiting, t.waits = 0, 0, [2]int32{}
	t.auto = cfg.Ports
	if t.auto == (reusecheck.PortRange{}) {
		t.auto = reusecheck.DefaultPorts
	}
	t.reserved = t.reserved[:0]
	t.autobind = false
	return t.sysctl(cfg.Sysctl)
}

// CopyFrom makes t a copy of o, reusing t's memory.
func (t *TCP) CopyFrom(o *TCP) {
	t.rules, t.profile = o.rules, o.profile
	t.socks = append(t.socks[:0], o.socks...)
	t.owns = append(t.owns[:0], o.owns...)
	t.named = append(t.named[:0], o.named...)
	t.ports = append(t.ports[:0], o.ports...)
	t.addrs = append(t.addrs[:0], o.addrs...)
	t.freeS, t.freeP, t.freeA = o.freeS, o.freeP, o.freeA
	t.index.copyFrom(&o.index)
	t.auto, t.autobind, t.listenSerial, t.waiting = o.auto, o.autobind, o.listenSerial, o.waiting
	t.waits = o.waits
	t.reserved = append(t.reserved[:0], o.reserved...)
}

// Clone is a copy that shares nothing with t.
func (t *TCP) Clone() *TCP {
	c := new(TCP)
	c.CopyFrom(t)
	return c
}

// find gives the index of a named or nameless socket, none when it is not there.
func (t *TCP) find(id reusecheck.ID) int32 {
	if id.IsOtherEnd() {
		if i := t.find(id.OtherEnd()); i >= 0 {
			return t.socks[i].other
		}
		return none
	}
	if id < 0 || int(id) >= len(t.named) {
		return none
	}
	return t.named[id]
}

// create makes a socket; a nameless end has the ID of its connector's other end.
func (t *TCP) create(id reusecheck.ID) int32 {
	i := t.freeS
	if i >= 0 {
		t.freeS = t.owns[i].next
	} else {
		i = int32(len(t.socks))
		t.socks = append(t.socks, sock{})
		t.owns = append(t.owns, owner{})
	}
	t.socks[i] = sock{id: id, live: true, queue: none, other: none, serial: none, group: none}
	t.owns[i] = owner{next: none, prev: none, nextP: none, prevP: none, port: none, addr: none}
	if id >= 0 {
		for int(id) >= len(t.named) {
			t.named = append(t.named, none)
		}
		t.named[id] = i
	}
	return i
}

// destroy forgets a socket that holds no port any more.
func (t *TCP) destroy(i int32) {
	if id := t.socks[i].id; id >= 0 {
		t.named[id] = none
	}
	if o := t.socks[i].other; o >= 0 && t.socks[o].other == i {
		t.socks[o].other = none
	}
	if t.owns[i].flags&pending != 0 {
		t.waiting--
	}
	if t.owns[i].flags&timeWait != 0 {
		t.waits[familyIndex(t.socks[i].is6)]--
	}
	t.socks[i] = sock{}
	t.owns[i] = owner{next: t.freeS}
	t.freeS = i
}

// familyIndex is a socket's place in a pair of counts: 0 for IPv4, 1 for IPv6.
func familyIndex(is6 bool) int {
	if is6 {
		return 1
	}
	return 0
}

func (t *TCP) sockAddr(i int32) netip.Addr { return t.socks[i].addr.netip(t.socks[i].is6) }
