package corpus_test

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
)

var update = flag.Bool("update", false, "write the traces of bind_wildcard and of reuseaddr_ports_exhausted from their tables")

//go:embed testdata/bind_wildcard.txt
var wildcardTable string

// written is where the traces of a selftest that a table gives are kept.
const (
	wildcardDir = "tcp/selftests/bind_wildcard"
	autobindDir = "tcp/selftests/reuseaddr_ports_exhausted"
)

// The kernels on which the selftest's own expectations hold: 4.10 to 4.13 and
// 6.0 to 6.8 as released answer otherwise in some rows. The 6.1 stable line
// took a change in 6.1.168 that grants a mapped address beside the mapped
// wildcard.
const (
	wildcardRight   = "4.9,4.14-5.18,6.1.168-6.1,6.9-"
	wildcardBut61   = "4.9,4.14-5.18,6.9-"
	wildcardOnly61  = "6.1.168-6.1"
	wildcardSource  = "tools/testing/selftests/net/bind_wildcard.c, pair %d, %s"
	wildcard61Cause = "; 5e07e672412b in the 6.1 stable line"
)

var probes = []string{"0.0.0.0", "127.0.0.1", "::", "::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1"}

var variants = []struct {
	name string
	opts rc.Opt
}{{"plain", 0}, {"reuseaddr", rc.ReuseAddr}, {"reuseport", rc.ReusePort}}

func TestTheWildcardTracesAreThoseOfTheirTable(t *testing.T) {
	want := map[string]string{}
	pair := 0
	for line := range strings.Lines(wildcardTable) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pair++
		cols := strings.Split(line, "|")
		for _, v := range variants {
			addWildcard(t, want, pair, cols, v.name, v.opts)
		}
	}
	if len(want) != 132+18 {
		t.Errorf("%d traces, want 132 runs and 18 of them once more for 6.1", len(want))
	}
	compareFiles(t, wildcardDir, want)
}

func addWildcard(t *testing.T, want map[string]string, pair int, cols []string, variant string, opts rc.Opt) {
	first, second := strings.TrimSpace(cols[0]), strings.TrimSpace(cols[1])
	results := strings.Fields(cols[2])
	if opts != 0 {
		results = strings.Fields(cols[3])
	}
	name := fmt.Sprintf("%02d-%s-%s-%s", pair, slug(first), slug(second), variant)
	tr := wildcard(first, second, opts, results)
	tr.Title = fmt.Sprintf("%s, then %s, then six probes: %s", first, second, variant)
	tr.Source = fmt.Sprintf(wildcardSource, pair, variant)
	tr.Kernels = kernels(t, wildcardRight)
	granted, runs := "", ""
	if len(cols) > 4 {
		granted, runs, _ = strings.Cut(strings.TrimSpace(cols[4]), ": ")
	}
	if strings.Contains(runs, variant) {
		tr.Kernels = kernels(t, wildcardBut61)
		odd := tr.Clone()
		odd.Kernels = kernels(t, wildcardOnly61)
		odd.Source += wildcard61Cause
		step := len(odd.Steps) - 1
		if granted == "second" {
			step = 8 + 1
		}
		odd.Steps[step].Want, odd.Steps[step].Oracle = rc.Success, odd.Steps[step].Want
		odd.Title += ", as the 6.1 line answers"
		want[name+"-6.1.trace"] = odd.String()
	}
	want[name+".trace"] = tr.String()
}

// wildcard is one run.
func wildcard(first, second string, opts rc.Opt, results []string) *rc.Trace {
	tr := &rc.Trace{Config: rc.Config{System: rc.TCP, Ports: rc.PortRange{Lo: 40000, Hi: 40000}}}
	var binds []rc.Step
	for i, text := range append([]string{first, second}, probes...) {
		o := opts
		if i > 1 {
			o = 0
		}
		text, v6only := strings.CutSuffix(text, " v6only")
		a := netip.MustParseAddr(text)
		family := rc.TCP6
		if a.Is4() {
			family = rc.TCP4
		}
		if v6only {
			o |= rc.V6Only
		}
		id := rc.ID(i)
		tr.Names = append(tr.Names, id.String())
		tr.Steps = append(tr.Steps, rc.Step{Op: rc.NewSocket(id, family, o)})
		port, answer := uint16(40000), rc.Success
		switch {
		case i == 0:
			port, answer = 0, rc.Picked(40000)
		case results[i-1] == "E":
			answer = rc.Fail(rc.EADDRINUSE)
		}
		binds = append(binds, rc.Step{Op: rc.Bind(id, netip.AddrPortFrom(a, port)), Want: answer})
	}
	tr.Steps = append(tr.Steps, binds...)
	return tr
}

func TestTheAutobindTracesAreThoseOfTheRule(t *testing.T) {
	all := []rc.Opt{0, rc.ReuseAddr, rc.ReusePort, rc.ReuseAddr | rc.ReusePort}
	want := map[string]string{}
	for _, a := range all {
		for _, b := range all {
			for _, other := range []bool{false, true} {
				name := fmt.Sprintf("%s-%s-%s.trace", optSlug(a), optSlug(b), map[bool]string{false: "same-uid", true: "other-uid"}[other])
				want[name] = autobind(t, a, b, other).String()
			}
		}
	}
	if len(want) != 32 {
		t.Errorf("%d traces, want 16 combinations of options and two of users", len(want))
	}
	compareFiles(t, autobindDir, want)
}

// autobind is one run of reuseaddr_ports_exhausted: two sockets bind the only
// port of the range. Only reuseaddr on both shares it, unless both have
// reuseport as well and one user: that is left to an explicit bind.
func autobind(t *testing.T, a, b rc.Opt, other bool) *rc.Trace {
	uids := [2]uint32{10, 10}
	if other {
		uids[1] = 20
	}
	tr := &rc.Trace{
		Title:   fmt.Sprintf("the only automatic port: %s, then %s, %s", optWords(a), optWords(b), map[bool]string{false: "one user", true: "two users"}[other]),
		Source:  "tools/testing/selftests/net/reuseaddr_ports_exhausted.c",
		Kernels: kernels(t, "5.7-"),
		Config: rc.Config{
			System: rc.TCP, Ports: rc.PortRange{Lo: 40000, Hi: 40000},
			Sysctl: []rc.Sysctl{{Name: "net.ipv4.ip_autobind_reuse", Value: "1"}},
		},
		Names: []string{"a", "b"},
	}
	for i, o := range []rc.Opt{a, b} {
		op := rc.NewSocket(rc.ID(i), rc.TCP4, o)
		op.UID = uids[i]
		tr.Steps = append(tr.Steps, rc.Step{Op: op})
	}
	auto := netip.MustParseAddrPort("127.0.0.1:0")
	tr.Steps = append(tr.Steps, rc.Step{Op: rc.Bind(0, auto), Want: rc.Picked(40000)})
	sharing := a.Has(rc.ReusePort) && b.Has(rc.ReusePort) && !other
	if !a.Has(rc.ReuseAddr) || !b.Has(rc.ReuseAddr) || sharing {
		tr.Steps = append(tr.Steps, rc.Step{Op: rc.Bind(1, auto), Want: rc.Fail(rc.EADDRINUSE)})
		return tr
	}
	tr.Steps = append(tr.Steps,
		rc.Step{Op: rc.Bind(1, auto), Want: rc.Picked(40000)},
		rc.Step{Op: rc.Listen(0), Want: rc.Success},
		rc.Step{Op: rc.Listen(1), Want: rc.Fail(rc.EADDRINUSE)})
	return tr
}

func optWords(o rc.Opt) string {
	if o == 0 {
		return "no option"
	}
	return strings.ReplaceAll(o.String(), " ", " and ")
}

func optSlug(o rc.Opt) string {
	if o == 0 {
		return "plain"
	}
	return strings.ReplaceAll(o.String(), " ", "+")
}

func slug(addr string) string {
	return strings.NewReplacer("::ffff:0.0.0.0", "mapped-any", "::ffff:127.0.0.1", "mapped-local",
		"0.0.0.0", "any4", "127.0.0.1", "local4", "::1", "local6", "::", "any6", " ", "-").Replace(addr)
}

func kernels(t *testing.T, s string) rc.KernelSet {
	t.Helper()
	k, err := rc.ParseKernels(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// compareFiles holds the embedded files of dir against want, or writes them.
func compareFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			path := filepath.Join(dir, name)
			if old, _ := os.ReadFile(path); !bytes.Equal(old, []byte(text)) {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		return
	}
	ts, err := corpus.Under(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tr := range ts {
		got[filepath.Base(tr.File)] = tr.String()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the files of %s are not those of the table; run go test -update (-want +got):\n%s", dir, d)
	}
}
