package oracle_test

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

var inUse = reusecheck.Fail(reusecheck.EADDRINUSE)

// tableLines are the lines of a table in testdata without its comments.
func tableLines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// both gives the oracle the right answer to op and a wrong one: it must agree
// with the first and, asked about the second, want the first.
func both(t *testing.T, o *oracle.TCP, op reusecheck.Op, right, wrong reusecheck.Answer) {
	t.Helper()
	if v := o.Judge(op, wrong); v.Agrees || v.Want != right || v.Open != "" {
		t.Errorf("%v => %v: agrees %v, wants %v, open %q; should want %v", op, wrong, v.Agrees, v.Want, v.Open, right)
	} else if wrong == reusecheck.Success && len(v.Conflicts) == 0 {
		t.Errorf("%v => %v: refused without a conflict", op, wrong)
	}
	if v := o.Judge(op, right); !v.Agrees || v.Open != "" {
		t.Errorf("%v => %v: should agree, wants %v because of %v", op, right, v.Want, v.Conflicts)
	} else if (right == inUse) != (len(v.Conflicts) > 0) {
		t.Errorf("%v => %v: conflicts %v", op, right, v.Conflicts)
	}
	o.Follow(op, right)
}

func newSocket(id reusecheck.ID, addr string, opts reusecheck.Opt) (reusecheck.Op, netip.Addr) {
	addr, v6only := strings.CutSuffix(addr, "/v6only")
	a := netip.MustParseAddr(addr)
	family := reusecheck.TCP6
	if a.Is4() {
		family = reusecheck.TCP4
	}
	if v6only {
		opts |= reusecheck.V6Only
	}
	return reusecheck.NewSocket(id, family, opts), a
}

var probes = []string{"0.0.0.0", "127.0.0.1", "::", "::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1"}

func TestAll132RunsOfBindWildcardAreJudgedAsTheSelftestExpects(t *testing.T) {
	const port = 40000
	runs := 0
	run := func(first, second, results string, opts reusecheck.Opt) {
		runs++
		t.Run(fmt.Sprintf("%s then %s %s", first, second, opts), func(t *testing.T) {
			o := oracle.New()
			op, addr := newSocket(0, first, opts)
			o.Follow(op, reusecheck.Success)
			auto := reusecheck.Bind(0, netip.AddrPortFrom(addr, 0))
			if v := o.Judge(auto, reusecheck.Picked(port)); !v.Agrees || v.Open != "" {
				t.Fatalf("the first bind: wants %v", v.Want)
			}
			o.Follow(auto, reusecheck.Picked(port))
			for i, who := range append([]string{second}, probes...) {
				if i > 0 {
					opts = 0
				}
				id := reusecheck.ID(i + 1)
				op, addr := newSocket(id, who, opts)
				o.Follow(op, reusecheck.Success)
				right, wrong := reusecheck.Success, inUse
				if results[i] == 'x' {
					right, wrong = wrong, right
				}
				both(t, o, reusecheck.Bind(id, netip.AddrPortFrom(addr, port)), right, wrong)
			}
		})
	}
	for _, line := range tableLines(t, "testdata/bind_wildcard.txt") {
		f := strings.Fields(line)
		if len(f) != 6 {
			t.Fatalf("not a row: %q", line)
		}
		run(f[0], f[1], f[2]+f[3], 0)
		run(f[0], f[1], f[4]+f[5], reusecheck.ReuseAddr)
		run(f[0], f[1], f[4]+f[5], reusecheck.ReusePort)
	}
	if runs != 132 {
		t.Errorf("%d runs", runs)
	}
}

func TestAll32CombinationsOfReuseaddrPortsExhaustedAreJudgedAsSeen(t *testing.T) {
	options := map[string]reusecheck.Opt{
		"-": 0, "reuseaddr": reusecheck.ReuseAddr, "reuseport": reusecheck.ReusePort,
		"reuseaddr,reuseport": reusecheck.ReuseAddr | reusecheck.ReusePort,
	}
	answers := map[string][2]reusecheck.Answer{ // the right one and a wrong one
		"ok": {reusecheck.Success, inUse}, "E": {inUse, reusecheck.Success},
	}
	const port = 40000
	world := reusecheck.Config{
		Ports:  reusecheck.PortRange{Lo: port, Hi: port},
		Sysctl: []reusecheck.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}},
	}
	bind := func(id reusecheck.ID) reusecheck.Op {
		return reusecheck.Bind(id, netip.MustParseAddrPort("127.0.0.1:0"))
	}
	runs := 0
	for _, line := range tableLines(t, "testdata/ports_exhausted.txt") {
		f := strings.Fields(line)
		for user, col := range [2]int{2, 5} {
			runs++
			t.Run(fmt.Sprintf("%s %s users %d", f[0], f[1], user+1), func(t *testing.T) {
				o := oracle.New()
				o.Reset(world)
				a := reusecheck.NewSocket(0, reusecheck.TCP4, options[f[0]])
				b := reusecheck.NewSocket(1, reusecheck.TCP4, options[f[1]])
				a.UID, b.UID = 10, uint32(10+10*user)
				o.Follow(a, reusecheck.Success)
				o.Follow(b, reusecheck.Success)
				both(t, o, bind(0), reusecheck.Picked(port), inUse)
				second := answers[f[col]]
				for i := range second {
					if second[i] == reusecheck.Success {
						second[i] = reusecheck.Picked(port)
					}
				}
				both(t, o, bind(1), second[0], second[1])
				both(t, o, reusecheck.Listen(0), answers[f[col+1]][0], answers[f[col+1]][1])
				if f[col+2] != "-" {
					both(t, o, reusecheck.Listen(1), answers[f[col+2]][0], answers[f[col+2]][1])
				}
			})
		}
	}
	if runs != 32 {
		t.Errorf("%d runs", runs)
	}
}
