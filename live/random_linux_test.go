package live

import (
	"math/rand/v2"
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// walk makes random histories of every step of TCP, without regard to what the
// kernel will say of them.
type walk struct {
	rand *rand.Rand
	next reusecheck.ID
	// What is known from the answers, so that most steps are about something.
	here, listening, connected, waiting []reusecheck.ID
	family                              map[reusecheck.ID]reusecheck.Family
	uids                                bool
}

func (w *walk) start() reusecheck.Config {
	*w = walk{rand: w.rand, family: map[reusecheck.ID]reusecheck.Family{}, uids: w.uids}
	cfg := reusecheck.Config{Ports: reusecheck.PortRange{Lo: 40000, Hi: 40000 + uint16(w.rand.IntN(4))}}
	if w.rand.IntN(4) == 0 {
		cfg.Sysctl = []reusecheck.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}}
	}
	return cfg
}

var (
	walkAddrs4 = []string{"0.0.0.0", "127.0.0.1", "127.0.0.2"}
	walkAddrs6 = []string{"::", "::1", "fd00::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1"}
)

func pick[T any](w *walk, of []T) T { return of[w.rand.IntN(len(of))] }

func (w *walk) addr(f reusecheck.Family, port uint16) netip.AddrPort {
	from := walkAddrs4
	if f.Is6() {
		from = walkAddrs6
	}
	return netip.AddrPortFrom(netip.MustParseAddr(pick(w, from)), port)
}

func (w *walk) op() reusecheck.Op {
	if len(w.here) < 2 || w.rand.IntN(4) == 0 {
		op := reusecheck.NewSocket(w.next, pick(w, []reusecheck.Family{reusecheck.TCP4, reusecheck.TCP6}), 0)
		op.Opts = reusecheck.Opt(w.rand.IntN(4))
		if op.Family.Is6() && w.rand.IntN(4) == 0 {
			op.Opts |= reusecheck.V6Only
		}
		if w.uids {
			op.UID = pick(w, []uint32{0, 0, 1001, 1002})
		}
		op.Dev = pick(w, []reusecheck.Dev{0, 0, 0, reusecheck.DevLo, reusecheck.Dev1})
		return op
	}
	id := pick(w, w.here)
	port := 40000 + uint16(w.rand.IntN(2))
	switch w.rand.IntN(12) {
	case 0, 1:
		return reusecheck.Listen(id)
	case 2:
		if len(w.listening) > 0 {
			return reusecheck.Connect(id, w.addr(w.family[id], port))
		}
	case 3, 4:
		if len(w.listening) > 0 {
			l := pick(w, w.listening)
			return reusecheck.Inherit(l, w.next, netip.AddrPortFrom(w.addr(w.family[l], 0).Addr(), uint16(w.rand.IntN(2)*40001)))
		}
	case 5, 6:
		if len(w.connected) > 0 {
			return reusecheck.LeaveTimeWait(pick(w, w.connected))
		}
	case 7:
		if len(w.waiting) > 0 {
			return reusecheck.Expire(pick(w, w.waiting))
		}
	case 8:
		return pick(w, []reusecheck.Op{reusecheck.Shutdown(id), reusecheck.Disconnect(id), reusecheck.Close(id)})
	case 9:
		return pick(w, []reusecheck.Op{
			reusecheck.SetOption(id, reusecheck.ReusePort, w.rand.IntN(2) == 0),
			reusecheck.SetOption(id, reusecheck.ReuseAddr, w.rand.IntN(2) == 0),
			reusecheck.SetDevice(id, pick(w, []reusecheck.Dev{0, reusecheck.Dev2})),
		})
	case 10:
		port = 0
	}
	return reusecheck.Bind(id, w.addr(w.family[id], port))
}

// took takes note of an answer.
func (w *walk) took(op reusecheck.Op, a reusecheck.Answer) {
	if id, defines := op.Defines(); defines {
		w.next = id + 1
	}
	if a == reusecheck.Fail(reusecheck.EINVAL) && op.Verb == reusecheck.VListen {
		// On Linux 6.18 it cannot connect any more, not even to fail.
		w.here = without(w.here, op.Sock)
	}
	if a.Kind != reusecheck.OK {
		return
	}
	switch op.Verb {
	case reusecheck.VSocket:
		w.here = append(w.here, op.Sock)
		w.family[op.Sock] = op.Family
	case reusecheck.VListen:
		w.listening = append(w.listening, op.Sock)
	case reusecheck.VConnect:
		w.connected = append(w.connected, op.Sock)
	case reusecheck.VInherit:
		w.here, w.connected = append(w.here, op.Child), append(w.connected, op.Child)
		w.family[op.Child] = w.family[op.Sock]
	case reusecheck.VTimeWait:
		w.waiting = append(w.waiting, op.Sock)
		w.gone(op.Sock)
	case reusecheck.VExpire:
		w.waiting = without(w.waiting, op.Sock)
	case reusecheck.VShutdown, reusecheck.VDisconnect:
		w.listening, w.connected = without(w.listening, op.Sock), without(w.connected, op.Sock)
	case reusecheck.VClose:
		w.gone(op.Sock)
	}
}

func (w *walk) gone(id reusecheck.ID) {
	w.here, w.listening, w.connected = without(w.here, id), without(w.listening, id), without(w.connected, id)
}

func without(ids []reusecheck.ID, id reusecheck.ID) []reusecheck.ID {
	kept := ids[:0]
	for _, i := range ids {
		if i != id {
			kept = append(kept, i)
		}
	}
	return kept
}
