package live

import (
	"embed"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/reusecheck/reusecheck"
)

func TestMain(m *testing.M) {
	Serve()
	os.Exit(m.Run())
}

// need skips the test where the machine cannot do err's step, unless it is one
// that has no excuse.
func need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" && os.Geteuid() == 0:
		t.Fatalf("a Linux machine for continuous integration, as root, can do this: %v", err)
	default:
		t.Skip(err)
	}
}

func open(t testing.TB, o Options) *Stack {
	t.Helper()
	s, err := Open(o)
	need(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

//go:embed testdata/*.trace
var traces embed.FS

// eachTrace parses the traces of testdata whose answers are those of this kernel.
func eachTrace(t *testing.T, f func(t *testing.T, tr *reusecheck.Trace)) (n int) {
	t.Helper()
	names, err := fs.Glob(traces, "testdata/*.trace")
	if err != nil || len(names) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, name := range names {
		text, err := traces.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := reusecheck.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(path.Base(name), func(t *testing.T) {
			if !tr.Kernels.Includes("", Release()) {
				t.Skipf("states the answers of %s, this is %s", tr.Kernels, Release())
			}
			f(t, tr)
		})
		n++
	}
	return n
}

// run does a trace's steps and holds each answer against the stated one.
func run(t testing.TB, s *Stack, tr *reusecheck.Trace) {
	t.Helper()
	need(t, s.Reset(tr.Config))
	for i := range tr.Steps {
		step := &tr.Steps[i]
		got, err := s.Do(step.Op)
		need(t, err)
		// Stricter than Matches: a port that is not stated was not picked.
		if step.Want.Kind != reusecheck.Unstated && step.Want != got.Answer {
			t.Errorf("%s:%d: %s", tr.File, step.Line, cmp.Diff(step.Want, got.Answer))
		}
	}
}

func TestTheRunningKernelAnswersAsEveryTraceStates(t *testing.T) {
	s := open(t, Options{})
	n := eachTrace(t, func(t *testing.T, tr *reusecheck.Trace) { run(t, s, tr) })
	if made := s.Namespaces(); made != 1 {
		t.Errorf("%d namespaces were made for %d traces that leave nothing behind, want 1", made, n)
	}
}
