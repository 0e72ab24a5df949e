package reusecheck

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAStatedAnswerMatches(t *testing.T) {
	for _, c := range []struct {
		stated, given Answer
		want          bool
	}{
		{Answer{}, Fail(EINVAL), true},
		{Success, Success, true},
		{Success, Picked(5), true},
		{Picked(5), Success, false},
		{Picked(5), Picked(5), true},
		{Picked(5), Picked(6), false},
		{Success, Fail(EINVAL), false},
		{Fail(EINVAL), Success, false},
		{Fail(EINVAL), Fail(EBADF), false},
		{Answer{Kind: Received, Who: 1}, Answer{Kind: Received, Who: 2}, false},
		{Success, Answer{Kind: Exited}, false},
		{Success, Answer{}, false},
	} {
		if got := c.stated.Matches(c.given); got != c.want {
			t.Errorf("%q matches %q: %v", c.stated, c.given, got)
		}
	}
}

func TestTheOtherEndOfTheOtherEndIsTheSocket(t *testing.T) {
	for _, id := range []ID{0, 1, 1 << 30} {
		if end := id.OtherEnd(); end == id || end.OtherEnd() != id || !end.IsOtherEnd() || id.IsOtherEnd() {
			t.Errorf("%d has the other end %d", id, end)
		}
	}
	if NoID.IsOtherEnd() {
		t.Error("nobody is an other end")
	}
}

func TestACloneSharesNothing(t *testing.T) {
	read := func() *Trace {
		return MustParse("system timewait\nsysctl a 1\nnetns m\nnetns n\nexit m,n => EINVAL\n")
	}
	t1 := read()
	c := t1.Clone()
	c.Config.Sysctl[0].Value, c.Names[0], c.Steps[2].Op.Batch[0], c.Steps[0].Line = "2", "x", 1, 7
	if diff := cmp.Diff(read(), t1, traceOptions); diff != "" || t1.Steps[0].Line != 3 {
		t.Errorf("changing a clone changes the trace (-before +after):\n%s", diff)
	}
}

func TestATraceDivergesWhenAStepStatesTheOracle(t *testing.T) {
	if MustParse("socket a tcp4 => ok\nlisten a => EINVAL").Diverges() {
		t.Error("a trace without an oracle's answer diverges")
	}
	if !MustParse("socket a tcp4\nlisten a => EINVAL oracle ok\nclose a").Diverges() {
		t.Error("a trace with an oracle's answer does not diverge")
	}
}

func TestTheCanonicalAddressOfAFamily(t *testing.T) {
	for _, c := range []struct {
		family   Family
		in, want string
	}{
		{TCP4, "127.0.0.1", "127.0.0.1"},
		{TCP4, "::ffff:127.0.0.1", "127.0.0.1"},
		{TCP4, "", "0.0.0.0"},
		{TCP6, "127.0.0.1", "::ffff:127.0.0.1"},
		{UDP6, "::ffff:127.0.0.1", "::ffff:127.0.0.1"},
		{UDP6, "::1", "::1"},
		{TCP6, "", "::"},
	} {
		in, _ := netip.ParseAddr(c.in)
		if got := Canonical(c.family, in); got.String() != c.want {
			t.Errorf("%s stores %q as %s, not %s", c.family, c.in, got, c.want)
		}
	}
}

func TestAFamilyHasATwinOfItsProtocolForEveryAddress(t *testing.T) {
	four, six, mapped := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("::ffff:127.0.0.1")
	for _, p := range [][2]Family{{TCP4, TCP6}, {UDP4, UDP6}} {
		for _, f := range p {
			if f.Of(four) != p[0] || f.Of(six) != p[1] || f.Of(mapped) != p[1] {
				t.Errorf("%s: %s, %s, %s", f, f.Of(four), f.Of(six), f.Of(mapped))
			}
		}
	}
}

func TestARangeOfPorts(t *testing.T) {
	r := PortRange{5, 7}
	for p, want := range map[uint16]bool{4: false, 5: true, 7: true, 8: false} {
		if r.Contains(p) != want {
			t.Errorf("%s contains %d: %v", r, p, !want)
		}
	}
	for r, want := range map[PortRange]int{{}: 0, {5, 7}: 3, {5, 5}: 1, {7, 5}: 0, {1, 65535}: 65535, DefaultPorts: 28232} {
		if got := r.Size(); got != want {
			t.Errorf("%s has %d ports, not %d", r, got, want)
		}
	}
}

func TestTheKeyOfACacheCountsWhileFastReusePortIsPositive(t *testing.T) {
	keyed := Cache{Exists: true, FastReuse: FastReuse, FastReusePort: FastStrict, UID: 5, Family: TCP6, V6Only: true}
	if got := keyed.WithoutKey(); got != keyed {
		t.Errorf("the key of %+v is dropped", keyed)
	}
	keyed.FastReusePort = FastUnknown
	if got, want := keyed.WithoutKey(), (Cache{Exists: true, FastReuse: FastReuse}); got != want {
		t.Errorf("the key is kept: %+v", got)
	}
	keyed.FastReusePort = FastConnect
	if got, want := keyed.WithoutKey(), (Cache{Exists: true, FastReuse: FastReuse, FastReusePort: FastConnect}); got != want {
		t.Errorf("the key is kept: %+v", got)
	}
}

func TestASocketWithAPortIsAnOwner(t *testing.T) {
	s := Socket{Local: netip.MustParseAddrPort("127.0.0.1:0")}
	if s.Owner() {
		t.Error("a socket without a port is an owner")
	}
	if s.Local = netip.MustParseAddrPort("127.0.0.1:1"); !s.Owner() {
		t.Error("a socket with a port is no owner")
	}
}

func TestAValueWithoutANameIsPrintedAsANumber(t *testing.T) {
	for want, got := range map[string]string{
		"time-wait": TimeWait.String(), "state(4)": (TimeWait + 1).String(), "scan": PathScan.String(), "path(4)": (PathScan + 1).String(),
		"d2": Dev2.String(), "device(4)": (Dev2 + 1).String(), "udp6": UDP6.String(), "none": NoCPU.String(), "0": Processor(0).String(), "family(5)": (UDP6 + 1).String(), "family(0)": Family(0).String(),
	} {
		if got != want {
			t.Errorf("printed %q, not %q", got, want)
		}
	}
}

func TestACacheIsShortWithTheKernelsNames(t *testing.T) {
	for want, c := range map[string]Cache{
		"0/0": {}, "1/ANY": {FastReuse: FastReuse, FastReusePort: FastAny}, "0/STRICT": {FastReusePort: FastStrict},
		"-1/-1": {FastReuse: FastConnect, FastReusePort: FastConnect},
	} {
		if got := c.Short(); got != want {
			t.Errorf("%+v is %s, not %s", c, got, want)
		}
	}
}
