package reusecheck

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Order gives the sockets and namespaces of a state numbers that do not depend
// on their names: their places in it, from 1. Two states are the same up to
// names if under some order of each the same is written down of both.
type Order []ID

// Of is the number of id; 0 is that of nobody, and of one that is not in the
// order. The other end of a connection has its opener's number and the top bit.
func (o Order) Of(id ID) byte {
	if id == NoID {
		return 0
	}
	end := byte(0)
	if id.IsOtherEnd() {
		id, end = id.OtherEnd(), 1<<7
	}
	if i := slices.Index(o, id); i >= 0 {
		return byte(i+1) | end
	}
	return 0
}

// AppendState appends all that is known of s but its ID: equal sockets, and no
// others, append equal bytes.
func (s *Socket) AppendState(dst []byte, order Order) []byte {
	net := byte(0)
	if s.HasNet {
		net = order.Of(s.Net) + 1
	}
	dst = append(dst, net, byte(s.Family), byte(s.Opts), byte(s.Dev), byte(s.State), s.bits())
	dst = binary.LittleEndian.AppendUint32(dst, s.UID)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.CPU))
	dst = binary.LittleEndian.AppendUint16(dst, s.Range.Lo)
	dst = binary.LittleEndian.AppendUint16(dst, s.Range.Hi)
	return appendEnd(appendEnd(dst, s.Local), s.Peer)
}

func (s *Socket) bits() (b byte) {
	for i, set := range [...]bool{s.PortLocked, s.AddrLocked, s.ByConnect, s.HasNet} {
		if set {
			b |= 1 << i
		}
	}
	return b
}

func appendEnd(dst []byte, a netip.AddrPort) []byte {
	kind := byte(0)
	switch ip := a.Addr(); {
	case ip.Is4():
		kind = 4
	case ip.IsValid():
		kind = 6
	}
	ip := a.Addr().As16()
	return binary.LittleEndian.AppendUint16(append(append(dst, kind), ip[:]...), a.Port())
}
