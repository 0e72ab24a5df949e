package explore

import (
	"context"
	"fmt"
	"io"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// VerdictKernels are the kernels of the table of verdicts: every generation, with
// and without the first-bind fix and the repairs of STRICT, as far as they differ.
func VerdictKernels() []string {
	var ks []string
	for _, g := range model.Generations() {
		never := false
		for _, c := range g.Changes {
			never = never || c == "empty-bucket-test"
		}
		strict := false
		for _, c := range g.Changes {
			strict = strict || c == "strict-cache"
		}
		ks = append(ks, g.Name)
		if never {
			ks = append(ks, g.Name+"+first-bind-fix")
		}
		for _, repair := range []string{"+exact-strict-match", "+stand-in-strict-match"} {
			if !strict {
				continue
			}
			ks = append(ks, g.Name+repair)
			if never {
				ks = append(ks, g.Name+"+first-bind-fix"+repair)
			}
		}
	}
	return ks
}

// Provable are the properties that a proof can be asked for.
var Provable = []*spec.Property{spec.Sound, spec.Complete, spec.Precise}

// Row is what is known of a property of a kernel: the weakest assumptions under
// which it is proved, and why none of them can be given up.
type Row struct {
	Kernel        string `json:"kernel"`
	Property      string `json:"property"`
	Proved        bool   `json:"proved"`
	Assume        string `json:"assume,omitempty"`
	Owners        int    `json:"owners,omitempty"` // that the proof tracks
	Caches, Pairs int
	Why           []Obstacle `json:"why"`
}

// Obstacle is a verdict that is not a proof.
type Obstacle struct {
	Without string `json:"without,omitempty"` // the assumption that was given up
	Assume  string `json:"assume"`            // those that were left
	Pair    string `json:"pair"`
	World   string `json:"world"`
	Sockets int    `json:"sockets"`
	Trace   string `json:"trace,omitempty"` // a history that shows it, "" for none
	// NeverFirst is that of [Verdict]: the history goes on after a wrong answer.
	NeverFirst bool   `json:"neverFirst,omitempty"`
	Cut        bool   `json:"cut,omitempty"`     // as that of [Verdict]
	Refined    string `json:"refined,omitempty"` // why two tracked owners do not do
}

// Rows finds the verdicts on one kernel, with histories of up to so many sockets.
func Rows(ctx context.Context, kernel string, sockets int) ([]Row, error) {
	k, err := model.Parse(kernel)
	if err != nil {
		return nil, err
	}
	p, err := NewProver(k)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, prop := range Provable {
		proof, why, err := p.Weakest(ctx, prop, 0, sockets)
		if err != nil {
			return nil, err
		}
		r := Row{Kernel: kernel, Property: prop.Name, Proved: proof.Proved, Owners: proof.Owners, Assume: proof.Assume.String(),
			Caches: proof.Caches, Pairs: proof.Pairs}
		for i := range why {
			d := &why[i]
			o := Obstacle{Assume: d.Assume.String(), Pair: d.Pair, World: d.World, Sockets: d.Sockets, NeverFirst: d.NeverFirst, Cut: d.Cut, Refined: d.Refined}
			if d.Without != 0 {
				o.Without = d.Without.String()
			}
			if d.Trace != nil {
				o.Trace = d.Trace.Trace.String()
			}
			r.Why = append(r.Why, o)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Confirm says on which kernels beside the modelled one the last step of a history
// violates a property, "" for none.
type Confirm func(t *rc.Trace, property string) (string, error)

// verdictsHead is what the table of verdicts is, and how to read it.
const verdictsHead = `# Verdicts

What is proved for any number of sockets, under the weakest assumptions of which none can be given up (in the order in which ` + "`checker prove --weakest`" + `
tries them), and for each assumption a history that shows why it is needed. The argument is in [proof.md](proof.md). All of this is made by

    checker prove --table --rows verdicts.json --on live

of every generation, with and without each repair that it can have. It takes about a quarter of an hour of processor time; with ` + "`--rows`" + ` it goes on
where it was broken off.

*Confirmed on* names the running kernel where the history gives the same answers there and its last step violates the property there too. A history of a
repair that no kernel has is confirmed where the released kernel shares the fault; that is no statement about the repair. One that is not listed did not
run alike there, or was not found. *Never first* says that a grant of a named port was wrong before, and that this is so in every such history.

`

const tableHead = "| kernel | property | proved, assuming | caches | pairs | why not less | confirmed on |\n|---|---|---|---|---|---|---|\n"

// WriteVerdicts writes rows as Markdown: answers in words, which are made of the
// rows, a table, and the histories, each once.
func WriteVerdicts(out io.Writer, rows []Row, confirm Confirm) error {
	var table, traces strings.Builder
	lines, err := tellRows(&traces, rows, confirm)
	if err != nil {
		return err
	}
	for i := range lines {
		fmt.Fprintln(&table, lines[i].String())
	}
	_, err = fmt.Fprintf(out, "%s%s\n%s%s\n## Histories\n%s", verdictsHead, summary(lines), tableHead, table.String(), traces.String())
	return err
}

// tellRows numbers the histories, tells each once and has it confirmed.
func tellRows(traces *strings.Builder, rows []Row, confirm Confirm) (lines []line, err error) {
	numbers := map[string]int{}
	confirmed := map[int]string{}
	for i := range rows {
		r := &rows[i]
		l := line{kernel: r.Kernel, property: r.Property, proved: r.Proved, assume: r.Assume, owners: r.Owners, caches: r.Caches, pairs: r.Pairs}
		if l.proved {
			l.owners = max(1, l.owners) // which is not written down
		}
		for k := range r.Why {
			o := &r.Why[k]
			key := r.Property + o.Pair + o.Trace
			n, known := numbers[key]
			if !known {
				n = len(numbers) + 1
				numbers[key] = n
				tellObstacle(traces, r, o, n)
				if o.Trace != "" && confirm != nil {
					t, err := rc.Parse("history", []byte(o.Trace))
					if err != nil {
						return nil, fmt.Errorf("history %d: %w", n, err)
					}
					if confirmed[n], err = confirm(t, r.Property); err != nil {
						return nil, fmt.Errorf("history %d: %w", n, err)
					}
				}
			}
			l.why = append(l.why, reason{without: o.Without, number: n, open: o.Trace == "", neverFirst: o.NeverFirst})
			if confirmed[n] != "" {
				l.on = append(l.on, fmt.Sprintf("%d: %s", n, confirmed[n]))
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func tellObstacle(b *strings.Builder, r *Row, o *Obstacle, n int) {
	fmt.Fprintf(b, "\n### %d\n\n%s, %s, assuming %s: %s.\n", n, r.Kernel, r.Property, o.Assume, o.Pair)
	if o.NeverFirst {
		fmt.Fprintf(b, "%s is never the first to fail there, for any number of sockets: a grant by the scan was wrong before.\n", upperFirst(r.Property))
	}
	if o.Trace == "" {
		fmt.Fprintf(b, "No history with up to %d sockets shows it in the world `%s`%s.\n", o.Sockets, o.World, AsFar(o.Cut))
		if o.Refined != "" {
			fmt.Fprintf(b, "Two tracked owners do not settle it: %s.\n", o.Refined)
		}
		return
	}
	fmt.Fprintln(b)
	for line := range strings.Lines(o.Trace) {
		fmt.Fprint(b, strings.TrimRight("    "+line, " \n")+"\n")
	}
}

// AsFar qualifies a statement that there is no history, where a search was cut.
func AsFar(cut bool) string {
	if cut {
		return ", as far as the memory of the search went"
	}
	return ""
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
