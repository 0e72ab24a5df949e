package corpus_test

import (
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func under(t *testing.T, dir string) []*rc.Trace {
	t.Helper()
	ts, err := corpus.Under(dir)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func TestEveryFileIsWrittenAsItPrints(t *testing.T) {
	ts, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{}
	for _, tr := range ts {
		text, err := fs.ReadFile(corpus.FS(), tr.File)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(text), tr.String()); d != "" {
			t.Errorf("%s is not canonical (-file +printed):\n%s", tr.File, d)
		}
		if tr.Title == "" || tr.Source == "" {
			t.Errorf("%s has no title or no source", tr.File)
		}
		if first := titles[tr.Title]; first != "" {
			t.Errorf("%s has the title of %s: %s", tr.File, first, tr.Title)
		}
		titles[tr.Title] = tr.File
	}
}

func TestEveryFileIsATrace(t *testing.T) {
	err := fs.WalkDir(corpus.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Ext(name) != ".trace" {
			t.Errorf("%s is not a trace: the corpus holds nothing else", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// system is the engines' view of a trace's system, nil when there is none that
// replays it on modelled kernels.
func system(tr *rc.Trace) *spec.System {
	for _, s := range spec.Systems {
		if s.Name == tr.Config.System || tr.Config.System == "" && s.Name == rc.TCP {
			return s
		}
	}
	return nil
}

func TestEveryStatedAnswerHoldsOnEveryKernelThatATraceNames(t *testing.T) {
	ts, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, tr := range ts {
		sys := system(tr)
		if sys == nil {
			continue // of a system that no modelled kernel has
		}
		kernels := model.NamedOf(sys.Name, tr.Kernels)
		if len(kernels) == 0 {
			t.Errorf("%s: no modelled kernel is one of %s", tr.File, tr.Kernels)
		}
		for _, k := range kernels {
			s, err := k.Stack(sys.Name)
			if err != nil {
				t.Fatal(err)
			}
			steps += replay(t, spec.NewMachine(sys, s), tr, k.String())
		}
	}
	t.Logf("%d traces, %d steps", len(ts), steps)
}

func replay(t *testing.T, m *spec.Machine, tr *rc.Trace, kernel string) (steps int) {
	t.Helper()
	err := m.Replay(tr, func(i int, o *spec.Observation, _ []spec.Violation) bool {
		st := tr.Steps[i]
		if c, wrong := spec.Contradicts(st, o); wrong {
			who := kernel
			if c.Oracle {
				who = "the oracle, on " + kernel
			}
			t.Errorf("%s:%d: %s\n%s answers %s", tr.File, st.Line, st.Text(tr.Name), who, c.Got.Text(tr.Name))
		}
		if o.Verdict.Open != "" && st.Oracle.Kind != rc.Unstated {
			t.Errorf("%s:%d: %s\nstates a divergence that the oracle leaves open: %s", tr.File, st.Line, st.Text(tr.Name), o.Verdict.Open)
		}
		steps++
		return true
	})
	if err != nil {
		t.Errorf("%s on %s: %v", tr.File, kernel, err)
	}
	return steps
}

//go:embed testdata/kunit.txt
var kunitTable string

func TestTheFirstBindCasesFailWithoutTheFixAndPassWithIt(t *testing.T) {
	cases := 0
	for line := range strings.Lines(kunitTable) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || strings.HasPrefix(f[0], "#") {
			continue
		}
		cases++
		tr := under(t, "tcp/kunit/"+f[0]+".trace")[0]
		for kernel, want := range map[string]string{"6.18": f[2], "6.12": f[2], "6.18+first-bind-fix": f[1], "6.1": f[1]} {
			got, precise := firstBind(t, tr, kernel)
			if got != want {
				t.Errorf("%s on %s: the cache after the first bind is %s, want %s", f[0], kernel, got, want)
			}
			if passes := want == f[1]; precise != passes {
				t.Errorf("%s on %s: precise holds: %t, want %t", f[0], kernel, precise, passes)
			}
		}
	}
	if cases != 6 {
		t.Errorf("%d first-bind cases, want 6", cases)
	}
}

// firstBind is the cache after a trace's first bind, and whether every step's
// cache is as strong as its owners allow.
func firstBind(t *testing.T, tr *rc.Trace, kernel string) (cache string, precise bool) {
	t.Helper()
	precise = true
	m := spec.NewMachine(spec.TCP, model.MustParse(kernel).New(), spec.Precise)
	err := m.Replay(tr, func(i int, o *spec.Observation, found []spec.Violation) bool {
		precise = precise && len(found) == 0
		if cache == "" && o.Op.Verb == rc.VBind {
			port := map[int8]string{rc.FastUnknown: "0", rc.FastAny: "ANY", rc.FastStrict: "STRICT"}
			cache = fmt.Sprintf("%d/%s", o.Got.After.FastReuse, port[o.Got.After.FastReusePort])
		}
		return true
	})
	if err != nil {
		t.Errorf("%s on %s: %v", tr.File, kernel, err)
	}
	return cache, precise
}

func TestTheConflictGuardsAreRefusedWithAndWithoutTheFix(t *testing.T) {
	guards := 0
	for _, tr := range under(t, "tcp/kunit") {
		if !strings.HasPrefix(path.Base(tr.File), "guard-") {
			continue
		}
		guards++
		for _, kernel := range []string{"6.18", "6.18+first-bind-fix"} {
			refused := 0
			err := spec.NewMachine(spec.TCP, model.MustParse(kernel).New()).Replay(tr, func(_ int, o *spec.Observation, _ []spec.Violation) bool {
				if o.Got.Answer == rc.Fail(rc.EADDRINUSE) {
					refused++
				}
				return true
			})
			if err != nil || refused != 2 {
				t.Errorf("%s on %s: %d binds refused, want 2; %v", tr.File, kernel, refused, err)
			}
		}
	}
	if guards != 2 {
		t.Errorf("%d guards, want 2", guards)
	}
}

func TestAFolderWithoutTracesIsAnError(t *testing.T) {
	for _, dir := range []string{"tcp/nowhere", "nowhere"} {
		if ts, err := corpus.Under(dir); err == nil {
			t.Errorf("%s: %d traces and no error", dir, len(ts))
		}
	}
}
