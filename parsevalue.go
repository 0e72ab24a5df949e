package reusecheck

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// addrPort reads ADDR:PORT, or ADDR[:PORT] if the port is not needed.
func (p *parser) addrPort(w word, needPort bool) (netip.AddrPort, *ParseError) {
	addr, port, hasPort := w.text, "", false
	portAt := w.at
	bracket := strings.HasPrefix(addr, "[")
	if i := strings.LastIndexByte(addr, ':'); i >= 0 && i > strings.LastIndexByte(addr, ']') {
		addr, port, hasPort = addr[:i], addr[i+1:], true
		portAt += i + 1
	}
	const expected = "an address such as 127.0.0.1:40000 or [::1]:40000"
	switch {
	case !bracket && strings.ContainsRune(addr, ':'):
		return netip.AddrPort{}, p.errorAt(w.at, fmt.Sprintf("the IPv6 address in %q is not in brackets", w.text), expected)
	case bracket && !strings.HasSuffix(addr, "]"):
		return netip.AddrPort{}, p.errorAt(w.at, fmt.Sprintf("the bracket in %q is not closed before the port", w.text), expected)
	case bracket:
		addr = addr[1 : len(addr)-1]
	}
	a, err := netip.ParseAddr(addr)
	switch {
	case err != nil || a.Is4() == bracket:
		return netip.AddrPort{}, p.errorAt(w.at, fmt.Sprintf("%q is not an address", w.text), expected)
	case a.Zone() != "":
		return netip.AddrPort{}, p.errorAt(w.at, fmt.Sprintf("the address in %q has a zone", w.text), "an address without a zone; a device is given with dev=")
	case !hasPort && needPort:
		return netip.AddrPort{}, p.errorAt(w.at+len(w.text), fmt.Sprintf("the port of %s is missing", w.text), expected)
	case !hasPort:
		return netip.AddrPortFrom(a, 0), nil
	}
	n, ok := parseNumber(port, 1<<16-1)
	if !ok || n == 0 && !needPort {
		return netip.AddrPort{}, p.errorAt(portAt, fmt.Sprintf("%q is not a port", port), "a number "+portBounds(needPort)+" without leading zeros")
	}
	return netip.AddrPortFrom(a, uint16(n)), nil
}

func portBounds(zero bool) string {
	if zero {
		return "from 0 to 65535"
	}
	return "from 1 to 65535, or no port for the listener's own,"
}

func (p *parser) uid(w word) (uint32, *ParseError) {
	n, ok := parseNumber(w.text, 1<<32-1)
	if !ok {
		return 0, p.errorAt(w.at, fmt.Sprintf("%q is not a uid", w.text), "uid=N, a number without leading zeros")
	}
	return uint32(n), nil
}

func (p *parser) device(w word, none bool) (Dev, *ParseError) {
	d := slices.Index(devNames[:], w.text)
	if d < 0 || d == int(NoDev) && !none {
		expected, known := "lo, d1 or d2", devNames[DevLo:]
		if none {
			expected, known = "lo, d1, d2 or none", devNames[:]
		}
		return 0, p.errorAt(w.at, fmt.Sprintf("unknown device %q", w.text), expected, nearest(w.text, known))
	}
	return Dev(d), nil
}

func (p *parser) processor(w word, none bool) (CPU, *ParseError) {
	if none && w.text == NoCPU.String() {
		return NoCPU, nil
	}
	n, ok := parseNumber(w.text, MaxProcessor)
	if !ok {
		expected := fmt.Sprintf("cpu=N, a number from 0 to %d without leading zeros", MaxProcessor)
		if none {
			expected += ", or cpu=none"
		}
		return NoCPU, p.errorAt(w.at, fmt.Sprintf("%q is not a processor", w.text), expected)
	}
	return Processor(int(n)), nil
}

func (p *parser) portRange(w word) (PortRange, *ParseError) {
	lo, hi, _ := strings.Cut(w.text, "-")
	l, okLo := parseNumber(lo, 1<<16-1)
	h, okHi := parseNumber(hi, 1<<16-1)
	r := PortRange{uint16(l), uint16(h)}
	if !okLo || !okHi || badRange(r) {
		return r, p.errorAt(w.at, fmt.Sprintf("%q is not a range of ports", w.text), "LO-HI with 1 <= LO <= HI <= 65535")
	}
	return r, nil
}

// parseNumber reads a decimal number up to limit, which has one spelling only.
func parseNumber(s string, limit uint64) (uint64, bool) {
	if s == "" || len(s) > 10 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n := uint64(0)
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + uint64(s[i]-'0')
	}
	return n, n <= limit
}
