package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Datagram is one that arrives, with unmapped addresses.
type Datagram struct {
	From, To netip.AddrPort
	Dev      reusecheck.Dev
}

// DatagramOf is what a send operation lets arrive: on the loopback unless it
// says otherwise, for no other device has an address.
func DatagramOf(op reusecheck.Op) Datagram {
	d := Datagram{unmapped(op.From), unmapped(op.Addr), op.Dev}
	if d.Dev == reusecheck.NoDev {
		d.Dev = reusecheck.DevLo
	}
	return d
}

// Fit is how well a socket fits a datagram, the more the better; 0 is not at all.
// It compares what the socket says of the datagram, the weightiest first: its
// local address, its peer, its device, and of an IPv4 datagram its family.
//
// Sources: ip(7) and udp(7) say what a socket receives; connect(2) that a
// connected one hears its peer only; socket(7) that a bound one hears its device
// only. Of who wins the documents say no more than the kernel's selftests:
// reuseport_addr_any (address before wildcard), reuseport_dualstack (IPv4 before
// dual-stack), and the commits 4cdeeee9252a, 8d6c414cd2fb and acdcecc61285.
type Fit uint8

// What a socket can say of a datagram.
const (
	fits4 Fit = 1 << iota // it is of the datagram's own family
	fitsDevice
	fitsPeer
	fitsAddress
	fitsAtAll
)

// FitOf scores one socket.
func FitOf(s *reusecheck.Socket, d *Datagram) Fit {
	r, there := reachOf(s.Opts, s.Local.Addr()), reachOf(0, d.To.Addr())
	switch {
	case s.Local.Port() != d.To.Port() || !r.meets(&there):
		return 0
	case s.Dev != reusecheck.NoDev && s.Dev != d.Dev:
		return 0
	case s.State == reusecheck.Connected && unmapped(s.Peer) != d.From:
		return 0
	}
	f := fitsAtAll
	if s.Local.Addr().Unmap() == d.To.Addr() {
		f |= fitsAddress
	}
	if s.State == reusecheck.Connected {
		f |= fitsPeer
	}
	if s.Dev != reusecheck.NoDev {
		f |= fitsDevice
	}
	if s.Family.Is6() != d.To.Addr().Is4() {
		f |= fits4
	}
	return f
}

// String lists what of a datagram the socket names, for a person.
func (f Fit) String() string {
	s := ""
	for _, n := range [...]struct {
		fit  Fit
		name string
	}{{fitsAddress, "the address"}, {fitsPeer, "the sender"}, {fitsDevice, "the device"}, {fits4, "the family"}} {
		if f&n.fit != 0 {
			if s != "" {
				s += ", "
			}
			s += n.name
		}
	}
	switch {
	case f == 0:
		return "nothing"
	case s == "":
		return "no more than the port"
	}
	return s
}

// Beats is the rule by which f is preferred to g, which is less.
func (f Fit) Beats(g Fit) reusecheck.Reason {
	switch d := f &^ g; {
	case g == 0:
		return reusecheck.BeatNobody
	case d&fitsAddress != 0:
		return reusecheck.BeatAddress
	case d&fitsPeer != 0:
		return reusecheck.BeatPeer
	case d&fitsDevice != 0:
		return reusecheck.BeatDevice
	}
	return reusecheck.BeatFamily
}

// judgeSend scores every socket: any of the best may receive the datagram.
func (u *UDP) judgeSend(op reusecheck.Op, got reusecheck.Answer) Verdict {
	d := DatagramOf(op)
	if why := u.cannotSay(&d); why != "" {
		return open(got, why)
	}
	best := Fit(0)
	for i := range u.socks {
		best = max(best, FitOf(&u.socks[i].Socket, &d))
	}
	if best == 0 {
		return u.nobody(got)
	}
	for i := range u.socks {
		if s := &u.socks[i]; FitOf(&s.Socket, &d) == best {
			u.allowed = append(u.allowed, s.ID)
		}
	}
	u.share()
	v := Verdict{Want: got, Allowed: u.allowed, Shared: u.shared}
	if got.Kind == reusecheck.Failed { // it was not sent
		v.Agrees = true
		return v
	}
	if got.Kind == reusecheck.Received {
		for _, id := range u.allowed {
			v.Agrees = v.Agrees || id == got.Who
		}
	}
	if !v.Agrees {
		v.Want = reusecheck.Answer{Kind: reusecheck.Received, Who: u.allowed[0]}
		has := Fit(0)
		if w := u.find(got.Who); w != nil && got.Kind == reusecheck.Received {
			has = FitOf(&w.Socket, &d)
		}
		for _, id := range u.allowed {
			u.conflicts = append(u.conflicts, Conflict{id, best.Beats(has)})
		}
		v.Conflicts = u.conflicts
	}
	return v
}

// nobody judges a datagram that no socket fits.
func (u *UDP) nobody(got reusecheck.Answer) Verdict {
	if got.Kind != reusecheck.Received {
		return agree(got)
	}
	u.conflicts = append(u.conflicts, Conflict{got.Who, reusecheck.RefuseFit})
	return u.disagree(reusecheck.Answer{Kind: reusecheck.Nobody})
}

// cannotSay is why a datagram's receiver is not documented.
func (u *UDP) cannotSay(d *Datagram) string {
	to, from := d.To.Addr(), d.From.Addr()
	switch {
	case to.Is4() != from.Is4() || to.IsUnspecified() || from.IsUnspecified() || d.To.Port() == 0 || d.From.Port() == 0:
		return "no datagram has such addresses"
	case !isLocal(to) || !isLocal(from):
		return openRoute
	case u.lost > 0 && u.world.ports.Contains(d.To.Port()):
		return openLost
	}
	for i := range u.socks {
		s := &u.socks[i]
		if s.Local.Port() != d.To.Port() {
			continue
		}
		peer := s.Peer.Addr()
		switch {
		case s.vague:
			return openVague
		case s.State == reusecheck.Connected && s.Peer.Port() == 0:
			return openAnyPort
		case s.State == reusecheck.Connected && peer.Is4In6() != s.Local.Addr().Is4In6():
			return openBothFamilies
		}
	}
	return ""
}

// share notes the members of one reuseport group among those allowed, when all of
// them are: socket(7), SO_REUSEPORT distributes datagrams over its sockets.
func (u *UDP) share() {
	first := u.find(u.allowed[0])
	for _, id := range u.allowed {
		s := u.find(id)
		if !s.member() || s.UID != first.UID || s.Opts&(reusecheck.V6Only) != first.Opts&(reusecheck.V6Only) ||
			s.Family != first.Family || s.Dev != first.Dev || s.Local != first.Local {
			return
		}
	}
	u.shared = append(u.shared, u.allowed...)
}
