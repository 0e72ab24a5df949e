package model

import (
	"fmt"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// The bounds of a packed state.
const (
	MaxSockets = 7  // named sockets, each perhaps with a nameless other end
	MaxPorts   = 2  // ports in play
	maxAddrs   = 16 // address codes
)

// Domain is the small world whose states a [Codec] packs.
type Domain struct {
	Config rc.Config
	Addrs  []netip.Addr
	Ports  []uint16
	UIDs   []uint32
	// Lookups says that connections arrive: the places of listeners count then.
	Lookups bool
	// Order says that the places of owners in their lists count: some rule
	// that the world meets ends at the first that it finds.
	Order bool
}

// State is a TCP state packed into words: two states are equal exactly when
// every step answers the same in both and leads to equal states again. What no
// rule reads is left out: a key that means nothing, the value of an address
// bucket's pair unless it is -1/-1, and, where the domain says so, places.
type State struct {
	Socks [MaxSockets]uint64 // named sockets, 0 for one that is not there
	Ends  [MaxSockets]uint64 // their nameless other ends
	Ports [MaxPorts]uint64
	Order [2]uint64 // owners as they stand in address buckets, and in the ports' lists
}

// The fields of a socket's word.
const (
	pFlags  = 0  // 8 bits
	pAddr   = 8  // 4
	pSix    = 12 // 1
	pPort   = 13 // 2
	pUID    = 15 // 3
	pDev    = 18 // 2
	pPeer   = 20 // 4
	pDest   = 24 // 2
	pBools  = 26 // 9
	pSerial = 35 // 5
	pGroup  = 40 // 5
	pLive   = 45

	// PastShift is where a socket's word has room for the caller, 18 bits.
	PastShift = 46
)

// Pristine reports whether a socket's word tells of one that might have been
// created just now: it holds nothing, waits for nothing and has done nothing.
func Pristine(w uint64) bool {
	const (
		busy = uint64(listens|timeWait|established|byConnect) << pFlags
		past = (4 | 8 | 16 | 32 | 64 | 256) << pBools
	)
	a := w >> pAddr & 15
	return w>>PastShift == 0 && w&(busy|past|3<<pPort|15<<pPeer|3<<pDest) == 0 && (a == 0 && w>>pSix&1 != 0 || a == 1 && w>>pSix&1 == 0)
}

// PortOf is the code of the port that a socket's word holds: 0 for none, else
// one more than its place among the domain's ports.
func PortOf(w uint64) int { return int(w >> pPort & 3) }

// WithPort is a socket's word with the port of another code.
func WithPort(w uint64, code int) uint64 { return w&^(3<<pPort) | uint64(code)<<pPort }

// Forgetful is a word without the peer of a connection and what the socket did
// before, but for a SYN that it sent: a kernel may remember that, and refuses the
// socket to listen when the cache has been updated already. A listener stands
// where the only one does.
func Forgetful(w uint64) uint64 {
	w &^= 31<<pSerial | 31<<pGroup | 15<<pPeer | 3<<pDest | (64|128|256)<<pBools
	if flags(w>>pFlags)&listens != 0 {
		w |= 1 << pSerial
	}
	return w
}

// CacheBits are the bits of a port's word that are its cache, and that it exists.
const CacheBits = 1<<pbOpen - 1 | 1<<pbLive

// BareCache is the word of a port whose cache says nothing.
const BareCache = 1<<pbFast | 1<<pbShare | 1<<pbLive

// OpenBits say that all address buckets have the pair -1/-1, MakerBits that IPv6
// sockets made them all.
const (
	OpenBits  = (1<<maxAddrs - 1) << pbOpen
	MakerBits = (1<<maxAddrs - 1) << pbMade6
)

// ReadByScan are the parts of an owner's word that the owner scan reads.
const ReadByScan = uint64(reuseAddr|reusePort|v6only|listens|timeWait|pending)<<pFlags | 15<<pAddr | 1<<pSix | 7<<pUID | 3<<pDev

// CameByConnect reports whether connect picked the port of a socket's word.
func CameByConnect(w uint64) bool { return flags(w>>pFlags)&byConnect != 0 }

// The fields of a port's word. Bits from pGhost on are the caller's.
const (
	pbFast  = 0  // 2 bits, plus one
	pbShare = 2  // 2, plus one
	pbKey   = 4  // 4 address, 1 family, 3 uid, 3 flags, 2 device
	pbOpen  = 17 // one bit an address code: its bucket's pair is -1/-1
	pbMade6 = 33 // one bit an address code: made by an IPv6 socket
	pbLive  = 49

	// GhostShift and GhostBits are where a port's word has room for the caller.
	GhostShift = 50
	GhostBits  = 14
)

// Codec packs and loads the states of one kernel in one domain.
type Codec struct {
	dom    Domain
	rules  Rules
	addrs  []addr
	serial []int32 // scratch
}

// NewCodec says what is too large to be packed.
func NewCodec(p *Profile, dom Domain) (*Codec, error) {
	c := &Codec{dom: dom, rules: p.rules, addrs: []addr{{}, any4, mappedLoopback, loopback6}}
	for _, a := range dom.Addrs {
		if c.addr(makeAddr(a)) < 0 {
			c.addrs = append(c.addrs, makeAddr(a))
		}
	}
	switch {
	case len(c.addrs) > maxAddrs:
		return nil, fmt.Errorf("%d addresses are too many: at most %d", len(c.addrs), maxAddrs)
	case len(dom.Ports) > MaxPorts:
		return nil, fmt.Errorf("%d ports are too many: at most %d", len(dom.Ports), MaxPorts)
	case len(dom.UIDs) > 7:
		return nil, fmt.Errorf("%d users are too many: at most 7", len(dom.UIDs))
	case p.rules.noMappedTwin && p.rules.releaseUpdate:
		return nil, &rc.Unsupported{What: "the exploration of a kernel whose v4-mapped addresses have buckets of their own, with pairs",
			Why: "two buckets of one address are not packed"}
	}
	c.dom.Order = dom.Order || p.rules.firstWildcard
	return c, nil
}

// MakersCount reports whether the family of an address bucket's maker decides.
func (c *Codec) MakersCount() bool { return c.rules.makerCounts() && c.rules.addrBuckets }

// Ordered reports whether the places of owners count.
func (c *Codec) Ordered() bool { return c.dom.Order }

// addr is the code of an address, negative for one that the domain has not.
func (c *Codec) addr(a addr) int {
	for i := range c.addrs {
		if c.addrs[i] == a {
			return i
		}
	}
	return -1
}

// AddrCode is the code that an address has in a state's words.
func (c *Codec) AddrCode(a netip.Addr) int { return c.addr(makeAddr(a)) }

func (c *Codec) port(p uint16) int {
	if p == 0 {
		return 0
	}
	for i, q := range c.dom.Ports {
		if q == p {
			return i + 1
		}
	}
	return -1
}

func (c *Codec) uid(u uint32) int {
	for i, v := range c.dom.UIDs {
		if u == v {
			return i
		}
	}
	if u == 0 {
		return 7 // the user of nobody, where the world has no root
	}
	return -1
}

// OutOfDomain is a state that the codec's domain has no words for.
type OutOfDomain struct{ What string }

func (e *OutOfDomain) Error() string { return "the state leaves the world: " + e.What }

// Pack writes t's state into s. The caller's bits of the ports' words are 0.
func (c *Codec) Pack(t *TCP, s *State) error {
	*s = State{}
	c.rank(t)
	for id, i := range t.named {
		if i < 0 {
			continue
		}
		if id >= MaxSockets {
			return &OutOfDomain{"more sockets than can be packed"}
		}
		w, err := c.sock(t, i)
		if err != nil {
			return err
		}
		s.Socks[id] = w
		if o := t.socks[i].other; o >= 0 && t.socks[o].id.IsOtherEnd() {
			if s.Ends[id], err = c.sock(t, o); err != nil {
				return err
			}
		}
	}
	for k, p := range c.dom.Ports {
		b := t.index.get(p)
		if b < 0 {
			continue
		}
		w, err := c.bucket(t, b)
		if err != nil {
			return err
		}
		s.Ports[k] = w
	}
	if c.dom.Order {
		c.order(t, s)
	}
	return nil
}

// PortWord is the word of one of the domain's ports, 0 when nobody owns it.
func (c *Codec) PortWord(t *TCP, port int) (uint64, error) {
	if b := t.index.get(c.dom.Ports[port]); b >= 0 {
		return c.bucket(t, b)
	}
	return 0, nil
}

// rank collects the serials of listeners, which count by their order only.
func (c *Codec) rank(t *TCP) {
	c.serial = c.serial[:0]
	if !c.dom.Lookups {
		return
	}
	for i := range t.socks {
		if t.socks[i].live && t.socks[i].serial >= 0 {
			c.serial = append(c.serial, t.socks[i].serial)
		}
	}
}

// below counts the listeners before one, the first is 1; 0 is none.
func (c *Codec) below(serial int32) uint64 {
	if serial < 0 || !c.dom.Lookups {
		return 0
	}
	n := uint64(1)
	for _, s := range c.serial {
		if s < serial {
			n++
		}
	}
	return n
}

// group numbers a reuseport group by its first member that is still there.
func (c *Codec) group(t *TCP, g int32) uint64 {
	if g < 0 || !c.dom.Lookups {
		return 0
	}
	least := int32(-1)
	for i := range t.socks {
		if s := &t.socks[i]; s.live && s.serial >= 0 && s.group == g && (least < 0 || s.serial < least) {
			least = s.serial
		}
	}
	return c.below(least)
}

func (c *Codec) sock(t *TCP, i int32) (uint64, error) {
	s, o := &t.socks[i], &t.owns[i]
	a, peer := c.addr(s.addr), c.addr(s.peer)
	port, dest, uid := c.port(s.num), c.port(s.dest), c.uid(o.uid)
	switch {
	case a < 0 || peer < 0:
		return 0, &OutOfDomain{fmt.Sprintf("an address of %s", s.id)}
	case port < 0 || dest < 0:
		return 0, &OutOfDomain{fmt.Sprintf("port %d or %d", s.num, s.dest)}
	case s.cpu != rc.NoCPU:
		return 0, &OutOfDomain{fmt.Sprintf("the processor of %s", s.id)}
	case uid < 0:
		return 0, &OutOfDomain{fmt.Sprintf("user %d", o.uid)}
	}
	bools := bit(s.noPort, 0) | bit(s.transparent, 1) | bit(s.portLock, 2) | bit(s.addrLock, 3) | bit(s.linked, 4) |
		bit(s.sentSYN && c.rules.onceOnly, 5) | bit(s.listened && c.rules.onceOnly, 6) | bit(s.behind && c.dom.Lookups, 7) | bit(s.twin, 8)
	w := uint64(o.flags)<<pFlags | uint64(a)<<pAddr | bit(s.is6, pSix) | uint64(port)<<pPort | uint64(uid)<<pUID |
		uint64(o.dev)<<pDev | uint64(peer)<<pPeer | uint64(dest)<<pDest | bools<<pBools | 1<<pLive
	return w | c.below(s.serial)<<pSerial | c.group(t, s.group)<<pGroup, nil
}

func bit(b bool, at uint) uint64 {
	if b {
		return 1 << at
	}
	return 0
}

func (c *Codec) bucket(t *TCP, p int32) (uint64, error) {
	b := &t.ports[p]
	w := uint64(b.fast+1)<<pbFast | uint64(b.share+1)<<pbShare | 1<<pbLive
	if b.share > 0 {
		k, err := c.key(&b.key, b.share == rc.FastStrict)
		if err != nil {
			return 0, err
		}
		w |= k << pbKey
	}
	if !c.rules.addrBuckets {
		return w, nil
	}
	for x := b.addrs; x >= 0; x = t.addrs[x].next {
		ab := &t.addrs[x]
		a := c.addr(ab.addr)
		if a < 0 {
			return 0, &OutOfDomain{"the address of a bucket"}
		}
		w |= bit(c.rules.releaseUpdate && ab.fast == -1 && ab.share == -1, pbOpen+uint(a)) |
			bit(c.rules.makerCounts() && ab.made6, pbMade6+uint(a))
	}
	return w, nil
}

// key packs what the kernel's rules read of the cached socket: of ANY the user
// only.
func (c *Codec) key(k *key, strict bool) (uint64, error) {
	uid := c.uid(k.uid)
	if uid < 0 {
		return 0, &OutOfDomain{"the cached user"}
	}
	w := uint64(uid) << 5
	if strict {
		a := c.addr(k.addr)
		if a < 0 {
			return 0, &OutOfDomain{"the cached address"}
		}
		w |= uint64(a) | bit(k.is6, 4) | uint64(k.flags&c.rules.keyFlags())<<8
		if c.rules.keyDevice() {
			w |= uint64(k.dev) << 11
		}
	}
	return w, nil
}

// keyFlags are the flags of the cached socket that a match may read.
func (r *Rules) keyFlags() flags {
	switch {
	case r.exactStrict:
		return v6only | reuseAddr | reusePort
	case r.standInStrict:
		return v6only | reuseAddr
	}
	return v6only
}

// makerCounts reports whether the family of a bucket's maker decides and cannot
// be told from its owners.
func (r *Rules) makerCounts() bool { return !r.linkedByIPv6 && !r.noMappedTwin }

func (r *Rules) keyDevice() bool { return r.exactStrict || r.standInStrict }

// ownerNumber stands for a socket in an order word: 1 to 7 named, 8 to 14 other ends.
func ownerNumber(id rc.ID) uint64 {
	if id.IsOtherEnd() {
		return uint64(id.OtherEnd()) + 1 + MaxSockets
	}
	return uint64(id) + 1
}

func (c *Codec) order(t *TCP, s *State) {
	for k := len(c.dom.Ports) - 1; k >= 0; k-- {
		p := t.index.get(c.dom.Ports[k])
		if p < 0 {
			continue
		}
		n := 0
		for b := t.ports[p].addrs; b >= 0; b = t.addrs[b].next {
			for i := t.addrs[b].owners; i >= 0; i = t.owns[i].next {
				n++
				s.Order[0] = s.Order[0]<<4 | ownerNumber(t.socks[i].id)
			}
		}
		if !c.rules.addrOwnersOnly {
			for i := t.ports[p].owners; i >= 0; i = t.owns[i].nextP {
				s.Order[1] = s.Order[1]<<4 | ownerNumber(t.socks[i].id)
			}
		}
	}
}

// Bit is one bit of a cache's or of a socket's word.
type Bit struct {
	OfCache bool
	At      uint
}

// BitOrder lists the bits of a cache and of an owner's word such that those that
// the rules compare stand side by side: a good order for decision diagrams.
func BitOrder() []Bit {
	var bs []Bit
	cache := func(from, n uint) {
		for i := range n {
			bs = append(bs, Bit{true, from + i})
		}
	}
	pairs := func(key, word, n uint) {
		for i := range n {
			bs = append(bs, Bit{true, pbKey + key + i}, Bit{false, word + i})
		}
	}
	cache(pbFast, 4)
	cache(pbLive, 1)
	pairs(8, pFlags, 3)
	for i := range uint(5) {
		bs = append(bs, Bit{false, pFlags + 3 + i})
	}
	pairs(4, pSix, 1)
	pairs(5, pUID, 3)
	pairs(11, pDev, 2)
	pairs(0, pAddr, 4)
	for i := range uint(9) {
		bs = append(bs, Bit{false, pBools + i})
	}
	return bs
}
