package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func newBenchHistory(std streams) *cobra.Command {
	traces, systems := false, []string(nil)
	cmd := &cobra.Command{
		Use:   "history [ROW...]",
		Short: "put the known bugs of past kernels back, and see whether check finds them",
		Long: `History runs check with its default budget on a kernel in which a known bug lives,
until it makes a finding that the same kernel without the bug does not show. It
prints how many histories that took, and the length of the finding's trace (steps
but for the socket lines) beside that of the bug's own history in the corpus.

It exits 1 when a bug is not found, or its trace is longer than its history. Where
the healed kernel makes the same finding, by another history, the histories are
compared before they are shrunk, and the row says "apart".`,
		Example: `  checker bench history
  checker bench history --system udp
  checker bench history 14 E1 --traces`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return benchHistory(cmd.Context(), std, systems, args, traces)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range bench.History() {
				ids = append(ids, r.ID+"\t"+r.Doc)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringSliceVar(&systems, "system", systems, "systems whose bugs are put back when no row is named, joined by commas (all)")
	complete(cmd, "system", systemWords)
	cmd.Flags().BoolVar(&traces, "traces", false, "print each finding's trace below its row")
	return cmd
}

func benchHistory(ctx context.Context, std streams, systems, ids []string, traces bool) error {
	rows, err := historyRows(systems, ids)
	if err != nil {
		return err
	}
	const line = "%-4s %-34s %8s %7s %7s  %s\n"
	fmt.Fprintf(std.out, line, "row", "kernel", "checks", "steps", "own", "finding")
	missed := 0
	meter := newMeter(std.errs, "rows", len(rows))
	for i, row := range rows {
		if row.Lives == "" {
			fmt.Fprintf(std.out, line, row.ID, "-", "-", "-", "-", row.Doc)
			continue
		}
		if why := row.Beyond(); why != "" {
			fmt.Fprintf(std.out, line, row.ID, row.Lives, "-", "-", "-", why)
			continue
		}
		r, err := bench.Recover(ctx, row)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Canceled
		}
		meter.clear()
		own := "-"
		if r.Own > 0 {
			own = fmt.Sprint(r.Own)
		}
		if r.Finding == nil {
			missed++
			fmt.Fprintf(std.out, line, row.ID, row.Lives, fmt.Sprint(r.Checks), "-", own, "NOT FOUND")
		} else {
			mark := ""
			if r.Apart {
				mark = "apart: "
			}
			if r.Own > 0 && r.Steps() > r.Own {
				missed++
				mark += "LONGER: "
			}
			fmt.Fprintf(std.out, line, row.ID, row.Lives, fmt.Sprint(r.Checks), fmt.Sprint(r.Steps()), own, mark+r.Finding.Title())
			if traces {
				fmt.Fprintln(std.out)
				indent(std.out, r.Finding.Trace.String())
				fmt.Fprintf(std.out, "\n   %s\n\n", r.Finding.Sentence)
			}
		}
		meter.set(i + 1)
	}
	meter.clear()
	if missed > 0 {
		return errFindings
	}
	return nil
}

func historyRows(systems, ids []string) ([]bench.SystemRow, error) {
	all := bench.History()
	if len(ids) == 0 {
		ss, err := spec.SelectSystems(systems...)
		return slices.DeleteFunc(all, func(r bench.SystemRow) bool { return !slices.Contains(ss, r.System) }), err
	}
	var known []string
	for _, r := range all {
		known = append(known, r.ID)
	}
	var rows []bench.SystemRow
	for _, id := range ids {
		i := slices.Index(known, id)
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q; there are %s", id, strings.Join(known, ", "))
		}
		rows = append(rows, all[i])
	}
	return rows, nil
}

func newBenchShrink(std streams) *cobra.Command {
	system, kernel, starts, checks, misses := string(spec.Default.Name), defaultKernel, 1000, 10*spec.DefaultChecks, false
	cmd := &cobra.Command{
		Use:   "shrink",
		Short: "shrink many failing histories of each finding, and see how many end in the same trace",
		Long: `Shrink makes the findings of a kernel, then looks for failing histories of each
from another seed, shrinks every one, and prints the share that end in the
finding's trace. Rare findings have fewer starts than asked for, unless more
histories are tried.`,
		Example: `  checker bench shrink
  checker bench shrink --kernel 6.1 --starts 100
  checker bench shrink --system timewait --kernel 6.18+tw-one-family
  checker bench shrink --checks 20000000 --misses`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return benchShrink(cmd.Context(), std, system, kernel, starts, checks, misses)
		},
	}
	addKernel(cmd, &kernel)
	cmd.Flags().StringVar(&system, "system", system, "system whose findings are shrunk")
	complete(cmd, "system", systemWords)
	cmd.Flags().IntVar(&checks, "checks", checks, "histories among which the failing ones are looked for")
	cmd.Flags().BoolVar(&misses, "misses", false, "print the other traces that shrinking ended in")
	cmd.Flags().IntVar(&starts, "starts", starts, "failing histories to shrink for each finding")
	return cmd
}

func benchShrink(ctx context.Context, std streams, system, kernel string, starts, checks int, misses bool) error {
	if starts < 1 || checks < 1 {
		return fmt.Errorf("--starts is %d and --checks %d: give numbers of at least 1", starts, checks)
	}
	systems, err := spec.SelectSystems(system)
	if err != nil {
		return err
	}
	sys := systems[0]
	p, err := model.ParseOf(sys.Name, kernel)
	if err != nil {
		return err
	}
	meter := newMeter(std.errs, "shrunk", 0)
	cs, err := bench.Converge(ctx, sys, func() (reusecheck.Stack, error) { return p.Stack(sys.Name) }, starts, checks, func(done, of int) {
		meter.total = int64(of)
		meter.set(done)
	})
	meter.clear()
	return tellConvergence(std, cs, misses, err)
}

// tellConvergence prints the table, of an interrupted measurement as far as it went.
func tellConvergence(std streams, cs []*bench.Convergence, misses bool, err error) error {
	shrunk := slices.ContainsFunc(cs, func(c *bench.Convergence) bool { return c.Started > 0 })
	switch {
	case errors.Is(err, context.Canceled) && shrunk:
		err = errFindings
	case err != nil:
		return err
	}
	fmt.Fprintf(std.out, "%7s %7s %7s %10s  %s\n", "share", "reached", "started", "candidates", "finding")
	reached, started := 0, 0
	for _, c := range cs {
		reached += c.Reached
		started += c.Started
		fmt.Fprintf(std.out, "%5.1f %% %7d %7d %10d  %s, %s\n", share(c.Reached, c.Started), c.Reached, c.Started,
			c.Tried/max(1, c.Started), c.Finding.Title(), shape(c.Finding))
		if misses {
			for _, text := range slices.Sorted(maps.Keys(c.Others)) {
				fmt.Fprintf(std.out, "\n   %s ended in\n", count(c.Others[text], "start"))
				indent(std.out, text)
			}
		}
	}
	fmt.Fprintf(std.out, "%5.1f %% %7d %7d %10s  all\n", share(reached, started), reached, started, "")
	return err
}

func share(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// shape tells findings with the same title apart.
func shape(n *shrink.Finding) string {
	t := n.Trace
	return fmt.Sprintf("%s, the last %q", count(bench.Steps(t), "step"), t.Steps[len(t.Steps)-1].Text(t.Name))
}
