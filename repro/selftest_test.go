package repro_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck/repro"
)

// The kernel's harness comes with its source; bench/selftest/run fetches it and
// runs this test.
const harnessVar = "REUSECHECK_SELFTESTS"

func TestASelftestPassesFailsOrSkipsInTheKernelsHarness(t *testing.T) {
	dir := os.Getenv(harnessVar)
	if dir == "" {
		t.Skip("set " + harnessVar + " to a kernel's tools/testing/selftests, or run bench/selftest/run")
	}
	needRoot(t)
	kernel := release(t)
	for _, tr := range traces(t) {
		t.Run(base(tr), func(t *testing.T) {
			t.Parallel()
			if generateWhereItCan(t, tr.File, "selftest") == nil {
				t.Skip("the format has no words for it")
			}
			info := infoOf(t, base(tr))
			path := save(t, "p.c", generate(t, tr, "selftest", info))
			exe := strings.TrimSuffix(path, ".c")
			if out, status := run(t, timeLimit, tool(t, "gcc"), "-std=gnu11", "-Wall", "-Werror",
				"-I", filepath.Join(dir, "net"), "-o", exe, path); status != 0 {
				t.Fatal(out)
			}
			if !tr.Kernels.Includes("", kernel) {
				t.Skipf("%s is not among the trace's kernels, %s", kernel, tr.Kernels)
			}
			out, _ := run(t, 30*time.Second, exe)
			variant, want := "stated", "ok 1 "
			if info.Control != nil {
				variant = "finding"
				if !strings.Contains(out, "\nok 2 "+ident(tr.File)+".control.") {
					t.Errorf("the control does not pass in\n%s", out)
				}
			}
			if tr.Diverges() {
				want = "not ok 1 "
			}
			if !strings.Contains(out, "\n"+want+ident(tr.File)+"."+variant+".") || !strings.HasPrefix(out, "TAP version 13\n") {
				t.Errorf("%q is missing in\n%s", want, out)
			}
		})
	}
	t.Run("skip", func(t *testing.T) {
		tr := parse(t, "sysctl net.ipv4.no_such_setting 1\n"+twoPlain)
		path := save(t, "p.c", generate(t, tr, "selftest", repro.Info{}))
		exe := strings.TrimSuffix(path, ".c")
		if out, status := run(t, timeLimit, tool(t, "gcc"), "-I", filepath.Join(dir, "net"), "-o", exe, path); status != 0 {
			t.Fatal(out)
		}
		out, _ := run(t, 30*time.Second, exe)
		if !strings.Contains(out, "# SKIP") || !strings.Contains(out, "skip:1") {
			t.Errorf("no skip in\n%s", out)
		}
	})
}

// ident is a trace's name as the selftest has it.
func ident(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".trace"), "-", "_")
}
