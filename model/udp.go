package model

import (
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// UDP is the UDP side of one modelled kernel's network namespace. It is a
// reusecheck.Stack that can be told what to choose and be looked into.
//
// Slots are never shared by chance: a port, an address of a port and a 4-tuple
// have one each.
type UDP struct {
	rules   UDPRules
	profile *Profile

	socks []udpSock
	freeS int32
	named []int32 // by ID

	ports  []udpSlot // primary slots
	freeP  int32
	index  portIndex
	addrs  []addrSlot
	freeA  int32
	addrOf map[addrKey]int32
	tuples map[tuple]int32 // the first entry of each 4-tuple
	stale  int             // connected sockets that the table has not, or under another 4-tuple
	groups []udpGroup
	freeG  int32

	auto     reusecheck.PortRange
	reserved []reusecheck.PortRange
	noEarly  bool // a setting turns early demultiplexing off

	look reusecheck.Lookup // of the last send
	ends []outcomes        // scratch: where its walks can end

	trail // who was looked at, for an explanation
}

// udpSock is a live socket.
type udpSock struct {
	id   reusecheck.ID
	addr addr // local, as it is now
	num  uint16
	dest uint16 // the peer's port
	peer addr   // the peer's IPv4 address, zero for none
	// peer6 is the peer's address as IPv6 look-ups read it.
	peer6 addr

	is6, live, connected         bool
	noPort, transparent          bool
	portLock, addrLock, fromConn bool
	late                         bool // halfway through a connect

	flags flags
	uid   uint32
	dev   reusecheck.Dev
	span  reusecheck.PortRange
	asked reusecheck.CPU // the processor that it was told to prefer
	// cpu is the processor whose datagrams are worth a point: what was asked for,
	// until the socket receives with a peer; from then on where that was.
	cpu reusecheck.CPU

	slot, at     int32 // primary and address slot, none while it has no port
	next, prev   int32 // in the primary slot
	nextA, prevA int32 // in the address slot
	order        int64 // place in the address slot: the larger, the nearer to its front
	hashed       bool  // in the 4-tuple table, under key
	key          tuple
	nextT, prevT int32
	group        int32
}

// udpSlot is the list of the sockets of one port.
type udpSlot struct {
	port        uint16
	first, last int32
	count       int32
}

type addrKey struct {
	addr addr // IPv4 in mapped form, zero for every wildcard
	port uint16
}

// addrSlot is the list of the sockets of one port and address.
type addrSlot struct {
	key         addrKey
	first, last int32
	count       int32
	hash4       int32 // how many of them are said to be in the 4-tuple table
	front, back int64
}

// tuple is what an entry of the 4-tuple table was hashed by.
type tuple struct {
	local, peer addr
	num, dest   uint16
}

// udpGroup is a reuseport group.
type udpGroup struct {
	members  []int32
	max      int
	wanting  int // members that came or were made to prefer a processor, less those that left with one
	hasConns bool
	live     bool
}

// Reset drops everything and starts in a fresh namespace.
func (u *UDP) Reset(cfg reusecheck.Config) error {
	if cfg.System != "" && cfg.System != reusecheck.UDP {
		return &reusecheck.Unsupported{What: "system " + string(cfg.System), Why: "this model is of udp"}
	}
	u.socks, u.named = u.socks[:0], u.named[:0]
	u.ports, u.addrs, u.groups = u.ports[:0], u.addrs[:0], u.groups[:0]
	u.freeS, u.freeP, u.freeA, u.freeG = none, none, none, none
	u.index.reset()
	clear(u.addrOf)
	clear(u.tuples)
	u.stale = 0
	if u.addrOf == nil {
		u.addrOf, u.tuples = map[addrKey]int32{}, map[tuple]int32{}
	}
	u.auto, u.reserved = cfg.Ports, u.reserved[:0]
	if u.auto == (reusecheck.PortRange{}) {
		u.auto = reusecheck.DefaultPorts
	}
	return u.sysctl(cfg.Sysctl)
}

// sysctl applies the settings, which beside two are those of TCP: ports are the
// namespace's.
func (u *UDP) sysctl(set []reusecheck.Sysctl) error {
	u.noEarly = false
	on := map[string]bool{"ip_early_demux": true, "udp_early_demux": true}
	for i, s := range set {
		name := strings.TrimPrefix(s.Name, "net.ipv4.")
		if _, early := on[name]; early {
			n, err := strconv.ParseUint(s.Value, 10, 8)
			if err != nil {
				return settingError(s.Name, "want a number from 0 to 255, not %q", s.Value)
			}
			on[name] = n > 0
			u.noEarly = !on["ip_early_demux"] || !on["udp_early_demux"]
			continue
		}
		t := TCP{auto: u.auto, reserved: u.reserved}
		if err := t.sysctl(set[i : i+1]); err != nil {
			return err
		}
		u.auto, u.reserved = t.auto, t.reserved
	}
	return nil
}

// CopyFrom makes u a copy of o, reusing u's memory.
func (u *UDP) CopyFrom(o *UDP) {
	u.rules, u.profile = o.rules, o.profile
	u.socks = append(u.socks[:0], o.socks...)
	u.named = append(u.named[:0], o.named...)
	u.ports = append(u.ports[:0], o.ports...)
	u.addrs = append(u.addrs[:0], o.addrs...)
	u.freeS, u.freeP, u.freeA, u.freeG = o.freeS, o.freeP, o.freeA, o.freeG
	u.index.copyFrom(&o.index)
	if u.addrOf == nil {
		u.addrOf, u.tuples = map[addrKey]int32{}, map[tuple]int32{}
	}
	clear(u.addrOf)
	for k, v := range o.addrOf {
		u.addrOf[k] = v
	}
	clear(u.tuples)
	for k, v := range o.tuples {
		u.tuples[k] = v
	}
	u.stale = o.stale
	for len(u.groups) < len(o.groups) {
		u.groups = append(u.groups, udpGroup{})
	}
	u.groups = u.groups[:len(o.groups)]
	for i := range o.groups {
		kept := u.groups[i].members[:0]
		u.groups[i] = o.groups[i]
		u.groups[i].members = append(kept, o.groups[i].members...)
	}
	u.auto, u.noEarly = o.auto, o.noEarly
	u.reserved = append(u.reserved[:0], o.reserved...)
}

// Clone is a copy that shares nothing with u.
func (u *UDP) Clone() *UDP {
	c := new(UDP)
	c.CopyFrom(u)
	return c
}

func (u *UDP) find(id reusecheck.ID) int32 {
	if id < 0 || int(id) >= len(u.named) {
		return none
	}
	return u.named[id]
}

func (u *UDP) create(op reusecheck.Op) {
	i := u.freeS
	if i >= 0 {
		u.freeS = u.socks[i].next
	} else {
		i = int32(len(u.socks))
		u.socks = append(u.socks, udpSock{})
	}
	s := &u.socks[i]
	*s = udpSock{
		id: op.Sock, live: true, is6: op.Family.Is6(), uid: op.UID, dev: op.Dev, span: op.Range, asked: op.CPU, cpu: op.CPU,
		flags: flagsOf(op.Opts), noPort: op.Opts.Has(reusecheck.NoPort), transparent: op.Opts.Has(reusecheck.Transparent),
		slot: none, at: none, next: none, prev: none, nextA: none, prevA: none, nextT: none, prevT: none, group: none,
	}
	s.addr = wildcardOf(s.is6)
	if !s.is6 {
		s.flags &^= v6only
	}
	for int(op.Sock) >= len(u.named) {
		u.named = append(u.named, none)
	}
	u.named[op.Sock] = i
	u.stale += u.offTable(i)
}

// destroy forgets a socket that is in no table any more.
func (u *UDP) destroy(i int32) {
	u.named[u.socks[i].id] = none
	u.socks[i] = udpSock{next: u.freeS}
	u.freeS = i
}
