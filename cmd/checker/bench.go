package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/model"
)

func newBench(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "measure",
		Long:  "Bench measures what the project's numbers are about. See bench/README.md for all of them.",
		Example: `  checker bench bind
  checker bench bind --sockets 4000 --rounds 5
  checker bench history
  checker bench shrink --starts 100`,
		Args: aVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchBind(std), newBenchHistory(std), newBenchShrink(std))
	return cmd
}

type bindFlags struct {
	sockets int
	rounds  int
	before  string
	after   string
}

func newBenchBind(std streams) *cobra.Command {
	var f bindFlags
	cmd := &cobra.Command{
		Use:   "bind",
		Short: "bind thousands of sockets to one port, before and after the first-bind fix",
		Long: `Bind binds sockets with one reuse option to one port and counts the owners that
the model visits, which is exact, and the time, the median of the rounds. Beside
them stand the figures that the fix was reported with (16,000 sockets, KVM guest).`,
		Example: `  checker bench bind
  checker bench bind --sockets 4000 --before 6.12 --after 6.1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return benchBind(cmd.Context(), std, f) },
	}
	cmd.Flags().IntVar(&f.sockets, "sockets", bench.Sockets, "sockets bound to the port")
	cmd.Flags().IntVar(&f.rounds, "rounds", 3, "rounds of each row; the median counts")
	cmd.Flags().StringVar(&f.before, "before", defaultKernel, "modelled kernel without the fix")
	cmd.Flags().StringVar(&f.after, "after", defaultKernel+"+first-bind-fix", "modelled kernel with it")
	complete(cmd, "before", kernelWords)
	complete(cmd, "after", kernelWords)
	return cmd
}

func benchBind(ctx context.Context, std streams, f bindFlags) error {
	const most = 100_000
	switch {
	case f.sockets < 1 || f.sockets > most:
		return fmt.Errorf("--sockets is %d: give a number from 1 to %d", f.sockets, most)
	case f.rounds < 1 || f.rounds > 1000:
		return fmt.Errorf("--rounds is %d: give a number from 1 to 1000", f.rounds)
	}
	before, err := model.Parse(f.before)
	if err != nil {
		return err
	}
	after, err := model.Parse(f.after)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "%d binds\towners visited\t\ttime, ms\t\tratio\treported, ms\t\tratio\t\n", f.sockets)
	fmt.Fprintf(tab, "\t%s\t%s\tbefore\tafter\t\tbefore\tafter\t\t\n", f.before, f.after)
	meter := newMeter(std.errs, "rows", len(bench.Rows))
	for i, r := range bench.Rows {
		b, err := median(ctx, before, r, f)
		if err != nil {
			return err
		}
		a, err := median(ctx, after, r, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r, b.Visited, a.Visited,
			millis(b.Took), millis(a.Took), ratio(b.Took, a.Took), millis(r.Before), millis(r.After), ratio(r.Before, r.After))
		meter.set(i + 1)
	}
	meter.clear()
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

// median is the round in the middle by time.
func median(ctx context.Context, p *model.Profile, r bench.Row, f bindFlags) (bench.Binds, error) {
	var rounds []bench.Binds
	for range f.rounds {
		b, err := bench.Bind(ctx, p.New(), r, f.sockets)
		if err != nil {
			return b, err
		}
		rounds = append(rounds, b)
	}
	slices.SortFunc(rounds, func(a, b bench.Binds) int { return int(a.Took - b.Took) })
	return rounds[len(rounds)/2], nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.1f", float64(a)/float64(max(b, 1))) }
