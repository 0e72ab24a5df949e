package matrix

import (
	"net/netip"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// Set is a list of kinds with a name.
type Set struct {
	Name  string
	Doc   string
	Kinds []Kind
}

// Default is the name of the set for those who name none.
const Default = "default"

const (
	ra   = reusecheck.ReuseAddr
	rp   = reusecheck.ReusePort
	both = ra | rp
	v6   = reusecheck.V6Only
)

var sets = []Set{
	{Default, "of everything that decides something", slices.Concat(
		kinds4("127.0.0.1", 0, ra, rp, both),
		kinds4("127.0.0.2", 0),
		kinds4("0.0.0.0", 0, ra, rp),
		kinds6("::ffff:127.0.0.1", 0, rp),
		kinds6("::ffff:0.0.0.0", 0),
		kinds6("::", 0, ra, rp, v6, v6|rp),
		kinds6("::1", 0, rp),
		listening(kinds4("127.0.0.1", 0, ra, rp, both)),
		listening(kinds6("::", rp)),
		of(kinds4("127.0.0.1", rp, both), user(1001)),
		of(kinds4("127.0.0.1", 0, rp), device(reusecheck.Dev1)),
	)},
	{"families", "every sort of address, with each option", slices.Concat(
		kinds4("0.0.0.0", 0, ra, rp), kinds4("127.0.0.1", 0, ra, rp), kinds4("127.0.0.2", 0, ra, rp),
		kinds6("::", 0, ra, rp, v6, v6|ra, v6|rp), kinds6("::1", 0, ra, rp), kinds6("fd00::1", 0, ra, rp),
		kinds6("::ffff:0.0.0.0", 0, ra, rp), kinds6("::ffff:127.0.0.1", 0, ra, rp),
	)},
	{"options", "every combination of options, listening or not", withListening(slices.Concat(
		kinds4("127.0.0.1", 0, ra, rp, both), kinds4("0.0.0.0", 0, ra, rp, both)))},
	{"users", "three users' sockets", withListening(slices.Concat(
		kinds4("127.0.0.1", ra, rp, both),
		of(kinds4("127.0.0.1", ra, rp, both), user(1001)),
		of(kinds4("127.0.0.1", ra, rp, both), user(1002))))},
	{"devices", "sockets bound to a device or to none", slices.Concat(
		onDevices(kinds4("127.0.0.1", 0, ra, rp)), onDevices(kinds4("0.0.0.0", 0, ra, rp)))},
	{"udp", "the same for UDP", slices.Concat(
		udp(kinds4("0.0.0.0", 0, ra, rp, both)), udp(kinds4("127.0.0.1", 0, ra, rp, both)),
		udp(kinds6("::", 0, ra, rp, v6, v6|ra, v6|rp)), udp(kinds6("::1", 0, ra, rp)),
		udp(kinds6("::ffff:127.0.0.1", 0, ra, rp)),
		udp(of(kinds4("127.0.0.1", ra, rp), user(1001))), udp(of(kinds4("127.0.0.1", 0, rp), device(reusecheck.Dev1))))},
}

// Sets are the named lists of kinds that [Parse] knows.
func Sets() []Set { return slices.Clone(sets) }

func setNamed(name string) *Set {
	for i := range sets {
		if sets[i].Name == name {
			return &sets[i]
		}
	}
	return nil
}

func kinds4(addr string, opts ...reusecheck.Opt) []Kind { return at(reusecheck.TCP4, addr, opts) }
func kinds6(addr string, opts ...reusecheck.Opt) []Kind { return at(reusecheck.TCP6, addr, opts) }

func at(f reusecheck.Family, addr string, opts []reusecheck.Opt) []Kind {
	var ks []Kind
	for _, o := range opts {
		ks = append(ks, Kind{Family: f, Addr: netip.MustParseAddr(addr), Opts: o})
	}
	return ks
}

// of changes every kind.
func of(ks []Kind, change func(*Kind)) []Kind {
	ks = slices.Clone(ks)
	for i := range ks {
		change(&ks[i])
	}
	return ks
}

func user(uid uint32) func(*Kind)         { return func(k *Kind) { k.UID = uid } }
func device(d reusecheck.Dev) func(*Kind) { return func(k *Kind) { k.Dev = d } }
func listening(ks []Kind) []Kind          { return of(ks, func(k *Kind) { k.Listen = true }) }
func withListening(ks []Kind) []Kind      { return slices.Concat(ks, listening(ks)) }

func onDevices(ks []Kind) []Kind {
	return slices.Concat(ks, of(ks, device(reusecheck.Dev1)), of(ks, device(reusecheck.Dev2)))
}

// udp makes kinds of TCP kinds of UDP.
func udp(ks []Kind) []Kind {
	return of(ks, func(k *Kind) { k.Family += reusecheck.UDP4 - reusecheck.TCP4 })
}
