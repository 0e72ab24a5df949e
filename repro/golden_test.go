package repro_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldens are the programs whose text is kept under review, by trace and format.
var goldens = []struct{ trace, format string }{
	{"strict-cache-overlap", "c"},
	{"strict-cache-device", "c"},
	{"any-port", "c"},
	{"inherit-uid", "c"},
	{"timewait", "c"},
	{"udp-delivery", "c"},
	{"udp-device", "c"},
	{"cost-reuseport-alternate", "bench"},
	{"strict-cache-overlap", "packetdrill"},
	{"reuse-listen-deferred", "packetdrill"},
	{"strict-cache-device", "syz"},
	{"two-connections", "syz"},
	{"first-bind", "kunit"},
	{"strict-cache-overlap", "kunit"},
	{"strict-cache-control", "kunit"},
	{"strict-cache-device", "selftest"},
	{"udp-delivery", "selftest"},
	{"strict-cache-device", "python"},
	{"timewait", "python"},
	{"udp-delivery", "python"},
	{"udp-device", "python"},
	{"strict-cache-device", "go"},
	{"timewait", "go"},
	{"udp-delivery", "go"},
	{"udp-device", "go"},
}

func TestTheTextOfAProgramIsThatOfItsGoldenFile(t *testing.T) {
	ext := make(map[string]string)
	for _, f := range repro.Formats() {
		ext[f.Name] = f.Ext
	}
	for _, g := range goldens {
		t.Run(g.trace+"/"+g.format, func(t *testing.T) {
			name := g.trace + "." + g.format
			if ext[g.format] != "."+g.format {
				name += ext[g.format]
			}
			file := filepath.Join("testdata", "golden", name+".golden")
			got := generate(t, read(t, "testdata/"+g.trace+".trace"), g.format, infoOf(t, g.trace))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; write it with: go test ./repro -update", err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s, -golden +generated:\n%s", file, d)
			}
		})
	}
}

func TestTheSameTraceGivesTheSameText(t *testing.T) {
	for _, tr := range traces(t) {
		for _, f := range repro.Formats() {
			a, errA := repro.Generate(tr, f.Name, infoOf(t, base(tr)))
			b, errB := repro.Generate(tr, f.Name, infoOf(t, base(tr)))
			if !bytes.Equal(a, b) || (errA == nil) != (errB == nil) {
				t.Errorf("%s differs from one time to the next for %s", f.Name, base(tr))
			}
		}
	}
}

// infoOf is what is said of a trace of testdata beside the trace.
func infoOf(t *testing.T, trace string) repro.Info {
	var info repro.Info
	switch trace {
	case "strict-cache-overlap":
		info.Finding = "a reuseport-only socket binds over an owner that has reuseaddr only"
		info.Control = read(t, "testdata/strict-cache-control.trace")
	case "first-bind":
		// What a bucket holds that knows its first owner.
		info.Finding = "the first bind leaves the cache weaker than its owner allows"
		info.Caches = []reusecheck.Cache{{}, {}, {Exists: true, FastReuse: 1}, {}, {Exists: true, FastReusePort: reusecheck.FastAny}}
	case "strict-cache-device", "strict-cache-v6only":
		info.Control = read(t, "testdata/"+trace+"-control.trace")
	}
	return info
}
