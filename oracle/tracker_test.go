package oracle

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reusecheck/reusecheck"
)

// player makes a history of a stack that answers anything at all, and holds the
// oracle to what must be true of every history.
type player struct {
	bytes []byte
	o     *TCP
	ids   reusecheck.ID // the next
	steps int
	open  int
	agree int
}

func (p *player) pick(n int) int {
	if len(p.bytes) == 0 {
		return 0
	}
	b := p.bytes[0]
	p.bytes = p.bytes[1:]
	return int(b) % n
}

func pickOf[T any](p *player, values ...T) T { return values[p.pick(len(values))] }

var worlds = []reusecheck.Config{
	{Ports: reusecheck.PortRange{Lo: 40000, Hi: 40003}},
	{Ports: reusecheck.PortRange{Lo: 40000, Hi: 40002}, Sysctl: []reusecheck.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}}},
	{Ports: reusecheck.PortRange{Lo: 40000, Hi: 40000}, Sysctl: []reusecheck.Sysctl{{Name: "ip_autobind_reuse", Value: "1"}}},
	{Ports: reusecheck.PortRange{Lo: 39999, Hi: 40002}, Sysctl: []reusecheck.Sysctl{{Name: "net/ipv4/ip_local_reserved_ports", Value: "40001"}}},
}

var targets = []netip.Addr{
	netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"),
	netip.MustParseAddr("::"), netip.MustParseAddr("::1"), netip.MustParseAddr("fd00::1"),
	netip.MustParseAddr("::ffff:0.0.0.0"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("10.0.0.1"),
}

func (p *player) addr() netip.AddrPort {
	return netip.AddrPortFrom(pickOf(p, targets...), pickOf[uint16](p, 40000, 40001, 0, 40002, 50000))
}

func (p *player) op() reusecheck.Op {
	if p.ids == 0 || p.ids < 8 && p.pick(4) == 0 {
		op := reusecheck.NewSocket(p.ids, pickOf(p, reusecheck.TCP4, reusecheck.TCP6), reusecheck.Opt(p.pick(32)))
		op.UID, op.Dev = uint32(p.pick(2)), reusecheck.Dev(max(0, p.pick(8)-4))
		op.CPU = reusecheck.CPU(max(0, p.pick(8)-5))
		if p.pick(8) == 0 {
			op.Range = reusecheck.PortRange{Lo: 40001, Hi: 40002}
		}
		p.ids++
		return op
	}
	id := reusecheck.ID(p.pick(int(p.ids)))
	for tries := 0; p.o.find(id) == nil && tries < 4; tries++ {
		id = reusecheck.ID(p.pick(int(p.ids)))
	}
	switch p.pick(14) {
	case 0, 1, 2:
		return reusecheck.Bind(id, p.addr())
	case 3, 4:
		return reusecheck.Listen(id)
	case 5, 6:
		return reusecheck.Connect(id, p.addr())
	case 7:
		p.ids++
		return reusecheck.InheritOn(id, p.ids-1, p.addr(), reusecheck.CPU(p.pick(3)))
	case 8:
		return pickOf(p,
			reusecheck.SetOption(id, reusecheck.Opt(1)<<p.pick(5), p.pick(2) == 0),
			reusecheck.SetOwner(id, uint32(p.pick(2))), reusecheck.SetDevice(id, reusecheck.Dev(p.pick(4))),
			reusecheck.SetProcessor(id, reusecheck.CPU(p.pick(3))))
	case 9:
		return reusecheck.Shutdown(id)
	case 10:
		return reusecheck.Disconnect(id)
	case 11:
		return reusecheck.Close(id)
	case 12:
		return reusecheck.LeaveTimeWait(id)
	}
	return reusecheck.Expire(id)
}

func (p *player) answer(op reusecheck.Op) reusecheck.Answer {
	switch p.pick(10) {
	case 0:
		return reusecheck.Fail(pickOf(p, reusecheck.EADDRINUSE, reusecheck.EADDRNOTAVAIL))
	case 1:
		return reusecheck.Fail(pickOf(p, reusecheck.EINVAL, reusecheck.ECONNREFUSED, reusecheck.ENETUNREACH, reusecheck.EISCONN))
	case 2:
		return reusecheck.Picked(pickOf[uint16](p, 40000, 40001, 40002))
	case 3:
		if op.Verb == reusecheck.VInherit {
			return reusecheck.Answer{Kind: reusecheck.Received, Who: reusecheck.ID(p.pick(int(p.ids)))}
		}
	case 4, 5: // whatever the oracle would say
		return p.o.Judge(op, reusecheck.Success).Want
	}
	return reusecheck.Success
}

// play goes on until the bytes are used up.
func (p *player) play(t *testing.T) {
	p.o = New()
	p.o.Reset(worlds[p.pick(len(worlds))])
	for len(p.bytes) > 0 && p.ids < 40 {
		op := p.op()
		got := p.answer(op)
		p.step(t, op, got)
	}
}

func (p *player) step(t *testing.T, op reusecheck.Op, got reusecheck.Answer) {
	before := p.snapshot()
	v := p.o.Judge(op, got)
	conflicts := slices.Clone(v.Conflicts)
	p.steps++
	switch {
	case v.Open != "":
		p.open++
		if !v.Agrees {
			t.Fatalf("%v => %v: open and disagrees", op, got)
		}
	case v.Agrees:
		p.agree++
		if v.Want != got {
			t.Fatalf("%v => %v: agrees and wants %v", op, got, v.Want)
		}
	case v.Want == got:
		t.Fatalf("%v => %v: disagrees and wants the same", op, got)
	default:
		if w := p.o.Judge(op, v.Want); !w.Agrees {
			t.Fatalf("%v => %v: wants %v, and given that wants %v", op, got, v.Want, w.Want)
		}
	}
	for _, c := range conflicts {
		if c.Reason == reusecheck.ReasonNone || p.o.find(c.Owner) == nil {
			t.Fatalf("%v => %v: conflict %v of nobody or for nothing", op, got, c)
		}
	}
	if after := p.snapshot(); !slices.Equal(before, after) {
		t.Fatalf("judging %v changed the sockets: %s", op, cmp.Diff(before, after, cmpSockets))
	}
	// A copy follows in p's place, so that what it shares with the original shows.
	twin := New()
	twin.CopyFrom(p.o)
	twin.Follow(op, got)
	if after := p.snapshot(); !slices.Equal(before, after) {
		t.Fatalf("%v on a copy changed the original: %s", op, cmp.Diff(before, after, cmpSockets))
	}
	p.o = twin
	p.verify(t)
	if p.steps%4 == 0 {
		p.verifyScans(t)
	}
}

var cmpSockets = cmpopts.EquateComparable(netip.AddrPort{})

func (p *player) snapshot() []reusecheck.Socket {
	var all []reusecheck.Socket
	p.o.Sockets(func(s *reusecheck.Socket) bool {
		all = append(all, *s)
		return true
	})
	return all
}

// verify checks the index of ports and what must hold of every socket.
func (p *player) verify(t *testing.T) {
	o := p.o
	lost, owners := 0, 0
	for i := range o.socks {
		m := &o.socks[i]
		if !m.live {
			continue
		}
		if o.find(m.ID) != m || o.slot(m) != int32(i) {
			t.Fatalf("%v is not found where it stands", m.ID)
		}
		if m.lost {
			lost++
		}
		if m.Owner() {
			owners++
		}
		if other := o.find(m.ID.OtherEnd()); m.ID.IsOtherEnd() && (other == nil || other.State != reusecheck.Connected) {
			t.Fatalf("%v has no opener", m.ID)
		}
		if a := m.Local.Addr(); a != reusecheck.Canonical(m.Family, a) {
			t.Fatalf("%v has the address %v of the other family", m.ID, a)
		}
	}
	listed := 0
	for i, port := range o.ports {
		if i > 0 && o.ports[i-1].number >= port.number || port.first == none {
			t.Fatalf("ports in use: %v", o.ports)
		}
		for j, prev := port.first, none; j != none; prev, j = j, o.socks[j].next {
			if m := &o.socks[j]; !m.live || m.Local.Port() != port.number || m.prev != prev {
				t.Fatalf("%+v is among the owners of %d", m, port.number)
			}
			listed++
		}
	}
	if listed != owners || lost != o.lost {
		t.Fatalf("%d owners, %d listed; %d lost, %d counted", owners, listed, lost, o.lost)
	}
}

func TestEveryHistoryOfAnyStackLeavesTheOracleConsistent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var all player
	for range 1000 {
		p := player{bytes: make([]byte, 30+r.IntN(400))}
		for i := 0; i < len(p.bytes)-8; i += 8 {
			binary.LittleEndian.PutUint64(p.bytes[i:], r.Uint64())
		}
		p.play(t)
		all.steps += p.steps
		all.open += p.open
		all.agree += p.agree
	}
	if all.open*4 > all.steps || all.agree*4 < all.steps {
		t.Errorf("the sample says little: %d steps, %d open, %d agreed", all.steps, all.open, all.agree)
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03\x00\x00\x00\x00\x01\x00\x00\x09"))
	r := rand.New(rand.NewPCG(7, 8))
	for range 8 {
		b := make([]byte, 200)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 2000 {
			b = b[:2000]
		}
		p := player{bytes: b}
		p.play(t)
	})
}
