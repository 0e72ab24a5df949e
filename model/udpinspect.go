package model

import (
	"fmt"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// CacheOf is no cache: UDP ports have none.
func (u *UDP) CacheOf(uint16) rc.Cache { return rc.Cache{} }

// Sockets calls yield for every live socket.
func (u *UDP) Sockets(yield func(*rc.Socket) bool) {
	for i := range u.socks {
		s := &u.socks[i]
		if !s.live {
			continue
		}
		v := rc.Socket{ID: s.id, Family: rc.UDP4, Opts: optsOf(s.flags), UID: s.uid, Dev: s.dev, CPU: s.asked, Range: s.span,
			Local:      netip.AddrPortFrom(s.addr.netip(s.is6), s.num),
			PortLocked: s.portLock, AddrLocked: s.addrLock, ByConnect: s.fromConn}
		if s.is6 {
			v.Family = rc.UDP6
		}
		if s.noPort {
			v.Opts |= rc.NoPort
		}
		if s.transparent {
			v.Opts |= rc.Transparent
		}
		if s.connected {
			v.State = rc.Connected
			peer := s.peer
			if !s.addr.is4() {
				peer = s.peer6
			}
			v.Peer = netip.AddrPortFrom(peer.netip(s.is6), s.dest)
		}
		if !yield(&v) {
			return
		}
	}
}

// The kinds of faults that a modelled kernel's tables can have.
const (
	faultSlot    = "in the slot of another address"
	faultMissing = "connected and not in the 4-tuple table"
	faultStale   = "in the 4-tuple table under another 4-tuple"
	faultLeft    = "in the 4-tuple table and not connected"
	faultCount   = "the counter of 4-tuple entries is wrong"
)

// Check verifies the structure. What is wrong with the kernel is a [rc.Faults]; an
// error of any other type is a mistake of the model.
func (u *UDP) Check() error {
	var faults rc.Faults
	for i := range u.socks {
		s := &u.socks[i]
		if !s.live || s.slot < 0 {
			continue
		}
		fault := func(kind, format string, args ...any) {
			faults = append(faults, rc.Fault{Kind: kind, Sock: s.id, Text: s.id.String() + " " + fmt.Sprintf(format, args...)})
		}
		if k := keyOf(s.addr, s.num); u.addrs[s.at].key != k {
			fault(faultSlot, "has address %s and is in the slot of %s", s.addr.netip(s.is6), u.addrs[s.at].key.addr.netip(true))
		}
		switch {
		case !u.rules.table:
		case s.connected && !s.hashed:
			fault(faultMissing, "is connected to %s and not in the 4-tuple table", netip.AddrPortFrom(s.peer6or4().netip(s.is6), s.dest))
		case s.hashed && !s.connected:
			fault(faultLeft, "is not connected and in the 4-tuple table under its old peer, port %d", s.key.dest)
		case s.hashed && s.key != s.tuple():
			fault(faultStale, "is connected to port %d and in the 4-tuple table under port %d", s.dest, s.key.dest)
		}
	}
	for a := range u.addrs {
		l := &u.addrs[a]
		n := int32(0)
		for i := range u.socks {
			if s := &u.socks[i]; s.live && s.hashed && s.at == int32(a) {
				n++
			}
		}
		if n != l.hash4 {
			faults = append(faults, rc.Fault{Kind: faultCount, Sock: rc.NoID, Text: fmt.Sprintf(
				"the slot of %s counts %d entries of the 4-tuple table and has %d", l.key.addr.netip(true), l.hash4, n)})
		}
	}
	if err := u.consistent(); err != nil {
		return err
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

func (s *udpSock) peer6or4() addr {
	if s.addr.is4() {
		return s.peer
	}
	return s.peer6
}

// consistent checks what no modelled kernel gets wrong.
func (u *UDP) consistent() error {
	listed := 0
	for p := range u.ports {
		l := &u.ports[p]
		if l.count == 0 {
			continue
		}
		n, prev := int32(0), none
		for i := l.first; i >= 0; i = u.socks[i].next {
			if s := &u.socks[i]; s.slot != int32(p) || s.prev != prev || s.num != l.port {
				return fmt.Errorf("%s is in the list of port %d and says port %d", s.id, l.port, s.num)
			}
			n, prev = n+1, i
		}
		if n != l.count || l.last != prev {
			return fmt.Errorf("port %d lists %d sockets and counts %d", l.port, n, l.count)
		}
		listed += int(n)
	}
	inAddr, hashed := 0, 0
	for a := range u.addrs {
		l := &u.addrs[a]
		if at, used := u.addrOf[l.key]; !used || at != int32(a) {
			continue // a free one
		}
		n, prev := int32(0), none
		for i := l.first; i >= 0 && l.count > 0; i = u.socks[i].nextA {
			s := &u.socks[i]
			if s.at != int32(a) || s.prevA != prev || prev >= 0 && u.socks[prev].order <= s.order {
				return fmt.Errorf("%s is out of place in the slot of %s", s.id, l.key.addr.netip(true))
			}
			n, prev = n+1, i
		}
		if n != l.count {
			return fmt.Errorf("the slot of %s lists %d sockets and counts %d", l.key.addr.netip(true), n, l.count)
		}
		inAddr += int(n)
	}
	for k, i := range u.tuples {
		for ; i >= 0; i = u.socks[i].nextT {
			if s := &u.socks[i]; !s.hashed || s.key != k {
				return fmt.Errorf("%s is in the 4-tuple table where it does not say it is", s.id)
			}
			hashed++
		}
	}
	off := 0
	for i := range u.socks {
		s := &u.socks[i]
		if s.hashed {
			hashed--
		}
		if s.slot >= 0 && s.live {
			listed, inAddr = listed-1, inAddr-1
		}
		off += u.offTable(int32(i))
	}
	if listed != 0 || inAddr != 0 || hashed != 0 || off != u.stale {
		return fmt.Errorf("the lists and the sockets differ: by %d in ports, %d in addresses, %d in 4-tuples, %d off the table", listed, inAddr, hashed, off-u.stale)
	}
	return nil
}
