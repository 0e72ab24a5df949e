package explain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/corpus"
	"github.com/reusecheck/reusecheck/explain"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// newest is the newest modelled kernel that a trace names.
func newest(tr *rc.Trace) *model.Profile {
	ps := model.NamedOf(tr.Config.System, tr.Kernels)
	if len(ps) == 0 {
		return nil
	}
	return ps[len(ps)-1]
}

func tell(t testing.TB, tr *rc.Trace, k *model.Profile) *explain.Story {
	t.Helper()
	s, err := explain.Tell(context.Background(), tr, k)
	if err != nil {
		t.Fatalf("%s on %s: %v", tr.File, k, err)
	}
	return s
}

// replays runs a stated trace and gives the first step at which it does not hold.
func replays(tr *rc.Trace, k *model.Profile) error {
	sys, err := spec.SystemOf(tr)
	if err != nil {
		return err
	}
	stack, err := k.Stack(sys.Name)
	if err != nil {
		return err
	}
	var wrong error
	err = spec.NewMachine(sys, stack).Replay(tr, func(i int, o *spec.Observation, _ []spec.Violation) bool {
		if c, bad := spec.Contradicts(tr.Steps[i], o); bad {
			wrong = fmt.Errorf("%s: got %s", tr.Steps[i].Text(tr.Name), c.Got.Text(tr.Name))
		}
		return wrong == nil
	})
	return errors.Join(err, wrong)
}

func TestTheStoryOfEveryCorpusTraceHoldsAndSoDoItsRemedies(t *testing.T) {
	ts, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	refused, helped := 0, 0
	for i, tr := range ts {
		k := newest(tr)
		if k == nil || strings.HasPrefix(tr.File, "tcp/selftests/") && i%8 > 0 { // they are many, and much alike
			continue
		}
		if _, err := k.Stack(tr.Config.System); err != nil {
			continue // nothing models it
		}
		s := tell(t, tr, k)
		if err := replays(s.Stated(), k); err != nil {
			t.Errorf("%s: the answers of the story: %v", tr.File, err)
		}
		for i, st := range s.Steps {
			if len(st.Text) == 0 {
				t.Errorf("%s: nothing is said of %q", tr.File, st.Op)
			}
			if want := tr.Steps[i].Want; want.Kind != rc.Unstated && !strings.HasPrefix(st.Result, want.Text(tr.Name)) {
				t.Errorf("%s: %q is told as %s, and stated %s", tr.File, st.Op, st.Result, want.Text(tr.Name))
			}
			if !st.Refused {
				continue
			}
			refused++
			if st.Why == "" {
				t.Errorf("%s: why %q is refused is not said", tr.File, st.Op)
			}
			if len(st.Remedies) > 0 {
				helped++
			}
			for _, r := range st.Remedies {
				holds(t, tr, &tr.Steps[i], r, k)
			}
		}
	}
	t.Logf("%d refused steps, %d with a remedy", refused, helped)
	if helped == 0 {
		t.Error("no step has a remedy")
	}
}

// holds checks a remedy apart from how it was found: its trace is one, is answered
// as it states, and has the step, or its changed form, granted.
func holds(t *testing.T, tr *rc.Trace, was *rc.Step, r explain.Remedy, k *model.Profile) {
	t.Helper()
	fixed, err := rc.Parse("remedy", []byte(r.Trace))
	if err != nil {
		t.Errorf("%s: %s: %v", tr.File, r.Text, err)
		return
	}
	if err := replays(fixed, k); err != nil {
		t.Errorf("%s: %s: %v", tr.File, r.Text, err)
	}
	granted := false
	for _, s := range fixed.Steps {
		same := s.Op.Verb == was.Op.Verb && s.Op.Sock == was.Op.Sock
		granted = granted || same && s.Want.Kind == rc.OK && s.Oracle.Kind == rc.Unstated
	}
	if !granted {
		t.Errorf("%s: %s: the step is not granted in\n%s", tr.File, r.Text, r.Trace)
	}
}

const listenerBehindWildcard = `
socket a tcp6
socket b tcp4
bind a [::]:40000
listen a
bind b 0.0.0.0:40000
`

func TestARefusalNamesOwnerRuleAndEverySortOfChangeThatHelps(t *testing.T) {
	s := tell(t, rc.MustParse(listenerBehindWildcard), model.MustParse("6.18"))
	st := s.Steps[s.LastRefused()]
	var got []string
	for _, r := range st.Remedies {
		got = append(got, r.Text)
	}
	want := []string{"set v6only on a", "bind a to one address instead of every one, such as ::1", "close a before", "bind b to another port"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the remedies (-want +got):\n%s", d)
	}
	if st.Decider != "a" || !strings.Contains(st.Why, "dual-stack") || !strings.Contains(st.Why, "neither reuseaddr nor reuseport") {
		t.Errorf("%s decides: %s", st.Decider, st.Why)
	}
}

func TestARemedyKeepsTheEarlierAnswers(t *testing.T) {
	// reuseport on both would need the other user too; a swap would refuse a.
	s := tell(t, rc.MustParse("socket a tcp4\nsocket b tcp4\nbind a 0.0.0.0:40000\nbind b 127.0.0.1:40000\n"), model.MustParse("6.18"))
	for _, r := range s.Steps[3].Remedies {
		fixed := rc.MustParse(r.Trace)
		for _, st := range fixed.Steps {
			if st.Want.Kind != rc.OK {
				t.Errorf("%s: %s", r.Text, st.Text(fixed.Name))
			}
		}
	}
}

func TestWhatASocketCannotDoIsMendedByAnAddressOfItsFamilyOrByAListen(t *testing.T) {
	for text, want := range map[string]string{
		"socket a tcp4\nbind a [::1]:40000\n":                            "bind a [::1]:40000 => EAFNOSUPPORT: bind a to another address, such as 127.0.0.1",
		"system udp\nsocket a udp4\nbind a [::1]:40000\n":                "bind a [::1]:40000 => EAFNOSUPPORT: bind a to another address, such as 127.0.0.1",
		"socket a tcp6 v6only\nbind a [::ffff:127.0.0.1]:40000\n":        "bind a [::ffff:127.0.0.1]:40000 => EINVAL: do without v6only on a; bind a to another address, such as ::1",
		"socket a tcp4\nbind a 127.0.0.1:40000\ninherit a b 127.0.0.1\n": "inherit a b 127.0.0.1 => ECONNREFUSED: let a listen before",
	} {
		tr, k := rc.MustParse(text), model.MustParse("6.18")
		s := tell(t, tr, k)
		i := len(s.Steps) - 1
		var told []string
		for _, r := range s.Steps[i].Remedies {
			told = append(told, r.Text)
			holds(t, tr, &tr.Steps[i], r, k)
		}
		if got := s.Steps[i].Op + " => " + s.Steps[i].Result + ": " + strings.Join(told, "; "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestWhenNothingSmallHelpsItIsSaid(t *testing.T) {
	s := tell(t, rc.MustParse("socket a tcp4\nlisten a\nlisten a\nconnect a 127.0.0.1:9\n"), model.MustParse("6.18"))
	var b strings.Builder
	if err := s.Write(&b, explain.Notable); err != nil {
		t.Fatal(err)
	}
	if st := s.Steps[3]; len(st.Remedies) > 0 || st.Tried == 0 || !strings.Contains(b.String(), "Nothing small helps") {
		t.Errorf("%d remedies after %d:\n%s", len(st.Remedies), st.Tried, &b)
	}
	b.Reset()
	if err := s.Write(&b, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "What helps") || strings.Count(b.String(), "Nothing small helps") != 1 {
		t.Errorf("where nothing helps nothing can be said of it:\n%s", &b)
	}
}

func TestOwnersThatAreSkippedAreToldFromThoseThatAreLookedAt(t *testing.T) {
	tr := rc.MustParse(`
socket a tcp4 reuseaddr
socket b tcp4 reuseaddr
socket c tcp4 reuseaddr
bind a 127.0.0.1:40000
bind b 127.0.0.2:40000
bind c 127.0.0.2:40000
`)
	for kernel, want := range map[string][2][]string{
		"5.4":  {nil, {"a", "b"}}, // fastreuse is 1
		"6.18": {{"b"}, {"a"}},
	} {
		st := tell(t, tr, model.MustParse(kernel)).Steps[5]
		if d := cmp.Diff(want, [2][]string{st.Looked, st.Skipped}); d != "" {
			t.Errorf("%s (-want +got):\n%s", kernel, d)
		}
	}
}

func TestWhyAPortIsSharedIsWhatTheOracleDependsOn(t *testing.T) {
	for _, c := range []struct{ a, b, at, want string }{
		{"tcp4 reuseaddr", "tcp4 reuseaddr", "127.0.0.1", "both have reuseaddr, and no listener is passed over"},
		{"tcp4 reuseport", "tcp4 reuseport", "127.0.0.1", "both have reuseport and belong to one user"},
		{"tcp4 reuseaddr reuseport", "tcp4 reuseaddr reuseport", "127.0.0.1", "and reuseport would do too"},
		{"tcp4", "tcp4", "127.0.0.2", "the addresses do not overlap"},
		{"tcp4 dev=d1", "tcp4 dev=d2", "127.0.0.1", "they are on different devices"},
	} {
		tr := rc.MustParse(fmt.Sprintf("socket a %s\nsocket b %s\nbind a 127.0.0.1:40000\nbind b %s:40000\n", c.a, c.b, c.at))
		st := tell(t, tr, model.MustParse("6.18")).Steps[3]
		if text := strings.Join(st.Text, " "); !strings.Contains(text, c.want) {
			t.Errorf("%s beside %s: %q is not said in\n%s", c.b, c.a, c.want, text)
		}
	}
}

func TestOtherKernelsAreComparedStepByStep(t *testing.T) {
	ts, err := corpus.Under("tcp/demand")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range ts {
		if tr.File == "tcp/demand/14-explicit-binder.trace" {
			s := tell(t, tr, model.MustParse("6.18"))
			want := []string{`On 4.9, 5.4, 5.15, 6.1 and 6.12 step 13, "connect c 127.0.0.1:50000", is answered EADDRNOTAVAIL instead of ok 40000.`}
			if d := cmp.Diff(want, s.Elsewhere); d != "" || len(s.Same) > 0 {
				t.Errorf("alike on %v, and (-want +got):\n%s", s.Same, d)
			}
		}
	}
}

func TestWhatAnotherSystemsTablesCostIsNotToldAsACache(t *testing.T) {
	for _, c := range []struct{ trace, want string }{
		{"system udp\nsocket a udp4\nbind a 127.0.0.1:40000\nconnect a 127.0.0.1:9\ndisconnect a\nsend 127.0.0.1:9 -> 127.0.0.1:40000\n",
			"Beside the answer, precise does not hold: \"send 127.0.0.1:9 -> 127.0.0.1:40000\" searches the 4-tuple table"},
		{"system timewait\nnetns n\nexit n\n", "The namespace n is torn down: for what it leaves in TIME_WAIT the kernel goes through its table once, and nothing stays there. " +
			"This is wrong. The oracle, which looks at every owner, says ok walks=0 left=0. \"exit n\" walks through a whole table"},
		{"system timewait\nnetns m\nnetns n\nexit m,n\n", "The namespaces m and n are torn down in one batch: for what they leave"},
	} {
		s := tell(t, rc.MustParse(c.trace), model.MustParse("6.18"))
		text := strings.Join(s.Steps[len(s.Steps)-1].Text, " ")
		if !strings.Contains(text, c.want) || strings.Contains(text, "fastreuse") {
			t.Errorf("%q is not said, or a cache is, in\n%s", c.want, text)
		}
	}
}

// FuzzTell tells the story of arbitrary traces: none ends it otherwise than with
// an error, and what it states can be read again.
func FuzzTell(f *testing.F) {
	ts, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, tr := range ts {
		if len(tr.Steps) < 30 {
			f.Add(tr.String())
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := rc.Parse("fuzz", []byte(text))
		if err != nil || len(tr.Steps) > 20 {
			t.Skip()
		}
		s, err := explain.Tell(context.Background(), tr, model.MustParse("6.18"))
		if err != nil {
			return
		}
		var b strings.Builder
		if err := s.Write(&b, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := rc.Parse("stated", []byte(s.Stated().String())); err != nil {
			t.Errorf("the stated trace: %v", err)
		}
	})
}
