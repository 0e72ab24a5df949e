package explore

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"strings"

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

// WriteVerdicts writes the table of verdicts for some kernels as Markdown: the
// weakest assumptions under which each property is proved, and for each of them
// a history that shows why it cannot be given up.
func WriteVerdicts(ctx context.Context, out io.Writer, kernels []string, sockets int, progress func(string)) error {
	var traces strings.Builder
	fmt.Fprintf(out, "| kernel | property | proved, assuming | caches | pairs | why not less |\n|---|---|---|---|---|---|\n")
	n := 0
	for _, name := range kernels {
		k, err := model.Parse(name)
		if err != nil {
			return err
		}
		progress(name)
		p, err := NewProver(k)
		if err != nil {
			return err
		}
		for _, prop := range Provable {
			progress(name + " " + prop.Name)
			a, ok := p.Weakest(prop, 0)
			d := p.Prove(prop, a)
			if !ok {
				if err := p.Concrete(ctx, &d, prop, sockets); err != nil {
					return err
				}
				n++
				fmt.Fprintf(out, "| %s | %s | not proved under any | %d | %d | %s |\n", name, prop.Name, d.Caches, d.Pairs, cite(&d, n))
				tellVerdict(&traces, name, &d, n)
				continue
			}
			var why []string
			for f := feature(a); f != 0; f &= f - 1 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				less := a &^ Assumption(1<<bits.TrailingZeros32(uint32(f)))
				e := p.Prove(prop, less)
				if err := p.Concrete(ctx, &e, prop, sockets); err != nil {
					return err
				}
				n++
				why = append(why, "no-"+featureWords[bits.TrailingZeros32(uint32(f))].name+": "+cite(&e, n))
				tellVerdict(&traces, name, &e, n)
			}
			fmt.Fprintf(out, "| %s | %s | %s | %d | %d | %s |\n", name, prop.Name, a, d.Caches, d.Pairs, strings.Join(why, "; "))
		}
	}
	_, err := fmt.Fprintf(out, "\n## Histories\n%s", traces.String())
	return err
}

func cite(d *Verdict, n int) string {
	if d.Trace == nil {
		return fmt.Sprintf("not proved, no history ([%d](#%d))", n, n)
	}
	return fmt.Sprintf("[%d](#%d)", n, n)
}

func tellVerdict(b *strings.Builder, kernel string, d *Verdict, n int) {
	fmt.Fprintf(b, "\n### %d\n\n%s, %s, assuming %s: %s.\n", n, kernel, d.Property, d.Assume, d.Pair)
	if d.Trace == nil {
		fmt.Fprintf(b, "No history with up to %d sockets shows it in the world `%s`.\n", d.Sockets, d.World)
		return
	}
	fmt.Fprintln(b)
	for line := range strings.Lines(d.Trace.Trace.String()) {
		fmt.Fprint(b, "    "+line)
	}
}
