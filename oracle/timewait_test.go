package oracle_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// follow plays operations that all succeed.
func follow(tw *oracle.TimeWait, ops ...reusecheck.Op) {
	for _, op := range ops {
		got := reusecheck.Success
		if op.Verb == reusecheck.VExit {
			got = reusecheck.Answer{Kind: reusecheck.Exited}
		}
		tw.Follow(op, got)
	}
}

// in is a socket in a namespace.
func in(net, id reusecheck.ID, f reusecheck.Family) reusecheck.Op {
	op := reusecheck.NewSocket(id, f, 0)
	op.HasNet, op.Net = true, net
	return op
}

func TestTheSettingsOfATraceHoldInEveryNamespaceThatItMakes(t *testing.T) {
	tw := oracle.NewTimeWait()
	tw.Reset(reusecheck.Config{Ports: reusecheck.PortRange{Lo: 40000, Hi: 40001},
		Sysctl: []reusecheck.Sysctl{{Name: "net.ipv4.ip_local_reserved_ports", Value: "40000"}}})
	any := netip.MustParseAddrPort("127.0.0.1:0")
	follow(tw, reusecheck.NewNetns(0), in(0, 1, reusecheck.TCP4), in(0, 2, reusecheck.TCP4))
	for _, step := range []struct {
		id  reusecheck.ID
		got reusecheck.Answer
	}{{1, reusecheck.Picked(40001)}, {2, reusecheck.Fail(reusecheck.EADDRINUSE)}} {
		op := reusecheck.Bind(step.id, any)
		if v := tw.Judge(op, step.got); !v.Agrees {
			t.Errorf("%s is answered %s, and the oracle wants %s", op, step.got, v.Want)
		}
		tw.Follow(op, step.got)
	}
}

func TestAnExitIsMetByALookAtEverySocket(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:40000")
	tw := oracle.NewTimeWait()
	for range 2 { // the second time from what the first one left
		tw.Reset(reusecheck.Config{})
		follow(tw,
			reusecheck.NewNetns(0), reusecheck.NewNetns(1),
			in(0, 2, reusecheck.TCP4), reusecheck.Bind(2, at), reusecheck.Listen(2), reusecheck.Inherit(2, 3, at), reusecheck.LeaveTimeWait(3),
			in(1, 4, reusecheck.TCP4), reusecheck.Bind(4, at), reusecheck.Listen(4), reusecheck.Inherit(4, 5, at), reusecheck.LeaveTimeWait(5),
			reusecheck.NewSocket(6, reusecheck.TCP4, 0), reusecheck.Bind(6, at), reusecheck.Listen(6), reusecheck.Inherit(6, 7, at), reusecheck.LeaveTimeWait(7),
		)
		op := reusecheck.Exit(1)
		e := tw.Judge(op, reusecheck.Answer{Kind: reusecheck.Exited}).Exit
		want := &oracle.Exit{
			Namespaces: 1, Waiting: 1, Four: 1, Need: 1, Most: 2, Gone: []reusecheck.ID{5}, Spared: []reusecheck.ID{7, 3},
		}
		if d := cmp.Diff(want, e); d != "" {
			t.Errorf("the exit meets (-want +got):\n%s", d)
		}
		follow(tw, op)
		var left []reusecheck.ID
		tw.Sockets(func(s *reusecheck.Socket) bool {
			if made := s.ID < 4; s.HasNet != made || s.Net != 0 {
				t.Errorf("%s is in %v, %s", s.ID, s.HasNet, s.Net)
			}
			left = append(left, s.ID)
			return true
		})
		slices.Sort(left)
		if d := cmp.Diff([]reusecheck.ID{2, 3, 6, 7}, left); d != "" {
			t.Errorf("after the exit there are (-want +got):\n%s", d)
		}
	}
}

func TestAnExitThatWasNotCountedIsLeftOpenUnlessSomethingIsWrongAllTheSame(t *testing.T) {
	for _, tt := range []struct {
		walks, left  int32
		open, agrees bool
	}{
		{0, 0, false, true},
		{reusecheck.Uncounted, 0, true, true},
		{0, reusecheck.Uncounted, true, true},
		{1, reusecheck.Uncounted, false, false},
		{reusecheck.Uncounted, 1, false, false},
	} {
		tw := oracle.NewTimeWait()
		follow(tw, reusecheck.NewNetns(0))
		v := tw.Judge(reusecheck.Exit(0), reusecheck.Answer{Kind: reusecheck.Exited, Walks: tt.walks, Left: tt.left})
		if (v.Open != "") != tt.open || v.Agrees != tt.agrees {
			t.Errorf("walks %d, left %d: open %q, agrees %t", tt.walks, tt.left, v.Open, v.Agrees)
		}
	}
}
