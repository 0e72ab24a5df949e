package shrink_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

var (
	someAddrs = map[bool][]netip.Addr{
		false: {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("127.0.0.9")},
		true:  {netip.MustParseAddr("::1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::"), netip.MustParseAddr("::ffff:127.0.0.1")},
	}
	somePorts = []uint16{40000, 40000, 40001, 8080}
	someUsers = []uint32{0, 1001, 1002, 5}
	someDevs  = []rc.Dev{rc.NoDev, rc.NoDev, rc.Dev1, rc.Dev2, rc.DevLo}
)

// randomTrace is a valid trace of n steps over few values, without the verbs
// and attributes left out.
func randomTrace(r *rand.Rand, n int, without ...rc.Verb) *rc.Trace {
	t := &rc.Trace{Config: rc.Config{System: rc.TCP}}
	var live []rc.ID
	six, linked, left := map[rc.ID]bool{}, map[rc.ID]bool{}, map[rc.ID]bool{}
	pick := func() rc.ID { return live[r.IntN(len(live))] }
	define := func() rc.ID {
		id := rc.ID(len(t.Names))
		t.Names = append(t.Names, id.String())
		return id
	}
	// Most histories keep to few values, so that failures are not rare.
	narrow := r.IntN(4) > 0
	addr := func(id rc.ID) netip.AddrPort {
		as := someAddrs[six[id]]
		if narrow {
			return netip.AddrPortFrom(as[1], 40001)
		}
		return netip.AddrPortFrom(as[r.IntN(len(as))], somePorts[r.IntN(len(somePorts))])
	}
	for len(t.Steps) < n {
		var op rc.Op
		v := rc.Verbs()[r.IntN(int(rc.VExpire))]
		if len(live) < 2 || r.IntN(4) == 0 {
			v = rc.VSocket
		} else if r.IntN(3) == 0 {
			v = rc.VBind
		}
		skip := false
		for _, w := range without {
			skip = skip || v == w
		}
		if skip {
			continue
		}
		switch v {
		case rc.VSocket:
			id := define()
			op = rc.NewSocket(id, []rc.Family{rc.TCP4, rc.TCP4, rc.TCP6}[r.IntN(3)], rc.Opt(r.IntN(4)))
			op.UID, op.Dev = someUsers[r.IntN(4)], someDevs[r.IntN(5)]
			if six[id] = op.Family.Is6(); six[id] && r.IntN(3) == 0 {
				op.Opts |= rc.V6Only
			}
		case rc.VBind:
			id := pick()
			op = rc.Bind(id, addr(id))
		case rc.VConnect:
			id := pick()
			op = rc.Connect(id, addr(id))
		case rc.VInherit:
			l := pick()
			c := define()
			six[c] = six[l]
			op = rc.Inherit(l, c, netip.AddrPortFrom(addr(l).Addr(), 0))
		case rc.VSet:
			switch id := pick(); r.IntN(3) {
			case 0:
				op = rc.SetOption(id, []rc.Opt{rc.ReuseAddr, rc.ReusePort}[r.IntN(2)], r.IntN(2) == 0)
			case 1:
				op = rc.SetOwner(id, someUsers[r.IntN(4)])
			default:
				op = rc.SetDevice(id, someDevs[r.IntN(5)])
			}
		case rc.VTimeWait:
			if op = rc.LeaveTimeWait(pick()); !linked[op.Sock] {
				continue
			}
		case rc.VExpire:
			op = rc.Expire(rc.ID(r.IntN(len(t.Names))))
			if !left[op.Sock] {
				continue
			}
			left[op.Sock] = false
		default:
			op = rc.Op{Verb: v, Sock: pick()}
		}
		t.Steps = append(t.Steps, rc.Step{Op: op})
		switch op.Verb {
		case rc.VSocket:
			live = append(live, op.Sock)
		case rc.VInherit:
			live = append(live, op.Child)
			linked[op.Child] = true
		case rc.VConnect:
			linked[op.Sock] = true
		case rc.VDisconnect, rc.VShutdown:
			linked[op.Sock] = false
		case rc.VClose, rc.VTimeWait:
			live = slices.DeleteFunc(live, func(id rc.ID) bool { return id == op.Sock })
			left[op.Sock] = op.Verb == rc.VTimeWait
		}
	}
	return t
}
