package shrink_test

import (
	"context"
	"flag"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// known are findings by the trace that tells of them, the kernel that has them
// and the property that they violate, with the seed of a search that comes to one
// soon; 0 for findings that are too rare for that.
var known = []struct {
	file, kernel, property string
	seed                   uint64
}{
	{"kunit/first-bind-reuseaddr-given", "6.18", "precise", 1},
	{"cases/strict-cache-overlap", "6.18", "sound", 3},
	{"cases/strict-cache-device", "6.18", "sound", 1},
	{"cases/strict-cache-v6only", "6.18", "sound", 2},
	{"history/L3-device", "6.18", "sound", 6},
	{"history/L4-dual-stack", "6.18", "sound", 0},
	{"history/08-reuseport-taken-back", "6.18", "sound", 2},
	{"history/08-reuseaddr-taken-back-fast", "6.18+first-bind-fix", "sound", 1},
	{"history/04-key-without-family-wrong", "5.4-strict-key-family", "sound", 8},
	{"history/06-binder-wildcard-wrong", "6.18-strict-binder-wildcard", "sound", 2},
	{"history/07-reset-by-later-owner-wrong", "5.4-first-owner-test", "sound", 1},
	{"history/11-address-kept-after-failure-wrong", "6.12-failed-connect-address", "complete", 7},
	{"history/13-bucket-kept-after-failure-wrong", "6.12-failed-connect-bucket", "structure", 1},
	{"history/14-timewait-unseen-wrong", "6.1-timewait-address-buckets", "structure", 1},
	{"history/15-dual-stack-unseen-wrong", "6.1-bucket-dual-stack", "complete", 1},
	{"history/16-mapped-wildcard-unseen-wrong", "6.1-mapped-wildcard", "complete", 1},
	{"history/17-mapped-twin-unseen-wrong", "6.12-mapped-twin", "complete", 1},
	{"history/18-first-wildcard-only-wrong", "6.12-every-wildcard", "complete", 2},
	{"history/19-mapped-meets-v6only-wrong", "6.12-mapped-past-v6only", "complete", 1},
	{"history/25-timewait-reuseport-wrong", "6.18-timewait-reuseport", "complete", 1},
	{"history/E2-unaccepted-child-wrong", "6.18-unaccepted-child-user", "complete", 0},
	{"history/E1-mapped-beside-mapped-wildcard", "6.1", "complete", 1},
}

var perFinding = flag.Int("histories", 1, "how many failing histories of each known finding are shrunk")

// TestRandomHistoriesOfAKnownFindingShrinkToItsTrace measures, with -histories
// N, the share of N failing histories of each known finding that end in the one
// trace to which the corpus's own telling of it shrinks.
func TestRandomHistoriesOfAKnownFindingShrinkToItsTrace(t *testing.T) {
	for _, k := range known {
		t.Run(k.file, func(t *testing.T) {
			t.Parallel()
			ts, err := corpus.Under("tcp/" + k.file + ".trace")
			if err != nil {
				t.Fatal(err)
			}
			kernel := model.MustParse(k.kernel)
			m := spec.NewMachine(spec.TCP, kernel.New())
			v := violation(t, m, ts[0], k.property)
			shows := func(c *rc.Trace) bool { return m.Shows(c, v) >= 0 }
			want, _ := shrink.Run(ts[0], shows, shrink.Options{})
			v = violation(t, m, want, k.property)

			hits, n := 0, *perFinding
			elsewhere := map[string]int{}
			stats := histories(t, kernel, k.property, k.seed, func(f spec.Failure) bool {
				if !shows(f.Trace) {
					return true
				}
				got, _ := shrink.Run(f.Trace, shows, shrink.Options{})
				if n--; steps(got) == steps(want) {
					hits++
				} else {
					elsewhere[steps(got)]++
				}
				return n > 0
			})
			if hits == 0 && k.seed > 0 {
				t.Errorf("none of %d histories shows it", stats.Histories)
			}
			all := hits
			for text, n := range elsewhere {
				all += n
				t.Errorf("%d histories end elsewhere:\n%s\nwant\n%s", n, text, steps(want))
			}
			t.Logf("%d of %d failing histories (of %d tried) end in\n%s", hits, all, stats.Histories, steps(want))
		})
	}
}

// violation is the first one of a property that a trace shows.
func violation(t *testing.T, m *spec.Machine, tr *rc.Trace, property string) (v spec.Violation) {
	t.Helper()
	err := m.Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		for _, f := range found {
			if f.Property == property {
				v = f
				return false
			}
		}
		return !o.Diverged()
	})
	if err != nil || v.Property == "" {
		t.Fatalf("the trace shows no violation of %s: %v\n%s", property, err, tr)
	}
	return v
}

// histories searches for failures of a property until yield has enough, for as
// long as their number deserves.
func histories(t *testing.T, kernel *model.Profile, property string, seed uint64, yield func(spec.Failure) bool) spec.Stats {
	t.Helper()
	props, err := spec.TCP.Select(property)
	if err != nil {
		t.Fatal(err)
	}
	checks := 3000
	if *perFinding > 1 {
		checks = 20_000 * *perFinding
	}
	s := spec.Search{
		System: spec.TCP, Properties: props, Seed: seed, Checks: checks, Steps: 20, Workers: 1,
		Stack: func() (rc.Stack, error) { return kernel.New(), nil },
	}
	stats, err := s.Run(context.Background(), yield)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}
