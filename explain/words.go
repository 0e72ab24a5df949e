package explain

import (
	"fmt"
	"net/netip"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// listed joins words as a sentence does, and counts those above most.
func listed(words []string, most int) string {
	if n := len(words) - most; n > 0 {
		words = append(words[:most:most], fmt.Sprintf("%d more", n))
	}
	switch n := len(words); n {
	case 0:
		return "nobody"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// where says what traffic an address takes.
func where(f rc.Family, a netip.Addr, opts rc.Opt) string {
	a = rc.Canonical(f, a)
	switch {
	case a.Is4() && a.IsUnspecified(), a.Is4In6() && a.Unmap().IsUnspecified():
		return "every IPv4 address"
	case a.IsUnspecified() && opts.Has(rc.V6Only):
		return "every IPv6 address"
	case a.IsUnspecified():
		return "every address, IPv6 and IPv4 (dual-stack)"
	case a.Is4In6():
		return a.Unmap().String() + ", IPv4 through an IPv6 socket"
	}
	return a.String()
}

// about describes a socket where it stands.
func about(s *rc.Socket) string {
	parts := []string{s.Family.String()}
	if s.Owner() {
		parts[0] += " " + s.Local.Addr().String()
	}
	opts := s.Opts
	if !s.Local.Addr().IsUnspecified() {
		opts &^= rc.V6Only // true of every such socket: it tells nothing
	} else if s.Family.Is6() && !opts.Has(rc.V6Only) {
		parts = append(parts, "dual-stack")
	}
	if opts != 0 {
		parts = append(parts, opts.String())
	} else {
		parts = append(parts, "no option")
	}
	if s.UID != 0 {
		parts = append(parts, fmt.Sprintf("user %d", s.UID))
	}
	if s.Dev != rc.NoDev {
		parts = append(parts, "on "+s.Dev.String())
	}
	if s.CPU != rc.NoCPU {
		parts = append(parts, "for processor "+s.CPU.String())
	}
	switch s.State {
	case rc.Listening:
		parts = append(parts, "listening")
	case rc.Connected:
		to := "connected"
		if s.Peer.IsValid() {
			to += " to " + s.Peer.String()
		}
		parts = append(parts, to)
	case rc.TimeWait:
		parts = append(parts, "in TIME_WAIT")
	}
	return strings.Join(parts, ", ")
}

// meet says in what two sockets that are known to overlap do so. The binder asks
// for addr.
func meet(bName string, b *rc.Socket, addr netip.Addr, oName string, o *rc.Socket) string {
	own, addr := o.Local.Addr(), rc.Canonical(b.Family, addr)
	wild := func(a netip.Addr) bool { return a.Unmap().IsUnspecified() }
	switch {
	case own.Unmap() == addr.Unmap() && wild(addr):
		return fmt.Sprintf("%s and %s both want %s", oName, bName, where(b.Family, addr, b.Opts))
	case own.Unmap() == addr.Unmap():
		return fmt.Sprintf("%s is on %s too", oName, addr.Unmap())
	case own.IsUnspecified() && own.Is6() && addr.Unmap().Is4():
		return fmt.Sprintf("%s on [::] is dual-stack, so it takes IPv4 as well and covers %s", oName, addr.Unmap())
	case addr.IsUnspecified() && addr.Is6() && own.Unmap().Is4():
		return fmt.Sprintf("%s on [::] would be dual-stack, so it would take IPv4 as well, also %s where %s is", bName, own.Unmap(), oName)
	case wild(own):
		return fmt.Sprintf("%s is on %s, which covers %s", oName, own.Unmap(), addr)
	case wild(addr):
		return fmt.Sprintf("%s asks for %s, which covers the %s of %s", bName, addr.Unmap(), own, oName)
	}
	return fmt.Sprintf("the addresses of %s and %s overlap", bName, oName)
}

// theRule is what decides about two overlapping sockets, for a port that was named.
const theRule = "Two TCP sockets whose addresses overlap share a port only if both have reuseaddr and the one that holds it does not listen, " +
	"or if both have reuseport and belong to one user."

const theUDPRule = "Two UDP sockets whose addresses overlap share a port only if both have reuseaddr, " +
	"or if both have reuseport and belong to one user."

// rule is a reason with the names of those whom it is about.
func rule(r rc.Reason, b *rc.Socket, bName string, o *rc.Socket, oName string) string {
	switch r {
	case rc.RefuseNotShared:
		return bName + " has neither reuseaddr nor reuseport"
	case rc.RefuseNoReuseAddr:
		return fmt.Sprintf("%s has reuseaddr and %s has not: both need it", bName, oName)
	case rc.RefuseNoReusePort:
		return fmt.Sprintf("%s has reuseport and %s has not: both need it", bName, oName)
	case rc.RefuseListening:
		return fmt.Sprintf("both have reuseaddr, but %s listens, and reuseaddr does not pass a listener", oName)
	case rc.RefuseUID:
		if b != nil && o != nil && b.UID != o.UID {
			return fmt.Sprintf("both have reuseport, but %s belongs to user %d and %s to user %d", oName, o.UID, bName, b.UID)
		}
		return "both have reuseport, but the kernel takes them for two users' sockets"
	case rc.RefuseAutomatic:
		return "an automatic port is shared with nobody whose address overlaps, whatever the options"
	case rc.RefuseTuple:
		return oName + " has the same connection already: same addresses and ports at both ends"
	case rc.RefuseExplicit:
		return oName + " bound the port by number, and connect shares no such port"
	case rc.RefuseExhausted:
		return "no port of the range is free"
	case rc.RefuseNotLocal:
		return "the address is none of this host's"
	case rc.RefuseDevice:
		return "the address cannot be used on the socket's device"
	case rc.RefuseNoListener:
		return "nobody listens there"
	case rc.RefuseState:
		return bName + " cannot do that in the state it is in"
	}
	return r.String()
}

// cacheText is a cache in the kernel source's names for the values.
func cacheText(c rc.Cache) string {
	if !c.Exists {
		return "no bucket"
	}
	return fmt.Sprintf("fastreuse %d, fastreuseport %s", c.FastReuse, portField(c))
}

func portField(c rc.Cache) string {
	switch {
	case c.FastReusePort == rc.FastAny:
		return fmt.Sprintf("%s of user %d", c.PortName(), c.UID)
	case c.FastReusePort == rc.FastStrict && c.Addr.IsValid():
		return fmt.Sprintf("%s, keyed to %s of user %d", c.PortName(), c.Addr, c.UID)
	}
	return c.PortName()
}

// promise says whom a cache lets in unlooked from now on.
func promise(c rc.Cache) string {
	var who []string
	if c.FastReuse == rc.FastReuse {
		who = append(who, "a binder with reuseaddr")
	}
	switch c.FastReusePort {
	case rc.FastAny:
		who = append(who, fmt.Sprintf("a binder of user %d with reuseport", c.UID))
	case rc.FastStrict:
		who = append(who, fmt.Sprintf("a binder of user %d with reuseport whose address the key's covers", c.UID))
	case rc.FastConnect:
		return "the port is open to other connects"
	}
	if len(who) == 0 {
		return "it lets nobody in without a look"
	}
	return "it lets in " + strings.Join(who, ", and ") + ", without a look"
}
