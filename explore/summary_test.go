package explore

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheVerdictsSayWhatTheirRowsSay makes the text above the table and the table
// itself again from the rows of the table.
func TestTheVerdictsSayWhatTheirRowsSay(t *testing.T) {
	b, err := os.ReadFile("../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(b), "\n## Histories\n")
	if !found {
		t.Fatal("docs/verdicts.md has no histories")
	}
	var lines []line
	var table strings.Builder
	kernels := map[string]bool{}
	for s := range strings.Lines(text) {
		if l, ok := parseLine(strings.TrimSuffix(s, "\n")); ok {
			lines = append(lines, l)
			table.WriteString(l.String() + "\n")
			kernels[l.kernel] = true
		}
	}
	if diff := cmp.Diff(verdictsHead+summary(lines)+"\n"+tableHead+table.String(), text); diff != "" {
		t.Errorf("docs/verdicts.md is not what checker prove --table writes of its rows (-want +got):\n%s", diff)
	}
	for _, k := range VerdictKernels() {
		if !kernels[k] {
			t.Errorf("docs/verdicts.md lacks %s", k)
		}
	}
}

// TestTheSummaryChangesWithTheRows is about four kernels of one generation.
func TestTheSummaryChangesWithTheRows(t *testing.T) {
	rows := func() (ls []line) {
		for _, k := range []string{"6.18", "6.18+first-bind-fix", "6.18+first-bind-fix+exact-strict-match", "6.18+first-bind-fix+stand-in-strict-match"} {
			for _, p := range Provable {
				l := line{kernel: k, property: p.Name, proved: true, owners: 1, assume: "no-set,no-connect",
					why: []reason{{without: "no-connect", number: 7}}, on: []string{"7: 6.18.44"}}
				if p.Name == "precise" && k == "6.18" {
					l.proved, l.why, l.assume = false, []reason{{number: 3}}, ""
				}
				ls = append(ls, l)
			}
		}
		return ls
	}
	before := summary(rows())
	for _, want := range []string{
		"Is 6.18 sound as it was released?** Only assuming no-set,no-connect. Without: no-connect [7](#7).",
		"Of 3 that are proved to be all three, no other does with less than `6.18+first-bind-fix` (sound assuming no-set,no-connect; ",
		"Not settled:** nothing. Each assumption of each of the 12 rows is needed",
		"One, in each of the 11.",
		"1 of 2 histories, on 6.18.44.",
	} {
		if !strings.Contains(before, want) {
			t.Errorf("the summary lacks %q:\n%s", want, before)
		}
	}
	for _, c := range []struct {
		name, want string
		change     func([]line)
	}{
		{"a repair that is sound of itself", "With stand-in-strict-match instead?** Yes, with nothing assumed.", func(ls []line) { ls[9].assume = "nothing"; ls[9].why = nil }},
		{"a repair that needs less", "no other does with less than `6.18+first-bind-fix+exact-strict-match` (", func(ls []line) {
			for i := range 3 {
				ls[6+i].assume = "no-set"
			}
		}},
		{"no repair will do", "None of those in the table", func(ls []line) {
			for i := range ls {
				ls[i].proved = false
			}
		}},
		{"one that is not sound", "With the first-bind fix?** No, whatever is assumed: no-connect [7](#7).", func(ls []line) { ls[3].proved = false }},
		{"one that is open", "Not settled:** complete of 6.18 without no-connect [7](#7): no proof", func(ls []line) { ls[1].why[0].open = true }},
		{"one that fails behind another", "Never the first to fail:** complete of 6.18 without no-connect [7](#7). ", func(ls []line) { ls[1].why[0].neverFirst = true }},
		{"one of two owners", "Two for complete of 6.18; one in each other of the 11.", func(ls []line) { ls[1].owners = 2 }},
		{"nothing confirmed", "None of the 2 histories was held to one.", func(ls []line) {
			for i := range ls {
				ls[i].on = nil
			}
		}},
	} {
		ls := rows()
		c.change(ls)
		if got := summary(ls); !strings.Contains(got, c.want) || strings.Contains(before, c.want) {
			t.Errorf("%s: the summary lacks %q, or always has it:\n%s", c.name, c.want, got)
		}
		for i := range ls {
			back, ok := parseLine(ls[i].String())
			if !ls[i].proved {
				ls[i].assume, ls[i].owners = "", 0
			}
			if diff := cmp.Diff(ls[i], back, cmp.AllowUnexported(line{}, reason{})); !ok || diff != "" {
				t.Errorf("%s is not read back (-want +got):\n%s", ls[i].String(), diff)
			}
		}
	}
}
