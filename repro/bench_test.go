package repro_test

import (
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck/repro"
)

func TestATimingProgramShowsWhetherBindsGetDearerOnTheRunningKernel(t *testing.T) {
	needRoot(t)
	kernel := release(t)
	for _, c := range []struct {
		trace  string
		status int
	}{
		{"cost-reuseaddr", repro.ExitDiverges},
		{"cost-reuseport-alternate", repro.ExitDiverges},
		{"cost-reuseport", repro.ExitAgrees},
		{"strict-cache-overlap", repro.ExitCannot}, // its binds work in this order only
	} {
		t.Run(c.trace, func(t *testing.T) {
			tr := read(t, "testdata/"+c.trace+".trace")
			path := save(t, "p.c", generate(t, tr, "bench", repro.Info{}))
			exe := strings.TrimSuffix(path, ".c")
			if out, status := run(t, timeLimit, tool(t, "gcc"), append(strict, "-O1", "-o", exe, path)...); status != 0 {
				t.Fatal(out)
			}
			if !tr.Kernels.Includes("", kernel) {
				t.Skipf("%s is not among the trace's kernels, %s", kernel, tr.Kernels)
			}
			out, status := run(t, timeLimit, exe, "1600")
			if status != c.status {
				t.Errorf("exit status %d, want %d of\n%s", status, c.status, out)
			}
		})
	}
}
