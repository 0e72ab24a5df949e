package explore

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
)

// someRows are of every kind.
var someRows = []Row{
	{Kernel: "6.18+first-bind-fix", Property: "sound", Proved: true, Assume: "no-set,no-redirect", Owners: 1, Caches: 127, Pairs: 482592, Why: []Obstacle{
		{Without: "no-set-opt", Assume: "no-set-uid,no-set-dev,no-redirect", Pair: "with fastreuse 0", World: "v4 set-opt", Sockets: 2,
			Trace: "socket a tcp4 reuseport\nbind a 0.0.0.0:40000 => ok\nset a reuseport=off => ok\nsocket b tcp4 reuseport\nbind b 0.0.0.0:40000 => ok oracle EADDRINUSE\n"},
		{Without: "no-redirect", Assume: "no-set", Pair: "another", World: "v4", Sockets: 3, Refined: "two owners let it happen too", Cut: true}}},
	{Kernel: "6.1", Property: "precise", Caches: 6, Pairs: 74, Why: []Obstacle{{Assume: "nothing", Pair: "an unowned port", Trace: "socket a tcp4\n", NeverFirst: true}}},
	{Kernel: "4.9", Property: "complete", Proved: true, Assume: "nothing", Owners: 2},
}

func TestVerdictsReadAsTheyWereWritten(t *testing.T) {
	text, err := json.Marshal(someRows)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRows(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(someRows, got); d != "" {
		t.Error(d)
	}
}

func TestVerdictsThatNoProofGivesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                "cannot unmarshal object",
		`[] x`:                              "more behind",
		`[{}]`:                              `verdict 1: unknown kernel ""`,
		`[{"kernel":"6.18","property":""}]`: "verdict 1: \"\" is no property",
		`[{"kernel":"6.18","property":"structure"}]`:                                                       `"structure" is no property`,
		`[{"kernel":"6.18","property":"sound"}]`:                                                           "no reason is given",
		`[{"kernel":"6.18","property":"sound","proved":true,"assume":"no-sets"}]`:                          `did you mean "no-set"?`,
		`[{"kernel":"6.18","property":"sound","proved":true,"owners":3}]`:                                  "out of its range",
		`[{"kernel":"6.18","property":"sound","why":[{"without":"all"}]}]`:                                 `reason 1: there is no assumption "all"`,
		`[{"kernel":"6.18","property":"sound","why":[{"trace":"bind a 0.0.0.0:1 => ok"}]}]`:                "reason 1: history:1",
		`[{"kernel":"6.18","property":"sound","why":[{"pair":"x\n### 9"}]}]`:                               "has several",
		`[{"kernel":"6.18+first-bnd-fix","property":"sound","proved":true,"assume":"nothing","caches":1}]`: "did you mean first-bind-fix?",
	} {
		if _, err := ReadRows([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, which does not say %q", text, err, want)
		}
	}
}

// FuzzReadRows gives arbitrary verdicts: what is read makes a table.
func FuzzReadRows(f *testing.F) {
	for i := range someRows {
		text, err := json.Marshal(someRows[i : i+1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "null", "[]", "[{}]", "{}", `[{"kernel":"6.18","property":"sound"}]`, `[{"kernel":"6.18","why":[{"trace":"x"}]}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := ReadRows(text)
		if err != nil {
			return
		}
		err = WriteVerdicts(io.Discard, rows, func(tr *rc.Trace, property string) (string, error) { return "", nil })
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := ReadRows(again); err != nil || !cmp.Equal(rows, same) {
			t.Errorf("%s reads as other verdicts: %v", again, err)
		}
	})
}
