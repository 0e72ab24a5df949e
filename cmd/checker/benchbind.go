package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/model"
)

type bindFlags struct {
	guestFlags
	sockets int
	rounds  int
	before  string
	after   string
	live    bool
	json    bool
}

func newBenchBind(std streams) *cobra.Command {
	var f bindFlags
	cmd := &cobra.Command{
		Use:   "bind",
		Short: "bind thousands of sockets to one port, before and after the first-bind fix",
		Long: `Bind binds sockets with one reuse option to one port and counts the owners that
the model visits, which is exact, and the time, the median of the rounds. Beside
them stand the figures that the fix was reported with (16,000 sockets, KVM guest).

With --live, or --image, the time is that of the bind calls on a real kernel, for
the given number of sockets and its half, quarter and eighth; their growth is
fitted. The owners are those that the kernel's model visits.`,
		Example: `  checker bench bind
  checker bench bind --sockets 4000 --before 6.12 --after 6.1
  checker bench bind --live
  checker bench bind --sockets 4000 --image /boot/vmlinuz-6.1.0-49-cloud-amd64`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const most = 100_000
			switch {
			case f.sockets < 1 || f.sockets > most:
				return fmt.Errorf("--sockets is %d: give a number from 1 to %d", f.sockets, most)
			case f.rounds < 1 || f.rounds > 1000:
				return fmt.Errorf("--rounds is %d: give a number from 1 to 1000", f.rounds)
			case f.json && f.image == "" && !f.live:
				return errors.New("--json is for the rows of a real kernel: give --live or --image too")
			case f.image != "":
				return f.inGuest(cmd, std)
			case f.live:
				return f.onKernel(cmd.Context(), std)
			}
			return f.onModels(cmd.Context(), std)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.sockets, "sockets", bench.Sockets, "sockets bound to the port")
	fs.IntVar(&f.rounds, "rounds", 3, "rounds of each row; the median counts")
	fs.StringVar(&f.before, "before", defaultKernel, "modelled kernel without the fix")
	fs.StringVar(&f.after, "after", defaultKernel+"+first-bind-fix", "modelled kernel with it")
	fs.BoolVar(&f.live, "live", false, "time the running kernel")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a row (of a real kernel)")
	f.guestFlags.addTo(cmd)
	complete(cmd, "before", kernelWords)
	complete(cmd, "after", kernelWords)
	return cmd
}

func (f *bindFlags) onModels(ctx context.Context, std streams) error {
	before, err := model.ParseOf(reusecheck.TCP, f.before)
	if err != nil {
		return err
	}
	after, err := model.ParseOf(reusecheck.TCP, f.after)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "%d binds\towners visited\t\ttime, ms\t\tratio\treported, ms\t\tratio\t\n", f.sockets)
	fmt.Fprintf(tab, "\t%s\t%s\tbefore\tafter\t\tbefore\tafter\t\t\n", f.before, f.after)
	meter := newMeter(std.errs, "rows", len(bench.Rows))
	for i, r := range bench.Rows {
		b, err := f.median(ctx, before, r)
		if err != nil {
			return err
		}
		a, err := f.median(ctx, after, r)
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
func (f *bindFlags) median(ctx context.Context, p *model.Profile, r bench.Row) (bench.Binds, error) {
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

// kernelRow is a row of the table as a real kernel has it.
type kernelRow struct {
	Row      string    `json:"row"`
	Kernel   string    `json:"kernel"`
	Owners   int       `json:"owners"` // that the model of the kernel visits
	Sockets  []int     `json:"sockets"`
	Millis   []float64 `json:"ms"`
	Exponent *float64  `json:"exponent"` // null where one size alone is timed
	Growth   string    `json:"growth"`
}

func (f *bindFlags) onKernel(ctx context.Context, std streams) error {
	running, err := live.RunningKernel()
	if err != nil {
		return err
	}
	profile := model.ForRelease(running.Version)
	p := &kernelTable{std: std, json: f.json}
	meter := newMeter(std.errs, "rows", len(bench.Rows))
	for i, r := range bench.Rows {
		b, err := bench.Bind(ctx, profile.New(), r, f.sockets)
		if err != nil {
			return err
		}
		g, err := bench.MeasureKernel(ctx, r, f.sockets, f.rounds)
		if err != nil {
			return err
		}
		k := kernelRow{Row: r.String(), Kernel: running.String(), Owners: b.Visited, Sockets: g.Sockets, Growth: g.Shape()}
		if e := g.Exponent(); !math.IsNaN(e) {
			k.Exponent = &e
		}
		for _, t := range g.Took {
			k.Millis = append(k.Millis, float64(t)/float64(time.Millisecond))
		}
		meter.clear()
		if err := p.add(k); err != nil {
			return err
		}
		meter.set(i + 1)
	}
	meter.clear()
	return nil
}

func (f *bindFlags) inGuest(cmd *cobra.Command, std streams) error {
	p := &kernelTable{std: std, json: f.json}
	args := []string{"bench", "bind", "--live", "--json", fmt.Sprintf("--sockets=%d", f.sockets), fmt.Sprintf("--rounds=%d", f.rounds)}
	code, err := f.boot(cmd.Context(), std, args, nil, each(p.add))
	return guestEnding(cmd.Context(), code, err)
}

// kernelTable prints rows as they come.
type kernelTable struct {
	std    streams
	json   bool
	headed bool
}

func (p *kernelTable) add(k kernelRow) error {
	if p.json {
		return writeJSON(p.std.out, k)
	}
	if !p.headed {
		p.headed = true
		fmt.Fprintf(p.std.out, "on %s\n%-20s %12s", k.Kernel, "time, ms", "owners")
		for _, n := range k.Sockets {
			fmt.Fprintf(p.std.out, " %9d", n)
		}
		fmt.Fprintf(p.std.out, "  %8s %-9s  %17s\n", "exponent", "growth", "reported, 16000")
	}
	fmt.Fprintf(p.std.out, "%-20s %12d", k.Row, k.Owners)
	for _, ms := range k.Millis {
		fmt.Fprintf(p.std.out, " %9.3f", ms)
	}
	reported := ""
	for _, r := range bench.Rows {
		if r.String() == k.Row {
			reported = millis(r.Before) + " / " + millis(r.After)
		}
	}
	exponent := "-"
	if k.Exponent != nil {
		exponent = fmt.Sprintf("%.2f", *k.Exponent)
	}
	if _, err := fmt.Fprintf(p.std.out, "  %8s %-9s  %s\n", exponent, k.Growth, reported); err != nil {
		return &outputError{err}
	}
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.1f", float64(a)/float64(max(b, 1))) }
