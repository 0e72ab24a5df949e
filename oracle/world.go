package oracle

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// world is what a namespace's configuration says of ports and addresses.
type world struct {
	ports    reusecheck.PortRange   // ip_local_port_range
	reserved []reusecheck.PortRange // ip_local_reserved_ports: ascending, apart
	autobind bool                   // ip_autobind_reuse
	nonlocal bool                   // ip_nonlocal_bind, of either family
}

// configure reads the settings. One that it does not know, or cannot read, has
// no bearing on reuse or is for the stack to refuse.
func (w *world) configure(c *reusecheck.Config) {
	*w = world{ports: c.Ports}
	for _, s := range c.Sysctl {
		name := strings.ReplaceAll(s.Name, "/", ".")
		name = name[strings.LastIndexByte(name, '.')+1:]
		switch name {
		case "ip_local_port_range":
			if r, ok := parseRange(strings.Join(strings.Fields(s.Value), "-")); ok && w.ports.Size() == 0 {
				w.ports = r
			}
		case "ip_local_reserved_ports":
			w.reserved = parseRanges(s.Value)
		case "ip_autobind_reuse":
			w.autobind = s.Value != "0"
		case "ip_nonlocal_bind":
			w.nonlocal = w.nonlocal || s.Value != "0"
		}
	}
	if w.ports.Size() == 0 {
		w.ports = reusecheck.DefaultPorts
	}
}

func parseRange(s string) (r reusecheck.PortRange, ok bool) {
	lo, hi, two := strings.Cut(strings.TrimSpace(s), "-")
	if !two {
		hi = lo
	}
	l, errLo := strconv.ParseUint(lo, 10, 16)
	h, errHi := strconv.ParseUint(hi, 10, 16)
	return reusecheck.PortRange{Lo: uint16(l), Hi: uint16(h)}, errLo == nil && errHi == nil && l <= h
}

// parseRanges reads a comma separated list of ports and ranges.
func parseRanges(s string) []reusecheck.PortRange {
	var all []reusecheck.PortRange
	for part := range strings.SplitSeq(s, ",") {
		if r, ok := parseRange(part); ok {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b reusecheck.PortRange) int { return int(a.Lo) - int(b.Lo) })
	var apart []reusecheck.PortRange
	for _, r := range all {
		if n := len(apart); n > 0 && r.Lo <= apart[n-1].Hi {
			apart[n-1].Hi = max(apart[n-1].Hi, r.Hi)
			continue
		}
		apart = append(apart, r)
	}
	return apart
}

// rangeFor is the automatic range of one socket: IP_LOCAL_PORT_RANGE narrows
// the namespace's, and a bound that lies outside it has no effect (ip(7)).
func (w *world) rangeFor(s *reusecheck.Socket) reusecheck.PortRange {
	r := w.ports
	if s.Range.Lo != 0 && w.ports.Contains(s.Range.Lo) {
		r.Lo = s.Range.Lo
	}
	if s.Range.Hi != 0 && w.ports.Contains(s.Range.Hi) {
		r.Hi = s.Range.Hi
	}
	return r
}

// isReserved: a reserved port is never picked automatically; to name one is
// fine (ip-sysctl, ip_local_reserved_ports).
func (w *world) isReserved(p uint16) bool {
	for _, r := range w.reserved {
		if r.Contains(p) {
			return true
		}
	}
	return false
}

// reservedIn is how many ports of r are reserved.
func (w *world) reservedIn(r reusecheck.PortRange) int {
	n := 0
	for _, res := range w.reserved {
		n += reusecheck.PortRange{Lo: max(r.Lo, res.Lo), Hi: min(r.Hi, res.Hi)}.Size()
	}
	return n
}

// locality says whether an address is one of the namespace's own.
type locality uint8

const (
	local locality = iota
	foreign
	unsaid // the documents do not tell
)

var (
	loopback4 = netip.MustParseAddr("127.0.0.1")
	net127    = netip.MustParsePrefix("127.0.0.0/8")
	// locals6 are the IPv6 addresses that a trace's namespace has.
	locals6 = [...]netip.Addr{
		netip.IPv6Loopback(), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2"),
	}
)

// isLocal is for an address that is not the wildcard, unmapped.
func isLocal(a netip.Addr) bool {
	if a.Is4() {
		return net127.Contains(a)
	}
	return a == locals6[0] || a == locals6[1] || a == locals6[2]
}

// locate says whether s may bind to a (bind(2): EADDRNOTAVAIL for an address
// that is not local, unless IP_TRANSPARENT or ip_nonlocal_bind, ip(7)).
func (w *world) locate(s *reusecheck.Socket, a netip.Addr) locality {
	a = a.Unmap()
	veth := s.Dev == reusecheck.Dev1 || s.Dev == reusecheck.Dev2
	switch {
	case a.IsUnspecified():
		return local
	case a.IsMulticast() || a.IsLinkLocalUnicast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return unsaid
	case a == netip.IPv6Loopback() && veth:
		// It is of link-local scope, on the loopback device (RFC 4291,
		// 2.5.3); no document says that bind looks at that.
		return unsaid
	case isLocal(a):
		return local
	case w.nonlocal || s.Opts.Has(reusecheck.Transparent):
		return local
	}
	return foreign
}
