package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// extent is how much of one IP version's traffic a bound address takes.
type extent uint8

const (
	nothing extent = iota
	oneAddr
	everyAddr
)

// reach is the traffic that a socket bound to an address takes. Two sockets
// overlap when some packet could be meant for both, which is why the rule is
// symmetric and reads no options but IPV6_V6ONLY:
//
//   - the wildcard takes every local address (ip(7), INADDR_ANY);
//   - IPv4 and IPv6 share one port space, and a v4-mapped address is that IPv4
//     address (ipv6(7); RFC 3493 section 3.7);
//   - the IPv6 wildcard takes IPv4 traffic too, unless IPV6_V6ONLY (ipv6(7);
//     RFC 3493 section 5.3). A specific IPv6 address never does.
type reach struct {
	v4, v6 extent
	addr   netip.Addr // unmapped; valid where an extent is oneAddr
}

func reachOf(opts reusecheck.Opt, a netip.Addr) reach {
	switch a = a.Unmap(); {
	case !a.IsValid():
		return reach{}
	case a.Is4() && a.IsUnspecified():
		return reach{v4: everyAddr}
	case a.Is4():
		return reach{v4: oneAddr, addr: a}
	case !a.IsUnspecified():
		return reach{v6: oneAddr, addr: a}
	case opts.Has(reusecheck.V6Only):
		return reach{v6: everyAddr}
	}
	return reach{v4: everyAddr, v6: everyAddr}
}

// meets reports whether some packet is within both reaches.
func (r *reach) meets(o *reach) bool {
	same := r.addr == o.addr
	return r.v4.meets(o.v4, same) || r.v6.meets(o.v6, same)
}

func (e extent) meets(o extent, same bool) bool {
	if e == nothing || o == nothing {
		return false
	}
	return e == everyAddr || o == everyAddr || same
}

// devicesMeet reports whether sockets bound to devices a and b can both see a
// packet: a bound socket sees its device's packets only (socket(7),
// SO_BINDTODEVICE), an unbound one sees all.
func devicesMeet(a, b reusecheck.Dev) bool {
	return a == b || a == reusecheck.NoDev || b == reusecheck.NoDev
}
