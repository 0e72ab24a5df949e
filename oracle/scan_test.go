package oracle

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/reusecheck/reusecheck"
)

// verifyScans holds what the tracker finds by its index against a look at every
// socket that lives, one port after the other.
func (p *player) verifyScans(t *testing.T) {
	o := p.o
	for i := range o.socks {
		if m := &o.socks[i]; m.live && m.ID >= 0 {
			p.verifyVisit(t, m, reusecheck.Canonical(m.Family, m.Local.Addr()), uint16(40000+p.steps/4%2))
			p.verifySupply(t, m)
		}
	}
}

func (p *player) verifyVisit(t *testing.T, m *member, addr netip.Addr, number uint16) {
	o := p.o
	var owners []reusecheck.Socket
	vague := false
	for i := range o.socks {
		switch s := &o.socks[i]; {
		case !s.live:
		case s.vague:
			// Whatever its attributes are, an automatic port meets it.
			req := &Request{&m.Socket, addr, number, Automatic}
			vague = vague || len(Conflicts([]reusecheck.Socket{s.Socket}, req, nil)) > 0
		default:
			owners = append(owners, s.Socket)
		}
	}
	for purpose := range LastResort + 1 {
		req := &Request{&m.Socket, addr, number, purpose}
		naive := Conflicts(owners, req, nil)
		o.conflicts = o.conflicts[:0]
		unsure := o.visit(req)
		byID := func(a, b Conflict) int { return cmp.Compare(a.Owner, b.Owner) }
		slices.SortFunc(naive, byID)
		slices.SortFunc(o.conflicts, byID)
		if !slices.Equal(naive, o.conflicts) || unsure != vague {
			t.Fatalf("%+v: visit says %v, vague %v; every socket says %v, %v", *req, o.conflicts, unsure, naive, vague)
		}
	}
}

func (p *player) verifySupply(t *testing.T, m *member) {
	o := p.o
	r := o.world.rangeFor(&m.Socket)
	f := flowOf(m, netip.MustParseAddrPort("127.0.0.1:50000"))
	for _, c := range []struct {
		name string
		ask  func(uint16) fit
	}{
		{"automatic", func(n uint16) fit { return o.fitFor(m, m.Local.Addr(), n, Automatic) }},
		{"last resort", func(n uint16) fit { return o.fitFor(m, m.Local.Addr(), n, LastResort) }},
		{"connect", func(n uint16) fit { return o.fitFlow(m, f.from(n), true) }},
	} {
		want := supply{odd: r.Size()%2 == 1 && r.Lo != r.Hi}
		for n := r.Lo; n <= r.Hi; n++ {
			if o.world.isReserved(n) {
				continue
			}
			switch c.ask(n) {
			case fits:
				want.fits++
				if want.lowest == 0 {
					want.lowest = n
				}
			case maybe:
				want.maybe++
			}
		}
		if got := o.survey(r, c.ask); got != want {
			t.Fatalf("%v, %s, %v of %v: surveyed %+v, port by port %+v", m.ID, c.name, o.ports, r, got, want)
		}
	}
}
