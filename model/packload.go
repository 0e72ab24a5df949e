package model

import (
	"fmt"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// Load makes t the stack that s was packed from, as far as any rule can tell.
func (c *Codec) Load(t *TCP, p *Profile, s *State) error {
	t.rules, t.profile = p.rules, p
	if err := t.Reset(c.dom.Config); err != nil {
		return err
	}
	for id := range s.Socks {
		if s.Socks[id] != 0 {
			c.load(t, rc.ID(id), s.Socks[id])
		}
	}
	for id := range s.Ends {
		if s.Ends[id] == 0 {
			continue
		}
		e := c.load(t, rc.ID(id).OtherEnd(), s.Ends[id])
		if i := t.find(rc.ID(id)); i >= 0 {
			t.socks[i].other, t.socks[e].other = e, i
		}
	}
	t.listenSerial = laterSerial
	c.joinAll(t, s)
	for k, w := range s.Ports {
		if w>>pbLive&1 == 0 {
			continue
		}
		b := t.index.get(c.dom.Ports[k])
		if b < 0 {
			return fmt.Errorf("port %d has a bucket and no owner", c.dom.Ports[k])
		}
		c.loadBucket(t, b, w)
	}
	return nil
}

// The serials of loaded listeners are their ranks; groups have numbers of their
// own, and later serials are beyond both.
const (
	groupBase   = 1 << 8
	laterSerial = 1 << 9
)

func (c *Codec) load(t *TCP, id rc.ID, w uint64) int32 {
	i := t.create(id)
	s, o := &t.socks[i], &t.owns[i]
	o.flags = flags(w >> pFlags)
	s.addr, s.peer = c.addrs[w>>pAddr&15], c.addrs[w>>pPeer&15]
	s.is6 = w>>pSix&1 != 0
	if o.flags&timeWait != 0 {
		t.waits[familyIndex(s.is6)]++
	}
	s.num, s.dest = c.portOf(w>>pPort&3), c.portOf(w>>pDest&3)
	if u := w >> pUID & 7; u < 7 {
		o.uid = c.dom.UIDs[u]
	}
	o.dev = rc.Dev(w >> pDev & 3)
	b := w >> pBools
	s.noPort, s.transparent, s.portLock, s.addrLock = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0
	s.linked, s.sentSYN, s.listened, s.behind, s.twin = b&16 != 0, b&32 != 0, b&64 != 0, b&128 != 0, b&256 != 0
	if n := w >> pSerial & 31; n > 0 {
		s.serial = int32(n)
	}
	if n := w >> pGroup & 31; n > 0 {
		s.group = groupBase + int32(n)
	}
	return i
}

func (c *Codec) portOf(code uint64) uint16 {
	if code == 0 {
		return 0
	}
	return c.dom.Ports[code-1]
}

// joinAll enters the sockets that hold a port into their buckets, the oldest
// first where the state knows their places.
func (c *Codec) joinAll(t *TCP, s *State) {
	for w := s.Order[0]; w != 0; w >>= 4 {
		c.join(t, ownerOf(w&15), s)
	}
	for i := range t.socks {
		if t.socks[i].num != 0 && t.owns[i].port < 0 {
			c.join(t, t.socks[i].id, s)
		}
	}
	if s.Order[1] != 0 {
		relink(t, s.Order[1])
	}
}

func ownerOf(number uint64) rc.ID {
	if number > MaxSockets {
		return rc.ID(number - 1 - MaxSockets).OtherEnd()
	}
	return rc.ID(number - 1)
}

func (c *Codec) join(t *TCP, id rc.ID, s *State) {
	i := t.find(id)
	k := &t.socks[i]
	p := t.portBucketFor(k.num)
	if t.rules.noTimeWait2 && t.owns[i].flags&timeWait != 0 {
		t.join(i, p, none)
		return
	}
	t.join(i, p, t.addrBucketFor(p, k.addr, k.is6, 0))
}

// relink gives the ports' own lists of owners the order that a state has.
func relink(t *TCP, order uint64) {
	for p := range t.ports {
		t.ports[p].owners = none
	}
	for w := order; w != 0; w >>= 4 {
		i := t.find(ownerOf(w & 15))
		pb := &t.ports[t.owns[i].port]
		t.owns[i].prevP, t.owns[i].nextP = none, pb.owners
		if pb.owners >= 0 {
			t.owns[pb.owners].prevP = i
		}
		pb.owners = i
	}
}

func (c *Codec) loadBucket(t *TCP, p int32, w uint64) {
	b := &t.ports[p]
	b.fast, b.share = int8(w>>pbFast&3)-1, int8(w>>pbShare&3)-1
	if b.share > 0 {
		k := w >> pbKey
		b.key = key{uid: 0, addr: c.addrs[k&15], is6: k>>4&1 != 0, flags: flags(k >> 8 & 7), dev: rc.Dev(k >> 11 & 3)}
		if u := k >> 5 & 7; u < 7 {
			b.key.uid = c.dom.UIDs[u]
		}
	}
	for x := b.addrs; x >= 0; x = t.addrs[x].next {
		ab := &t.addrs[x]
		a := uint(c.addr(ab.addr))
		if w>>(pbOpen+a)&1 != 0 {
			ab.fast, ab.share = -1, -1
		}
		if t.rules.makerCounts() {
			ab.made6 = w>>(pbMade6+a)&1 != 0
		}
	}
}

// Renaming says what each address code, user code and device becomes.
type Renaming struct {
	Addr [maxAddrs]uint8
	UID  [8]uint8
	Dev  [4]uint8
}

// NoRenaming leaves everything as it is.
func NoRenaming() *Renaming {
	r := &Renaming{}
	for i := range r.Addr {
		r.Addr[i] = uint8(i)
	}
	for i := range r.UID {
		r.UID[i] = uint8(i)
	}
	for i := range r.Dev {
		r.Dev[i] = uint8(i)
	}
	return r
}

// Sock renames within a socket's word.
func (r *Renaming) Sock(w uint64) uint64 {
	if w == 0 {
		return 0
	}
	const mask = 15<<pAddr | 7<<pUID | 3<<pDev | 15<<pPeer
	return w&^mask | uint64(r.Addr[w>>pAddr&15])<<pAddr | uint64(r.Addr[w>>pPeer&15])<<pPeer |
		uint64(r.UID[w>>pUID&7])<<pUID | uint64(r.Dev[w>>pDev&3])<<pDev
}

// Port renames within a port's word, the caller's bits excepted.
func (r *Renaming) Port(w uint64) uint64 {
	if w>>pbShare&3 > 1 { // there is a key
		k := w >> pbKey
		const mask = 15 | 7<<5 | 3<<11
		n := k&(1<<13-1)&^mask | uint64(r.Addr[k&15]) | uint64(r.UID[k>>5&7])<<5 | uint64(r.Dev[k>>11&3])<<11
		w = w&^((1<<13-1)<<pbKey) | n<<pbKey
	}
	if bits := w >> pbOpen & (1<<maxAddrs - 1); bits != 0 {
		w = w&^((1<<maxAddrs-1)<<pbOpen) | r.bits(bits)<<pbOpen
	}
	if bits := w >> pbMade6 & (1<<maxAddrs - 1); bits != 0 {
		w = w&^((1<<maxAddrs-1)<<pbMade6) | r.bits(bits)<<pbMade6
	}
	return w
}

func (r *Renaming) bits(set uint64) uint64 {
	n := uint64(0)
	for i := range r.Addr {
		n |= set >> i & 1 << r.Addr[i]
	}
	return n
}

// Cache is the cache that a port's word tells of.
func (c *Codec) Cache(w uint64) rc.Cache {
	if w>>pbLive&1 == 0 {
		return rc.Cache{}
	}
	r := rc.Cache{Exists: true, FastReuse: int8(w>>pbFast&3) - 1, FastReusePort: int8(w>>pbShare&3) - 1}
	if r.FastReusePort > 0 {
		k := w >> pbKey
		if u := k >> 5 & 7; u < 7 {
			r.UID = c.dom.UIDs[u]
		}
		r.Family = rc.TCP4
		if k>>4&1 != 0 {
			r.Family = rc.TCP6
		}
		r.V6Only = flags(k>>8&7)&v6only != 0
		r.Addr = c.addrs[k&15].netip(k>>4&1 != 0)
	}
	return r
}

// Addr is the address that a code stands for, IPv4 ones in plain form.
func (c *Codec) Addr(code int) netip.Addr {
	if code >= len(c.addrs) {
		return netip.Addr{}
	}
	return c.addrs[code].netip(false)
}
