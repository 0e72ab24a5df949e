package model

import (
	"encoding/binary"
	"net/netip"
)

// addr is an address in IPv6 form; an IPv4 one is v4-mapped.
type addr struct{ hi, lo uint64 }

const mappedPrefix = 0xffff << 32

var any4 = addr{0, mappedPrefix}

func makeAddr(a netip.Addr) addr {
	b := a.As16()
	return addr{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// netip gives a in the form of an IPv4 or IPv6 socket.
func (a addr) netip(is6 bool) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	if n := netip.AddrFrom16(b); is6 {
		return n
	} else {
		return n.Unmap()
	}
}

func (a addr) any6() bool { return a == addr{} }

// is4 reports whether a is IPv4 or v4-mapped.
func (a addr) is4() bool { return a.hi == 0 && a.lo>>32 == 0xffff }

func (a addr) wildcard() bool { return a.hi == 0 && (a.lo == 0 || a.lo == mappedPrefix) }

// wildcardOf is the address of a socket that asked for none.
func wildcardOf(is6 bool) addr {
	if is6 {
		return addr{}
	}
	return any4
}

// overlap reports whether two sockets can be reached through one address. The
// wildcards of one family overlap whatever their v6only flags; a v6only one
// keeps away from IPv4 and v4-mapped addresses, and that is all the flag does.
func overlap(a addr, aOnly bool, b addr, bOnly bool) bool {
	switch {
	case a == b:
		return true
	case a.any6():
		return !b.is4() || !aOnly
	case b.any6():
		return !a.is4() || !bOnly
	case a.is4() && b.is4():
		return a == any4 || b == any4
	}
	return false
}

// covers reports whether a cached address covers a binder's: the cached
// wildcard counts, the binder's does not (88d7fcfa3b1f). Two cells are wider
// than what the cached socket was tested against, and they are the kernel's: a
// cached 0.0.0.0 and a cached v6only :: both cover a dual-stack ::.
func covers(k addr, k6, kOnly bool, b addr, bOnly bool) bool {
	switch {
	case k.is4() && bOnly:
		return false // also of a v4-mapped binder that came to be v6only
	case k == b:
		return true
	case k.any6():
		return !b.is4() || !kOnly
	case k == any4:
		return b.is4() || b.any6() && !bOnly && !k6
	}
	return false
}
