package shrink

import (
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// The values in their order of simplicity; a value that is not listed comes
// after all that are. The lists are also what a pass may put in place of
// another value.
var (
	addrs = []netip.Addr{
		netip.MustParseAddr("127.0.0.1"),
		netip.MustParseAddr("127.0.0.2"),
		netip.MustParseAddr("0.0.0.0"),
		netip.MustParseAddr("::1"),
		netip.MustParseAddr("fd00::1"),
		netip.MustParseAddr("::"),
		netip.MustParseAddr("::ffff:127.0.0.1"),
		netip.MustParseAddr("::ffff:127.0.0.2"),
		netip.MustParseAddr("::ffff:0.0.0.0"),
	}
	ports = []uint16{40000, 40001, 40002, 0}
	users = []uint32{0, 1001, 1002}
	devs  = []rc.Dev{rc.NoDev, rc.Dev1, rc.Dev2, rc.DevLo}
	cpus  = []rc.CPU{rc.NoCPU, rc.Processor(0), rc.Processor(1)}
	verbs = []rc.Verb{
		rc.VNetns, rc.VSocket, rc.VBind, rc.VListen, rc.VConnect, rc.VClose, rc.VSet, rc.VInherit,
		rc.VShutdown, rc.VDisconnect, rc.VTimeWait, rc.VExpire, rc.VSend, rc.VExit,
	}
	options = []rc.Opt{rc.ReuseAddr, rc.ReusePort, rc.V6Only, rc.NoPort, rc.Transparent}
	ranges  = []rc.PortRange{{}, {Lo: 40000, Hi: 40000}, {Lo: 40000, Hi: 40001}, {Lo: 40000, Hi: 40003}}
)

func rank[T comparable](list []T, v T) int {
	if i := slices.Index(list, v); i >= 0 {
		return i
	}
	return len(list)
}

// The kinds of attributes in order of simplicity: the options, then the rest.
const (
	kindUID = 6 + iota
	kindDev
	kindNet
	kindRange
	kindUnaccepted
	kindCPU
	kindTable
)

func optKinds(o rc.Opt) (count, sum int) {
	for i, n := range options {
		if o.Has(n) {
			count++
			sum += i + 1
		}
	}
	return count, sum
}
