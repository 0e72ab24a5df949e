package oracle_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

func TestASocketOfAnotherProtocolOrNamespaceIsNoOwner(t *testing.T) {
	for name, other := range map[string]func(*reusecheck.Op){
		"udp":   func(op *reusecheck.Op) { op.Family = reusecheck.UDP4 },
		"netns": func(op *reusecheck.Op) { op.HasNet = true },
	} {
		o := oracle.New()
		first := reusecheck.NewSocket(0, reusecheck.TCP4, 0)
		other(&first)
		for _, op := range []reusecheck.Op{first, reusecheck.Bind(0, home), reusecheck.NewSocket(1, reusecheck.TCP4, 0)} {
			o.Follow(op, reusecheck.Success)
		}
		if v := o.Judge(reusecheck.Bind(1, home), reusecheck.Success); !v.Agrees {
			t.Errorf("%s: refused because of %v", name, v.Conflicts)
		}
		if v := o.Judge(reusecheck.Listen(0), reusecheck.Success); v.Open == "" {
			t.Errorf("%s: judged", name)
		}
	}
}

func TestASocketThatWasNotMadeIsNotThere(t *testing.T) {
	o := oracle.New()
	o.Follow(reusecheck.NewSocket(0, reusecheck.TCP4, 0), reusecheck.Fail(reusecheck.EACCES))
	if v := o.Judge(reusecheck.Bind(0, home), inUse); v.Open == "" {
		t.Errorf("a socket that was refused is judged: %+v", v)
	}
}

func TestTheSocketsAreWhatTheHistoryMadeThem(t *testing.T) {
	trace := reusecheck.MustParse(`
socket l tcp6 reuseaddr uid=5
socket c tcp4 reuseport uid=6
bind l [::]:5000 => ok
listen l => ok
connect c 127.0.0.2:5000 => ok 40000
inherit l s 127.0.0.3 => ok
timewait s => ok
`)
	o := oracle.New()
	for _, step := range trace.Steps {
		got := step.Want
		if got.Kind == reusecheck.Unstated {
			got = reusecheck.Success
		}
		o.Follow(step.Op, got)
	}
	at := netip.MustParseAddrPort
	want := []reusecheck.Socket{
		{ID: 0, Family: reusecheck.TCP6, Opts: reusecheck.ReuseAddr, UID: 5, State: reusecheck.Listening,
			Local: at("[::]:5000"), PortLocked: true},
		{ID: 1, Family: reusecheck.TCP4, Opts: reusecheck.ReusePort, UID: 6, State: reusecheck.Connected,
			Local: at("127.0.0.1:40000"), Peer: at("127.0.0.2:5000"), ByConnect: true},
		{ID: reusecheck.ID(1).OtherEnd(), Family: reusecheck.TCP6, Opts: reusecheck.ReuseAddr, UID: 5,
			State: reusecheck.Connected, Local: at("[::ffff:127.0.0.2]:5000"), Peer: at("[::ffff:127.0.0.1]:40000")},
		{ID: 2, Family: reusecheck.TCP6, Opts: reusecheck.ReuseAddr, State: reusecheck.TimeWait,
			Local: at("[::ffff:127.0.0.3]:5000")},
	}
	var got []reusecheck.Socket
	o.Sockets(func(s *reusecheck.Socket) bool {
		got = append(got, *s)
		return true
	})
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		t.Errorf("sockets (-want +got)\n%s", diff)
	}
}

func TestResetForgetsEverything(t *testing.T) {
	o := oracle.New()
	o.Follow(reusecheck.NewSocket(0, reusecheck.TCP4, 0), reusecheck.Success)
	o.Follow(reusecheck.NewSocket(1, reusecheck.TCP4, 0), reusecheck.Success)
	o.Follow(reusecheck.Bind(0, home), reusecheck.Success)
	o.Follow(reusecheck.Listen(1), reusecheck.Success) // its port is not told
	o.Reset(reusecheck.Config{})
	o.Sockets(func(s *reusecheck.Socket) bool {
		t.Errorf("%v is still there", s.ID)
		return true
	})
	o.Follow(reusecheck.NewSocket(0, reusecheck.TCP4, 0), reusecheck.Success)
	for _, op := range []reusecheck.Op{reusecheck.Bind(0, home), reusecheck.Bind(0, netip.MustParseAddrPort("127.0.0.1:0"))} {
		if v := o.Judge(op, inUse); v.Agrees || v.Open != "" {
			t.Errorf("%v: refused by what is gone, open %q", op, v.Open)
		}
	}
}
