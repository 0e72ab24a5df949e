package live

import (
	"os"
	"path/filepath"
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

func parseFile(t testing.TB, name string) *reusecheck.Trace {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := reusecheck.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// run does a trace's steps and holds each answer against the stated one.
func run(t testing.TB, s *Stack, tr *reusecheck.Trace) {
	t.Helper()
	need(t, s.Reset(tr.Config))
	for i := range tr.Steps {
		step := &tr.Steps[i]
		got, err := s.Do(step.Op)
		need(t, err)
		if !step.Want.Matches(got.Answer) {
			t.Errorf("%s:%d: %s", tr.File, step.Line, cmp.Diff(step.Want, got.Answer))
		}
	}
}

func TestTheRunningKernelAnswersAsEveryTraceStates(t *testing.T) {
	s := open(t, Options{})
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, name := range files {
		tr := parseFile(t, name)
		t.Run(filepath.Base(name), func(t *testing.T) {
			if !tr.Kernels.Includes("", Release()) {
				t.Skipf("states the answers of %s, this is %s", tr.Kernels, Release())
			}
			run(t, s, tr)
		})
	}
	if n := s.Namespaces(); n != 1 {
		t.Errorf("%d namespaces were made for %d traces that leave nothing behind, want 1", n, len(files))
	}
}
