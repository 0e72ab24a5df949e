package model_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// world makes steps of namespaces that come and go, from a fuzzer's bytes: a
// listener for each family and a few clients in a namespace.
type world struct {
	choices
	ids   rc.ID
	nets  []rc.ID // those that live, rc.NoID for the trace's own
	socks []rc.ID
}

func (w *world) next() (ops []rc.Op) {
	id := func() rc.ID { w.ids++; return w.ids - 1 }
	n := w.Intn(len(w.nets))
	net := w.nets[n]
	six := w.Intn(2) == 1
	socket := func(family rc.Family) rc.Op {
		op := rc.NewSocket(id(), family, rc.ReuseAddr)
		if net != rc.NoID {
			op.HasNet, op.Net = true, net
		}
		return op
	}
	at := netip.MustParseAddrPort("127.0.0.1:40000")
	family := rc.TCP4
	if six {
		at, family = netip.MustParseAddrPort("[::1]:40000"), rc.TCP6
	}
	pick := func() rc.ID { return w.socks[w.Intn(len(w.socks))] }
	switch k := w.Intn(8); {
	case k == 0 || len(w.nets) == 1 && k == 1:
		net := id()
		w.nets = append(w.nets, net)
		return []rc.Op{rc.NewNetns(net)}
	case k == 1:
		i := 1 + w.Intn(len(w.nets)-1)
		batch := []rc.ID{w.nets[i]}
		w.nets = append(w.nets[:i:i], w.nets[i+1:]...)
		if len(w.nets) > 1 && w.Intn(2) == 1 {
			batch = append(batch, w.nets[1])
			w.nets = append(w.nets[:1:1], w.nets[2:]...)
		}
		return []rc.Op{rc.Exit(batch...)}
	case k == 2 || len(w.socks) == 0:
		op := socket(family)
		w.socks = append(w.socks, op.Sock)
		return []rc.Op{op, rc.Bind(op.Sock, at), rc.Listen(op.Sock)}
	case k == 3:
		return []rc.Op{rc.LeaveTimeWait(pick())}
	case k == 4:
		return []rc.Op{rc.Expire(pick())}
	case k == 5:
		return []rc.Op{rc.Close(pick())}
	}
	op := socket(family)
	w.socks = append(w.socks, op.Sock)
	ops = []rc.Op{op}
	if w.Intn(2) == 1 {
		ops = append(ops, rc.Bind(op.Sock, netip.AddrPortFrom(at.Addr(), uint16(41000+w.Intn(2)))))
	}
	ops = append(ops, rc.Connect(op.Sock, at))
	if w.Intn(2) == 1 {
		ops = append(ops, rc.LeaveTimeWait(op.Sock))
	}
	return ops
}

// FuzzTimeWait runs namespaces that come and go on every form of the teardown:
// nothing panics, mainline's forms have no fault and leave nothing, a form that
// has one says so, no table is walked more than once a pass, and a copy taken half
// way answers like the original.
func FuzzTimeWait(f *testing.F) {
	var kernels []string
	for _, e := range model.Eras() {
		kernels = append(kernels, e.Kernel)
	}
	sound := len(kernels)
	kernels = append(kernels, "6.18-tw-always", "5.15+tw-row-block", "5.15+tw-timers-only", "5.15+tw-timers-only+tw-row-block",
		"6.18+tw-one-family", "5.15+tw-row-block+tw-skip-proposed+tw-ipv4-first")
	for which := range kernels {
		f.Add(script(which), uint8(which), which%2 == 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8, own bool) {
		n := int(which) % len(kernels)
		cfg := rc.Config{System: rc.TimeWaitExit}
		if own {
			cfg.Sysctl = []rc.Sysctl{{Name: "net.ipv4.tcp_child_ehash_entries", Value: "3"}}
		}
		s := model.MustParse(kernels[n]).NewTimeWait()
		if err := s.Reset(cfg); err != nil {
			return // the kernel has no tables of their own
		}
		var twin rc.Stack
		w := &world{choices: choices{data}, nets: []rc.ID{rc.NoID}}
		for i := 0; i < 64 && len(w.data) > 0; i++ {
			if i == 12 {
				twin = s.Clone()
			}
			for _, op := range w.next() {
				r, err := both(t, s, twin, op)
				if err != nil {
					return // one of the corners that the model leaves out
				}
				if msg := misdeed(op, r, s.Check(), own, n < sound+2); msg != "" {
					t.Fatalf("%s on %s: %s", op, kernels[n], msg)
				}
			}
		}
	})
}

// misdeed is what is wrong after a step.
func misdeed(op rc.Op, r rc.Result, structure error, own, sound bool) string {
	faults := rc.Faults(nil)
	most := 2
	if own {
		most *= len(op.Batch)
	}
	switch found := structure != nil; {
	case found && !errors.As(structure, &faults):
		return structure.Error()
	case found && sound:
		return structure.Error()
	case op.Verb != rc.VExit:
	case r.Left > 0 && (sound || !found):
		return fmt.Sprintf("%d TIME_WAIT sockets are left, faults %v", r.Left, faults)
	case int(r.Walks) > most:
		return fmt.Sprintf("%d walks", r.Walks)
	}
	return ""
}
