package oracle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// history is a trace with what is said of each step's conflicts.
type history struct {
	name  string
	trace *reusecheck.Trace
	notes map[int]string // by line: what stands after --
}

var reasonWords = map[string]reusecheck.Reason{
	"not-shared":   reusecheck.RefuseNotShared,
	"no-reuseaddr": reusecheck.RefuseNoReuseAddr,
	"listening":    reusecheck.RefuseListening,
	"no-reuseport": reusecheck.RefuseNoReusePort,
	"uid":          reusecheck.RefuseUID,
	"automatic":    reusecheck.RefuseAutomatic,
	"tuple":        reusecheck.RefuseTuple,
	"explicit":     reusecheck.RefuseExplicit,
	"state":        reusecheck.RefuseState,
	"family":       reusecheck.RefuseFamily,
	"not-local":    reusecheck.RefuseNotLocal,

	"no-reuseaddr-either": reusecheck.RefuseNoReusePort, // of UDP
	"address":             reusecheck.BeatAddress,
	"peer":                reusecheck.BeatPeer,
	"device":              reusecheck.BeatDevice,
	"ipv4":                reusecheck.BeatFamily,
	"processor":           reusecheck.BeatCPU,
	"fits":                reusecheck.BeatNobody,
	"misfit":              reusecheck.RefuseFit,
}

// readHistories reads the file's traces, each under a line "== NAME". Lines
// keep their numbers, so that a failure names the file's own.
func readHistories(t *testing.T, path string) []history {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []history
	var b strings.Builder
	lines := strings.Split(string(text), "\n")
	flush := func() {
		if len(all) == 0 {
			return
		}
		tr, err := reusecheck.Parse(path, []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		all[len(all)-1].trace = tr
	}
	for i, line := range lines {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			flush()
			all = append(all, history{name: name, notes: map[int]string{}})
			b.Reset()
			b.WriteString(strings.Repeat("\n", i+1))
			continue
		}
		step, note, _ := strings.Cut(line, " -- ")
		if len(all) > 0 {
			all[len(all)-1].notes[i+1] = note
		}
		b.WriteString(step + "\n")
	}
	flush()
	return all
}

// judge is an oracle of one system.
type judge interface {
	Reset(reusecheck.Config)
	Judge(reusecheck.Op, reusecheck.Answer) oracle.Verdict
	Follow(reusecheck.Op, reusecheck.Answer)
}

func TestEachHistoryIsJudgedAsTheDocumentsSay(t *testing.T) {
	for dir, o := range map[string]judge{
		"histories": oracle.New(), "udp": oracle.NewUDP(), "timewait": oracle.NewTimeWait(),
	} {
		paths, err := filepath.Glob("testdata/" + dir + "/*.txt")
		if err != nil || len(paths) == 0 {
			t.Fatal("no histories", err)
		}
		for _, path := range paths {
			for _, h := range readHistories(t, path) {
				t.Run(dir+"/"+h.name, func(t *testing.T) { replay(t, o, path, h) })
			}
		}
	}
}

func replay(t *testing.T, o judge, path string, h history) {
	o.Reset(h.trace.Config)
	for _, step := range h.trace.Steps {
		got := step.Want
		if got.Kind == reusecheck.Unstated {
			got = reusecheck.Success
		}
		v := o.Judge(step.Op, got)
		stated := verdictText(h.trace, step, h.notes[step.Line])
		if diff := cmp.Diff(stated, describe(h.trace, v, step.Oracle)); diff != "" {
			t.Errorf("%s:%d: %s (-stated +judged)\n%s", path, step.Line, step.Text(h.trace.Name), diff)
		}
		o.Follow(step.Op, got)
	}
}

// verdictText is what a step's line says of the verdict, in describe's form.
func verdictText(tr *reusecheck.Trace, step reusecheck.Step, note string) string {
	note = strings.TrimSpace(note)
	want := "agrees"
	switch {
	case note == "open":
		return "open"
	case step.Oracle.Kind != reusecheck.Unstated:
		want = "wants " + step.Oracle.Text(tr.Name)
	}
	var cs []string
	for c := range strings.SplitSeq(note, ",") {
		if c = strings.TrimSpace(c); c == "" {
			continue
		}
		who, why, _ := strings.Cut(c, " ")
		if of, ok := strings.CutPrefix(who, "~"); ok {
			who = of + "'s other end"
		}
		reason, ok := reasonWords[why]
		if !ok {
			panic("unknown reason word: " + why)
		}
		cs = append(cs, fmt.Sprintf("%s: %s", who, reason))
	}
	return finish(want, cs)
}

func describe(tr *reusecheck.Trace, v oracle.Verdict, stated reusecheck.Answer) string {
	if v.Open != "" {
		if !v.Agrees {
			return "open and yet disagrees"
		}
		return "open"
	}
	want := "agrees"
	if !v.Agrees {
		if stated.Kind != reusecheck.Unstated && stated.Matches(v.Want) {
			v.Want = stated // a stated ok is any port
		}
		want = "wants " + v.Want.Text(tr.Name)
	}
	var cs []string
	for _, c := range v.Conflicts {
		cs = append(cs, fmt.Sprintf("%s: %s", tr.Name(c.Owner), c.Reason))
	}
	return finish(want, cs)
}

func finish(want string, conflicts []string) string {
	slices.Sort(conflicts)
	return strings.Join(append([]string{want}, conflicts...), "\n")
}
