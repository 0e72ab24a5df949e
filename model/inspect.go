package model

import (
	"fmt"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// CacheOf is the cache of a port's bucket.
func (t *TCP) CacheOf(port uint16) rc.Cache {
	p := none
	if port != 0 {
		p = t.index.get(port)
	}
	if p < 0 {
		return rc.Cache{}
	}
	b := &t.ports[p]
	c := rc.Cache{Exists: true, FastReuse: b.fast, FastReusePort: b.share}
	if b.share > 0 {
		c.UID, c.V6Only = b.key.uid, b.key.flags&v6only != 0
		c.Family = rc.TCP4
		if b.key.is6 {
			c.Family = rc.TCP6
		}
		c.Addr = b.key.addr.netip(b.key.is6)
	}
	return c
}

// pairOf is the address bucket's own pair, of the socket that a step was about.
func (t *TCP) pairOf(op rc.Op) rc.Pair {
	id := op.Sock
	if op.Verb == rc.VInherit {
		id = op.Child
	}
	return t.PairOf(id)
}

// PairOf is the pair of cache fields of the address bucket that a socket is in:
// nothing before 6.18, where address buckets have none.
func (t *TCP) PairOf(id rc.ID) rc.Pair {
	i := t.find(id)
	if i < 0 || t.owns[i].addr < 0 || !t.rules.releaseUpdate {
		return rc.Pair{}
	}
	b := &t.addrs[t.owns[i].addr]
	return rc.Pair{Exists: true, FastReuse: b.fast, FastReusePort: b.share}
}

// Sockets calls yield for every live socket.
func (t *TCP) Sockets(yield func(*rc.Socket) bool) {
	for i := range t.socks {
		s := &t.socks[i]
		if !s.live {
			continue
		}
		o := &t.owns[i]
		v := rc.Socket{ID: s.id, Family: rc.TCP4, UID: o.uid, Dev: o.dev, CPU: s.cpu, Range: s.span,
			Local:      netip.AddrPortFrom(s.addr.netip(s.is6), s.num),
			PortLocked: s.portLock, AddrLocked: s.addrLock, ByConnect: o.flags&byConnect != 0}
		if s.is6 {
			v.Family = rc.TCP6
		}
		v.Opts = optsOf(o.flags)
		if s.noPort {
			v.Opts |= rc.NoPort
		}
		if s.transparent {
			v.Opts |= rc.Transparent
		}
		switch {
		case o.flags&listens != 0:
			v.State = rc.Listening
		case o.flags&established != 0:
			v.State = rc.Connected
		case o.flags&timeWait != 0:
			v.State = rc.TimeWait
		}
		if v.State == rc.Connected || v.State == rc.TimeWait {
			v.Peer = netip.AddrPortFrom(s.peer.netip(s.is6), s.dest)
		}
		if !yield(&v) {
			return
		}
	}
}

func optsOf(f flags) rc.Opt {
	var o rc.Opt
	if f&reuseAddr != 0 {
		o |= rc.ReuseAddr
	}
	if f&reusePort != 0 {
		o |= rc.ReusePort
	}
	if f&v6only != 0 {
		o |= rc.V6Only
	}
	return o
}

// Check verifies the structure: every owner of a port is in exactly one address
// bucket, the one of its address; no bucket is empty; the lists and the counts
// agree.
func (t *TCP) Check() error {
	for p := range t.ports {
		if !t.ports[p].live {
			continue
		}
		if err := t.checkPort(int32(p)); err != nil {
			return fmt.Errorf("port %d: %w", t.ports[p].port, err)
		}
	}
	for i := range t.socks {
		s, o := &t.socks[i], &t.owns[i]
		switch {
		case !s.live:
		case (s.num != 0) != (o.port >= 0):
			return fmt.Errorf("%s has port %d and bucket %d", s.id, s.num, o.port)
		case o.port < 0:
		case t.ports[o.port].port != s.num:
			return fmt.Errorf("%s is on port %d and in the bucket of port %d", s.id, s.num, t.ports[o.port].port)
		case t.rules.addrBuckets && o.addr < 0:
			return fmt.Errorf("%s is in no address bucket", s.id)
		case o.addr >= 0 && t.addrs[o.addr].addr != s.addr:
			return fmt.Errorf("%s has address %s and is in the address bucket of %s", s.id, t.sockAddr(int32(i)),
				t.addrs[o.addr].addr.netip(s.is6))
		}
	}
	return nil
}

func (t *TCP) checkPort(p int32) error {
	pb := &t.ports[p]
	if pb.count == 0 {
		return fmt.Errorf("the bucket is empty")
	}
	if !t.rules.addrOwnersOnly {
		n := int32(0)
		for i := pb.owners; i >= 0; i = t.owns[i].nextP {
			if t.owns[i].port != p {
				return fmt.Errorf("%s is listed and not an owner", t.socks[i].id)
			}
			n++
		}
		if n != pb.count {
			return fmt.Errorf("%d owners are listed, %d counted", n, pb.count)
		}
	}
	if !t.rules.addrBuckets {
		return nil
	}
	total := int32(0)
	for b := pb.addrs; b >= 0; b = t.addrs[b].next {
		ab := &t.addrs[b]
		n, connects := int32(0), int32(0)
		for i := ab.owners; i >= 0; i = t.owns[i].next {
			if t.owns[i].addr != b || t.owns[i].port != p {
				return fmt.Errorf("%s is in the list of an address bucket that is not its own", t.socks[i].id)
			}
			if t.owns[i].flags&byConnect != 0 {
				connects++
			}
			n++
		}
		switch {
		case n == 0:
			return fmt.Errorf("the address bucket of %s is empty", ab.addr.netip(true))
		case n != ab.count || connects != ab.connects:
			return fmt.Errorf("the address bucket of %s lists %d owners (%d by connect) and counts %d (%d)",
				ab.addr.netip(true), n, connects, ab.count, ab.connects)
		}
		total += n
	}
	if total != pb.count && !t.rules.noTimeWait2 {
		return fmt.Errorf("%d owners are in address buckets, %d own the port", total, pb.count)
	}
	return nil
}
