package model_test

import (
	"net/netip"
	"strings"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// places are what two sockets can be bound to: family, options and address.
var places = []struct {
	name   string
	family rc.Family
	opts   rc.Opt
	addr   string
}{
	{"any4", rc.TCP4, 0, "0.0.0.0"},
	{"a", rc.TCP4, 0, "127.0.0.1"},
	{"b", rc.TCP4, 0, "127.0.0.2"},
	{"dual any6", rc.TCP6, 0, "::"},
	{"v6only any6", rc.TCP6, rc.V6Only, "::"},
	{"x", rc.TCP6, 0, "::1"},
	{"y", rc.TCP6, 0, "fd00::1"},
	{"anyM", rc.TCP6, 0, "::ffff:0.0.0.0"},
	{"mapped a", rc.TCP6, 0, "::ffff:127.0.0.1"},
	{"mapped b", rc.TCP6, 0, "::ffff:127.0.0.2"},
}

// covered is the table of what a STRICT cache answers for, seen on running
// kernels: a row is the cached socket, a column the one that asks.
const covered = `
any4         x x x x . . . x x x
a            . x . . . . . . x .
b            . . x . . . . . . x
dual any6    x x x x x x x x x x
v6only any6  . . . x x x x . . .
x            . . . . . x . . . .
y            . . . . . . x . . .
anyM         x x x . . . . x x x
mapped a     . x . . . . . . x .
mapped b     . . x . . . . . . x
`

// exact is the same with a repair that compares everything.
const exact = `
any4         x . . . . . . . . .
a            . x . . . . . . . .
b            . . x . . . . . . .
dual any6    . . . x . . . . . .
v6only any6  . . . . x . . . . .
x            . . . . . x . . . .
y            . . . . . . x . . .
anyM         . . . . . . . x . .
mapped a     . . . . . . . . x .
mapped b     . . . . . . . . . x
`

// asIPv4 is the same before the key had a family: every IPv6 address but the
// wildcard looks the same to it.
const asIPv4 = `
any4         x x x x x x x x x x
a            x x . x x . . x x .
b            x . x x x . . x . x
dual any6    x x x x x x x x x x
v6only any6  x x x x x x x x x x
x            x . . x x x x x . .
y            x . . x x x x x . .
anyM         x x x x x x x x x x
mapped a     x x . x x . . x x .
mapped b     x . x x x . . x . x
`

func TestAStrictCacheAnswersForWhatItsAddressCovers(t *testing.T) {
	for kernel, table := range map[string]string{"6.18": covered, "6.18+exact-strict-match": exact, "6.18-strict-key-family": asIPv4} {
		t.Run(kernel, func(t *testing.T) { holdTo(t, kernel, table) })
	}
}

// holdTo binds every pair of places on a kernel.
func holdTo(t *testing.T, kernel, table string) {
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cached := places[i]
		cells := strings.Fields(strings.TrimPrefix(line, cached.name))
		for j, binder := range places {
			k := model.MustParse(kernel).New()
			for id, p := range []int{i, j} {
				at := places[p]
				mustDo(t, k, rc.NewSocket(rc.ID(id), at.family, at.opts|rc.ReusePort))
				got := mustDo(t, k, rc.Bind(rc.ID(id), netip.AddrPortFrom(netip.MustParseAddr(at.addr), 40000)))
				if got.Kind != rc.OK {
					t.Fatalf("%s then %s: bind %d is answered %s", cached.name, binder.name, id+1, got.Answer)
				}
				if id == 1 && (got.Path == rc.PathFast) != (cells[j] == "x") {
					t.Errorf("cached %s, binder %s: the path is %s, the table has %q", cached.name, binder.name, got.Path, cells[j])
				}
			}
		}
	}
}

// On 6.18 an address bucket has a pair of its own, which is kept with the port's
// from the first one on.
func TestAnAddressBucketsPairIsThatOfItsPort(t *testing.T) {
	k := model.MustParse("6.18").New()
	mustDo(t, k, rc.NewSocket(0, rc.TCP4, rc.ReusePort))
	got := mustDo(t, k, rc.Bind(0, netip.MustParseAddrPort("127.0.0.1:40000")))
	if want := (rc.Pair{Exists: true, FastReuse: got.After.FastReuse, FastReusePort: got.After.FastReusePort}); got.AddrAfter != want || want.FastReusePort != rc.FastStrict {
		t.Errorf("the address bucket has %+v, its port %+v", got.AddrAfter, got.After)
	}
}

// A port that connections share is not open to connect again while somebody who
// bound it remains, wherever that one's address bucket stands.
func TestAPortStaysClosedToConnectWhileSomebodyWhoBoundItRemains(t *testing.T) {
	for _, listener := range []string{"closed", "open"} { // closed, it leaves its bucket's place to b
		tr := rc.MustParse(`
ports 40000-40000
socket l tcp4
socket a tcp4 no-port
socket c tcp4 no-port
socket b tcp4 reuseaddr
bind l 0.0.0.0:50000
listen l
bind a 127.0.0.2:0
connect a 127.0.0.1:50000
bind c 127.0.0.2:0
connect c 127.0.0.5:50000
`)
		k := model.MustParse("6.18").New()
		if err := k.Reset(tr.Config); err != nil {
			t.Fatal(err)
		}
		for i := range tr.Steps {
			if r := mustDo(t, k, tr.Steps[i].Op); r.Kind != rc.OK {
				t.Fatalf("%s: %s", tr.Steps[i].Op, r.Answer)
			}
		}
		if listener == "closed" {
			mustDo(t, k, rc.Close(0))
		}
		mustDo(t, k, rc.Bind(3, netip.MustParseAddrPort("127.0.0.3:40000")))
		mustDo(t, k, rc.Close(2)) // c: a alone is left in that address bucket
		if got := k.CacheOf(40000); got.FastReuse != rc.FastConnect || got.FastReusePort != rc.FastUnknown {
			t.Errorf("listener %s: while b is there the cache is %d/%d, not -1/0", listener, got.FastReuse, got.FastReusePort)
		}
		mustDo(t, k, rc.Close(3))
		if got := k.CacheOf(40000); got.FastReuse != rc.FastConnect || got.FastReusePort != rc.FastConnect {
			t.Errorf("listener %s: when b is gone the cache is %d/%d, not -1/-1", listener, got.FastReuse, got.FastReusePort)
		}
	}
}
