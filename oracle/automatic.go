package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// fit says whether a port can be picked automatically.
type fit uint8

const (
	fits fit = iota
	maybe
	blocked
)

// supply is what an automatic range still has to offer.
type supply struct {
	fits, maybe int
	lowest      uint16 // of those that fit, 0 for none
	odd         bool   // the range is of odd size, and larger than 1
}

// survey asks every owned port of a range whether it can be picked; a port that
// nobody owns can.
func (t *TCP) survey(r reusecheck.PortRange, ask func(number uint16) fit) supply {
	s := supply{odd: r.Size() > 1 && r.Size()%2 == 1}
	s.fits = r.Size() - t.world.reservedIn(r)
	next := uint32(r.Lo) // the lowest port that was not looked at yet
	i, _ := t.place(r.Lo)
	for ; i < len(t.ports) && t.ports[i].number <= r.Hi; i++ {
		number := t.ports[i].number
		s.offer(t.firstFree(next, uint32(number)))
		next = uint32(number) + 1
		if t.world.isReserved(number) {
			continue
		}
		switch ask(number) {
		case fits:
			s.offer(number)
			continue
		case maybe:
			s.maybe++
		}
		s.fits--
	}
	s.offer(t.firstFree(next, uint32(r.Hi)+1))
	return s
}

func (s *supply) offer(number uint16) {
	if s.lowest == 0 {
		s.lowest = number
	}
}

// firstFree is the first port of [from, to) that is not reserved, or 0.
func (t *TCP) firstFree(from, to uint32) uint16 {
	for ; from < to; from++ {
		if !t.world.isReserved(uint16(from)) {
			return uint16(from)
		}
	}
	return 0
}

// mayMiss reports whether a search that finds nothing is forgiven: Linux looks
// at the ports of one parity and then at those of the other, and with an odd
// number of ports one of them can be left out. All that is documented of it is
// the advice to give the range's bounds different parity (ip-sysctl,
// ip_local_port_range).
func (s *supply) mayMiss() bool { return s.odd && s.fits == 1 }

// judgeAutomatic judges a port that the stack was to pick for bind to port 0 or
// for listen without a port (ip(7), ip_local_port_range; bind(2) and listen(2):
// EADDRINUSE when the whole range is in use).
func (t *TCP) judgeAutomatic(m *member, addr netip.Addr, got reusecheck.Answer) Verdict {
	if t.lost > 0 {
		return open(got, openLost)
	}
	r := t.world.rangeFor(&m.Socket)
	switch {
	case m.doubts(got):
		return t.disagree(t.wantAutomatic(m, addr, r))
	case !aboutPort(got):
		return agree(got)
	case got.Kind == reusecheck.OK && got.Port != 0:
		return t.judgePicked(m, addr, r, got)
	case got.Kind == reusecheck.OK:
		if s := t.supplyFor(m, addr, r, t.lastPurpose()); s.fits+s.maybe > 0 {
			return open(got, openPortless)
		}
		return t.disagree(reusecheck.Fail(reusecheck.EADDRINUSE))
	case got.Errno == reusecheck.EADDRNOTAVAIL:
		return t.disagree(t.wantAutomatic(m, addr, r))
	}
	s := t.supplyFor(m, addr, r, t.lastPurpose())
	switch {
	case s.fits == 0 && s.maybe == 0:
		return t.refused(got)
	case s.fits == 0:
		return open(got, openVague)
	case s.mayMiss():
		return open(got, openSearch)
	}
	t.conflicts = t.conflicts[:0]
	return t.disagree(t.wantAutomatic(m, addr, r))
}

// lastPurpose is what the stack may go to before it gives up: ip_autobind_reuse
// (ip-sysctl) lets it share.
func (t *TCP) lastPurpose() Purpose {
	if t.world.autobind {
		return LastResort
	}
	return Automatic
}

// judgePicked judges the port that the stack picked.
func (t *TCP) judgePicked(m *member, addr netip.Addr, r reusecheck.PortRange, got reusecheck.Answer) Verdict {
	if !r.Contains(got.Port) || t.world.isReserved(got.Port) {
		return t.disagree(t.wantAutomatic(m, addr, r))
	}
	switch t.fitFor(m, addr, got.Port, Automatic) {
	case fits:
		return agree(got)
	case maybe:
		return open(got, openVague)
	}
	if !t.world.autobind {
		return t.disagree(t.wantAutomatic(m, addr, r))
	}
	t.conflicts = t.conflicts[:0]
	last := t.fitFor(m, addr, got.Port, LastResort)
	if last == blocked {
		return t.disagree(t.wantAutomatic(m, addr, r))
	}
	// It may be shared, provided that no port is left which need not be.
	switch s := t.supplyFor(m, addr, r, Automatic); {
	case s.maybe > 0 || (last == maybe && s.fits == 0):
		return open(got, openVague)
	case s.fits == 0:
		t.conflicts = t.conflicts[:0]
		return agree(got)
	case s.mayMiss():
		return open(got, openSearch)
	}
	t.conflicts = t.conflicts[:0]
	t.fitFor(m, addr, got.Port, Automatic)
	return t.disagree(t.wantAutomatic(m, addr, r))
}

// wantAutomatic is an answer that is right where the stack's is wrong: the
// lowest port that can be picked, or EADDRINUSE. The conflicts noted so far
// stay as they are.
func (t *TCP) wantAutomatic(m *member, addr netip.Addr, r reusecheck.PortRange) reusecheck.Answer {
	keep := len(t.conflicts)
	defer func() { t.conflicts = t.conflicts[:keep] }()
	for _, p := range [...]Purpose{Automatic, t.lastPurpose()} {
		if s := t.supplyFor(m, addr, r, p); s.lowest != 0 {
			return reusecheck.Picked(s.lowest)
		}
	}
	return reusecheck.Fail(reusecheck.EADDRINUSE)
}

// supplyFor surveys a range, and notes the owners that block a port of it.
func (t *TCP) supplyFor(m *member, addr netip.Addr, r reusecheck.PortRange, p Purpose) supply {
	return t.survey(r, func(number uint16) fit { return t.fitFor(m, addr, number, p) })
}

// fitFor asks every owner of one port, and notes those that block it.
func (t *TCP) fitFor(m *member, addr netip.Addr, number uint16, p Purpose) fit {
	before := len(t.conflicts)
	vague := t.visit(&Request{&m.Socket, addr, number, p})
	switch {
	case len(t.conflicts) > before:
		return blocked
	case vague:
		return maybe
	}
	return fits
}
