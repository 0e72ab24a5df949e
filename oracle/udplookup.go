package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Datagram is one that arrives, with unmapped addresses.
type Datagram struct {
	From, To netip.AddrPort
	Dev      reusecheck.Dev
	CPU      reusecheck.CPU
}

// DatagramOf is what a send operation lets arrive: on the loopback unless it
// says otherwise, for no other device has an address, and on processor 0.
func DatagramOf(op reusecheck.Op) Datagram {
	d := Datagram{unmapped(op.From), unmapped(op.Addr), op.Dev, op.CPU}
	if d.Dev == reusecheck.NoDev {
		d.Dev = reusecheck.DevLo
	}
	if d.CPU == reusecheck.NoCPU {
		d.CPU = reusecheck.Processor(0)
	}
	return d
}

// Fit is how well a socket fits a datagram; 0 is not at all. It is what the socket
// says of the datagram, the weightiest first: its local address, its peer, its
// device, of an IPv4 datagram its family, and the processor that it asked for.
// Between the processor and the two before it nothing is documented: see [Fit.Better].
//
// Sources: ip(7) and udp(7) say what a socket receives; connect(2) that a
// connected one hears its peer only; socket(7) that a bound one hears its device
// only. Of who wins the documents say no more than the kernel's selftests:
// reuseport_addr_any (address before wildcard), reuseport_dualstack (IPv4 before
// dual-stack), and the commits 4cdeeee9252a, 8d6c414cd2fb and acdcecc61285. Of SO_INCOMING_CPU
// socket(7) says that a flow is to be handled on the processor that it comes in on,
// and the commit 70da268b569d that a socket which asked for it is preferred.
type Fit uint8

// What a socket can say of a datagram.
const (
	fitsCPU Fit = 1 << iota
	fits4       // it is of the datagram's own family
	fitsDevice
	fitsPeer
	fitsAddress
	fitsAtAll
	fitsEnd
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
	if s.CPU == d.CPU {
		f |= fitsCPU
	}
	return f
}

// Better reports whether a socket that fits as f says is preferred to one of g.
// Where they differ in device or family and in the processor too, one has to be
// ahead in both.
func (f Fit) Better(g Fit) bool {
	const first = fitsAtAll | fitsAddress | fitsPeer
	if f&first != g&first {
		return f&first > g&first
	}
	return f != g && f&^fitsCPU >= g&^fitsCPU && f&fitsCPU >= g&fitsCPU
}

// fit is how well a socket surely fits, and how well it may: what a socket asked
// for can be overwritten by what it received.
func (s *receiver) fit(d *Datagram) (sure, may Fit) {
	may = FitOf(&s.Socket, d)
	if sure = may; may != 0 && s.heard {
		sure, may = may&^fitsCPU, may|fitsCPU
	}
	return sure, may
}

// fitSet is a set of fits, one for each bit.
type fitSet uint64

func (fs *fitSet) add(f Fit)     { *fs |= 1 << f }
func (fs fitSet) has(f Fit) bool { return fs>>f&1 != 0 }

// unbeaten reports whether no fit of the set is better than f, which is one.
func (fs fitSet) unbeaten(f Fit) bool {
	if f == 0 {
		return false
	}
	for g := Fit(1); g < fitsEnd; g++ {
		if fs.has(g) && g.Better(f) {
			return false
		}
	}
	return true
}

// String lists what of a datagram the socket names, for a person.
func (f Fit) String() string {
	s := ""
	for _, n := range [...]struct {
		fit  Fit
		name string
	}{{fitsAddress, "the address"}, {fitsPeer, "the sender"}, {fitsDevice, "the device"}, {fits4, "the family"}, {fitsCPU, "the processor"}} {
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

// Beats is the rule by which f is preferred to g, than which it is better.
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
	case d&fits4 != 0:
		return reusecheck.BeatFamily
	}
	return reusecheck.BeatCPU
}

// judgeSend scores every socket: any of the best may receive the datagram.
func (u *UDP) judgeSend(op reusecheck.Op, got reusecheck.Answer) Verdict {
	d := DatagramOf(op)
	if why := u.cannotSay(&d); why != "" {
		return open(got, why)
	}
	var there fitSet
	for i := range u.socks {
		sure, _ := u.socks[i].fit(&d)
		there.add(sure)
	}
	for i := range u.socks {
		if _, may := u.socks[i].fit(&d); there.unbeaten(may) {
			u.allowed = append(u.allowed, u.socks[i].ID)
		}
	}
	if len(u.allowed) == 0 {
		return u.nobody(got)
	}
	u.share(&d)
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
		u.preferred(&d, got)
		v.Want = reusecheck.Answer{Kind: reusecheck.Received, Who: u.conflicts[0].Owner}
		v.Conflicts = u.conflicts
	}
	return v
}

// preferred notes the allowed receivers that are surely better than the one that a
// datagram went to, or to nobody.
func (u *UDP) preferred(d *Datagram, got reusecheck.Answer) {
	has := Fit(0)
	if w := u.find(got.Who); w != nil && got.Kind == reusecheck.Received {
		_, has = w.fit(d)
	}
	for _, id := range u.allowed {
		if sure, _ := u.find(id).fit(d); sure.Better(has) {
			u.conflicts = append(u.conflicts, Conflict{id, sure.Beats(has)})
		}
	}
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
// them are: socket(7), SO_REUSEPORT distributes datagrams over its sockets. Those
// that asked for the datagram's processor come first.
func (u *UDP) share(d *Datagram) {
	first := u.find(u.allowed[0])
	as, _ := first.fit(d)
	for _, id := range u.allowed {
		s := u.find(id)
		if sure, _ := s.fit(d); sure != as || s.heard || !s.member() || s.UID != first.UID || s.Opts&(reusecheck.V6Only) != first.Opts&(reusecheck.V6Only) ||
			s.Family != first.Family || s.Dev != first.Dev || s.Local != first.Local {
			return
		}
	}
	u.shared = append(u.shared, u.allowed...)
}
