package spec_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

// shown runs a trace on a kernel and gives what it shows, step by step:
// "bind c 127.0.0.1:40000: sound: bind granted by fast".
func shown(t *testing.T, sys *spec.System, kernel, text string) (got []string) {
	t.Helper()
	tr, err := rc.Parse("test", []byte("system "+string(sys.Name)+"\n\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stackOf(sys, kernel)()
	if err != nil {
		t.Fatal(err)
	}
	err = spec.NewMachine(sys, s).Replay(tr, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		for _, v := range found {
			got = append(got, o.Op.Text(tr.Name)+": "+v.Property+": "+v.Kind)
			if s := spec.Sentence(o, v); !strings.Contains(s, o.Op.Verb.String()) {
				t.Errorf("the sentence does not name the step: %s", s)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatAHistoryShowsDependsOnTheKernel(t *testing.T) {
	first := "socket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr\nbind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\n"
	overlap := "socket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr reuseport\nsocket c tcp4 reuseport\n" +
		"bind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000\n"
	again := "socket a tcp4 reuseport\nsocket b tcp4\nbind a 127.0.0.1:40000\nlisten a\n" +
		"bind b 127.0.0.2:40000\nlisten a\n"
	const (
		weakA  = "bind a 127.0.0.1:40000: precise: the cache is weaker than its owners allow"
		weakB  = "bind b 127.0.0.1:40000: precise: the cache is weaker than its owners allow"
		scan   = "bind b 127.0.0.1:40000: precise: owners are visited that the cache could answer for"
		unsafe = "bind c 127.0.0.1:40000: sound: bind granted by fast"
	)
	for _, tt := range []struct {
		name, kernel, trace string
		want                []string
	}{
		{"the first bind is seen as state, the second as a scan", "6.18", first, []string{weakA, scan}},
		{"the fix heals both", "6.18+first-bind-fix", first, nil},
		{"so did 6.7 and before", "6.1", first, nil},
		{"STRICT lets a socket past an owner that it was not held against", "6.18+first-bind-fix", overlap, []string{unsafe}},
		{"also before the bug", "6.1", overlap, []string{unsafe}},
		{"an exact match does not", "6.18+first-bind-fix+exact-strict-match", overlap, nil},
		{"a listener that listens again asks for no port, so the cache need not learn of it", "6.18+first-bind-fix", again, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := shown(t, spec.TCP, tt.kernel, tt.trace)
			if tt.kernel == "6.18" {
				got = got[:min(len(got), 2)] // the weak cache shows again at every later step
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("on %s:\n%s\nwant:\n%s", tt.kernel, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestTheFixIsPreciseOverBindsAndCloses(t *testing.T) {
	w := without(t, "set", "connect", "inherit", "timewait", "sysctl")
	rapid.Check(t, spec.Histories(spec.TCP, w, stackOf(spec.TCP, "6.18+first-bind-fix"), spec.Precise, spec.Structure))
}

func TestAnExactMatchIsSoundWithoutLaterChanges(t *testing.T) {
	w := without(t, "set", "connect", "inherit", "timewait", "sysctl")
	rapid.Check(t, spec.Histories(spec.TCP, w, stackOf(spec.TCP, "6.18+first-bind-fix+exact-strict-match"), spec.Sound))
}

func TestSearchGivesTheSameFailuresWhateverTheWorkers(t *testing.T) {
	run := func(workers int) (texts []string) {
		s := spec.Search{System: spec.TCP, Stack: stackOf(spec.TCP, "6.18"), Seed: 3, Checks: 700, Workers: workers, PerFinding: 2}
		if _, err := s.Run(context.Background(), func(f spec.Failure) bool {
			texts = append(texts, f.Violation.Property+f.Trace.String())
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return texts
	}
	one, three := run(1), run(3)
	if len(one) == 0 || strings.Join(one, "\n") != strings.Join(three, "\n") {
		t.Errorf("one worker found %d failures, three found %d, or others", len(one), len(three))
	}
}

func TestACacheThatIsNotAsTheReferenceHasItIsToldInWords(t *testing.T) {
	o := spec.Observation{
		Op:      rc.Bind(0, netip.MustParseAddrPort("127.0.0.1:40000")),
		Verdict: oracle.Verdict{Reference: &rc.Result{}},
	}
	o.Got.After = rc.Cache{Exists: true, FastReusePort: rc.FastAny, Family: rc.TCP4, Addr: netip.MustParseAddr("127.0.0.1")}
	o.Got.AddrAfter = rc.Pair{Exists: true, FastReusePort: rc.FastStrict}
	want := `After "bind a 127.0.0.1:40000" the cache is fastreuse 0, fastreuseport ANY, keyed to tcp4 127.0.0.1 uid 0 ` +
		`(that of the address bucket fastreuse 0, fastreuseport STRICT); the reference's is gone (gone).`
	if got := spec.Sentence(&o, spec.Violation{Property: "cache"}); got != want {
		t.Errorf("it says\n%s\nnot\n%s", got, want)
	}
}

// silent is a stack that forgets to answer.
type silent struct{}

func (silent) Reset(rc.Config) error       { return nil }
func (silent) Do(rc.Op) (rc.Result, error) { return rc.Result{}, nil }

func TestAStackThatGivesNoAnswerIsToldSo(t *testing.T) {
	m := spec.NewMachine(spec.TCP, silent{})
	if err := m.Reset(rc.Config{}); err != nil {
		t.Fatal(err)
	}
	_, _, err := m.Step(rc.NewSocket(0, rc.TCP4, 0))
	if err == nil || !strings.Contains(err.Error(), "the stack gives no answer") {
		t.Errorf("%v", err)
	}
}

func TestASearchStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := spec.Search{System: spec.TCP, Stack: stackOf(spec.TCP, "6.18"), Seed: 1, Workers: 2, PerFinding: 1}
	n := 0
	if _, err := s.Run(ctx, func(spec.Failure) bool { n++; cancel(); return true }); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("an endless search ended without a failure")
	}
}

func TestWorldsSayWhatCanBeTakenAway(t *testing.T) {
	w := spec.TCPWorld()
	if err := w.Without("tea"); err == nil || !strings.Contains(err.Error(), "set") {
		t.Errorf("error %v, want one that lists the parts", err)
	}
	if err := w.Without("v4", "v6"); err == nil {
		t.Error("a world without sockets is accepted")
	}
	names, docs := spec.Words()
	for i, n := range names {
		w := spec.TCPWorld()
		if err := w.Without(n); err != nil || docs[i] == "" {
			t.Errorf("without %s: %v, doc %q", n, err, docs[i])
		}
	}
}

// FuzzHistories is the random state machine as a native fuzz target: structure
// holds on the newest generation, whatever happens.
func FuzzHistories(f *testing.F) {
	stubborn(f)
	f.Fuzz(rapid.MakeFuzz(spec.Histories(spec.TCP, spec.TCPWorld(), stackOf(spec.TCP, "6.18"), spec.Structure)))
}
