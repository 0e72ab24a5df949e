package bench

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func stackOf(tb testing.TB, profile string) func() (reusecheck.Stack, error) {
	p, err := model.Parse(profile)
	if err != nil {
		tb.Fatal(err)
	}
	return func() (reusecheck.Stack, error) { return p.New(), nil }
}

func TestTheModelVisitsAsManyOwnersAsTheReportersTableImplies(t *testing.T) {
	// By hand, for 4,000 and 16,000 sockets on Linux 6.8 to 6.18.
	byHand := map[string][2]int{
		"reuseaddr same":      {7_998_000, 127_992_000},
		"reuseaddr alternate": {3_998_000, 63_992_000},
		"reuseport same":      {0, 0},
		"reuseport alternate": {3_998_000, 63_992_000},
	}
	for _, r := range Rows {
		want := byHand[r.String()]
		if r.Unfixed(4000) != want[0] || r.Unfixed(Sockets) != want[1] {
			t.Errorf("%s: the formula gives %d and %d, not %v", r, r.Unfixed(4000), r.Unfixed(Sockets), want)
		}
		for profile, visits := range map[string]int{"6.12": want[0], "6.18": want[0], "6.18+first-bind-fix": 0, "6.1": 0} {
			s, _ := stackOf(t, profile)()
			got, err := Bind(context.Background(), s, r, 4000)
			if err != nil {
				t.Fatal(err)
			}
			if got.Visited != visits {
				t.Errorf("%s on %s: %d owners visited, not %d", r, profile, got.Visited, visits)
			}
		}
	}
}

func TestTheGrowthOfBindsIsToldFromTheirTimes(t *testing.T) {
	for _, c := range []struct {
		took  []time.Duration
		shape string
	}{
		{[]time.Duration{10, 20, 40, 80}, "linear"},
		{[]time.Duration{10, 22, 38, 85}, "linear"},
		{[]time.Duration{10, 40, 160, 640}, "quadratic"},
		{[]time.Duration{10, 33, 120, 470}, "quadratic"},
	} {
		g := Growth{Sockets: []int{1000, 2000, 4000, 8000}, Took: c.took}
		if g.Shape() != c.shape {
			t.Errorf("%v is %s (exponent %.2f), not %s", c.took, g.Shape(), g.Exponent(), c.shape)
		}
	}
	if s := (Growth{Sockets: []int{1}, Took: []time.Duration{1}}).Shape(); s != "unknown" {
		t.Errorf("one time tells no growth, but %s is said", s)
	}
}

func BenchmarkBind(b *testing.B) {
	for _, profile := range []string{"6.18", "6.18+first-bind-fix"} {
		for _, r := range Rows {
			b.Run(profile+"/"+strings.ReplaceAll(r.String(), " ", "-"), func(b *testing.B) {
				s, _ := stackOf(b, profile)()
				var total Binds
				for b.Loop() {
					one, err := Bind(context.Background(), s, r, Sockets)
					if err != nil {
						b.Fatal(err)
					}
					total.Took += one.Took
					total.Visited = one.Visited
				}
				b.ReportMetric(total.Took.Seconds()*1e3/float64(b.N), "ms/round")
				b.ReportMetric(float64(total.Visited), "owners")
			})
		}
	}
}

// BenchmarkCheck is random checking on one core, oracle and all properties
// included: the steps of a default search, failures recorded but not shrunk.
func BenchmarkCheck(b *testing.B) {
	for _, of := range []struct {
		system  *spec.System
		kernels []string
	}{
		{spec.TCP, []string{"6.1", "6.18", "6.18+first-bind-fix"}},
		{spec.UDP, []string{"5.4", "6.12", "6.18"}},
		{spec.TimeWait, []string{"5.15", "6.18", "6.18+tw-one-family"}},
	} {
		for _, kernel := range of.kernels {
			b.Run(string(of.system.Name)+"/"+kernel, func(b *testing.B) {
				stack, err := stacks(of.system, kernel)
				if err != nil {
					b.Fatal(err)
				}
				steps := 0
				for b.Loop() {
					s := spec.Search{System: of.system, Stack: stack, Seed: 1, Checks: 10_000, Workers: 1, PerFinding: 1}
					stats, err := s.Run(context.Background(), func(spec.Failure) bool { return true })
					if err != nil {
						b.Fatal(err)
					}
					steps += stats.Steps
				}
				b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
			})
		}
	}
}

// BenchmarkMemory searches ten million steps in one go and reports the resident
// memory after the first million and after the last.
func BenchmarkMemory(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("resident memory is read from /proc")
	}
	const first, last = 1_000_000, 10_000_000
	for b.Loop() {
		at := map[int]float64{}
		ctx, stop := context.WithCancel(context.Background())
		s := spec.Search{System: spec.TCP, Stack: stackOf(b, "6.18"), Seed: 1, Workers: 1, PerFinding: 1,
			Progress: func(s spec.Stats) {
				if _, done := at[first]; !done && s.Steps >= first {
					at[first] = residentMiB(b)
				}
				if _, done := at[last]; !done && s.Steps >= last {
					at[last] = residentMiB(b)
					stop()
				}
			}}
		if _, err := s.Run(ctx, func(spec.Failure) bool { return true }); err != nil {
			b.Fatal(err)
		}
		stop()
		b.ReportMetric(at[first], "MiB@1M")
		b.ReportMetric(at[last], "MiB@10M")
	}
}

func residentMiB(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}
