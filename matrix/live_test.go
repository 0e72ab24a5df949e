package matrix_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/matrix"
	"github.com/reusecheck/reusecheck/model"
)

func TestMain(m *testing.M) {
	live.Serve()
	os.Exit(m.Run())
}

// missing skips a test that this machine cannot run. CI's can.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" && runtime.GOOS == "linux" && os.Geteuid() == 0 {
		t.Fatal(why)
	}
	t.Skip(why)
}

// running opens the running kernel, with its caches where they can be read.
func running(t *testing.T) reusecheck.Stack {
	t.Helper()
	s, err := live.Open(live.Options{})
	if err != nil {
		missing(t, err.Error())
	}
	t.Cleanup(func() { s.Close() })
	o, err := live.NewObserver()
	if err != nil {
		t.Logf("the caches are not compared: %v", err)
		return s
	}
	t.Cleanup(func() { o.Close() })
	return live.Watch(s, o)
}

func TestTheRunningKernelIsAsItsModelCellByCell(t *testing.T) {
	stack := running(t)
	version, err := live.RunningKernel()
	if err != nil {
		missing(t, err.Error())
	}
	for _, set := range matrix.Sets() {
		t.Run(set.Name, func(t *testing.T) {
			system := reusecheck.TCP
			if set.Kinds[0].Family.IsUDP() {
				system = reusecheck.UDP
			}
			p := model.ForReleaseOf(system, version.Version)
			its, err := p.Stack(system)
			if err != nil {
				t.Fatal(err)
			}
			m, err := matrix.Fill(t.Context(), set.Kinds, []matrix.Kernel{{Name: version.String(), Stack: stack}, {Name: p.String(), Stack: its}}, true, nil)
			if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
				missing(t, err.Error())
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range m.Disagreements() {
				t.Errorf("%s | %s: %s\n%s", m.Kinds[c.First], m.Kinds[c.Second], c.Disagree, c.Outcomes[0].Trace)
			}
			if bad := m.Skipped(); len(bad) > 0 {
				missing(t, "pairs that were not tested, the first of them: "+bad[0].Outcomes[0].Skipped)
			}
		})
	}
}
