package repro

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// bound is where a step leaves a socket that was bound to at before, as the trace
// writes it; another step than a bind that is granted leaves it there.
func bound(at netip.AddrPort, s *reusecheck.Step) netip.AddrPort {
	if s.Op.Verb != reusecheck.VBind || s.Want.Kind != reusecheck.OK {
		return at
	}
	if s.Want.Port != 0 {
		return netip.AddrPortFrom(s.Op.Addr.Addr(), s.Want.Port)
	}
	return s.Op.Addr
}

// meetsItself reports whether a connect that is granted ends where it starts: the
// socket is its own other end, nobody accepts, and closing it leaves what the
// other end closed last would leave.
func meetsItself(f reusecheck.Family, at netip.AddrPort, s *reusecheck.Step) bool {
	if s.Op.Verb != reusecheck.VConnect || f.IsUDP() || s.Want.Kind != reusecheck.OK {
		return false
	}
	loop4 := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	port, src, dst := at.Port(), at.Addr().Unmap(), s.Op.Addr.Addr().Unmap()
	if s.Want.Port != 0 {
		port = s.Want.Port
	}
	named := src.IsValid() && !src.IsUnspecified()
	switch {
	case !dst.IsUnspecified():
	case named:
		dst = src
	case dst.Is4() || at.Addr().Is4In6():
		dst = loop4
	default:
		dst = netip.IPv6Loopback()
	}
	if !named {
		if src = dst; dst.Is4() {
			src = loop4
		}
	}
	return src == dst && port == s.Op.Addr.Port()
}
