package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/model"
)

type udpFlags struct {
	sockets   int
	datagrams int
	rounds    int
	before    string
	after     string
	live      bool
}

func newBenchUDP(std streams) *cobra.Command {
	var f udpFlags
	cmd := &cobra.Command{
		Use:   "udp",
		Short: "deliver datagrams to one server socket and to many connected ones, with and without the 4-tuple hash",
		Long: `Udp delivers datagrams and counts the sockets that the model scores for each,
which is exact, and the time, the shortest of the rounds. Beside them stand the
figures that the 4-tuple hash was introduced with, of one processor: [a] and [b]
are an unconnected server, [c] and [d] 500 connected sockets, each with a peer of
its own; [b] and [d] are with the hash.

With --live the datagrams arrive on the running kernel's loopback.`,
		Example: `  checker bench udp
  checker bench udp --sockets 100000 --before 6.18
  checker bench udp --live`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const most = 2_000_000
			switch {
			case f.sockets < 1 || f.sockets > most:
				return fmt.Errorf("--sockets is %d: give a number from 1 to %d", f.sockets, most)
			case f.datagrams < 1:
				return fmt.Errorf("--datagrams is %d: give a positive number", f.datagrams)
			case f.rounds < 1 || f.rounds > 1000:
				return fmt.Errorf("--rounds is %d: give a number from 1 to 1000", f.rounds)
			case f.live:
				return f.onKernel(cmd.Context(), std)
			}
			return f.onModels(cmd.Context(), std)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.sockets, "sockets", bench.Peers, "connected sockets, and peers")
	fs.IntVar(&f.datagrams, "datagrams", 20_000, "datagrams in each round")
	fs.IntVar(&f.rounds, "rounds", 5, "rounds of each row; the shortest counts")
	fs.StringVar(&f.before, "before", "6.12", "modelled kernel without the 4-tuple hash")
	fs.StringVar(&f.after, "after", defaultKernel, "modelled kernel with it")
	fs.BoolVar(&f.live, "live", false, "time the running kernel")
	apart(cmd, "live", "before", "the running kernel is timed as it is")
	apart(cmd, "live", "after", "the running kernel is timed as it is")
	complete(cmd, "before", kernelWords)
	complete(cmd, "after", kernelWords)
	return cmd
}

func (f *udpFlags) onModels(ctx context.Context, std streams) error {
	kernels := map[bool]*model.Profile{}
	for table, name := range map[bool]string{false: f.before, true: f.after} {
		p, err := model.ParseOf(reusecheck.UDP, name)
		if err != nil {
			return err
		}
		kernels[table] = p
	}
	tab := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "\tserver\tkernel\tscored\tcompared\tdatagrams/s\tratio\treported\tratio\t\n")
	alone := map[bool]float64{}
	reported := map[bool]float64{}
	for _, c := range bench.Cases {
		d, err := f.shortest(ctx, kernels[c.Table], c.Connected)
		if err != nil {
			return err
		}
		server := "unconnected"
		if c.Connected {
			server = fmt.Sprintf("%d connected", f.sockets)
		} else {
			alone[c.Table], reported[c.Table] = d.PerSecond(), float64(c.Reported)
		}
		fmt.Fprintf(tab, "[%s]\t%s\t%s\t%d\t%d\t%.0f\t%.0f %%\t%d\t%.0f %%\t\n", c.Name, server, kernels[c.Table], d.Scored, d.Compared,
			d.PerSecond(), 100*d.PerSecond()/alone[c.Table], c.Reported, 100*float64(c.Reported)/reported[c.Table])
	}
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

// shortest is the round that took the shortest time.
func (f *udpFlags) shortest(ctx context.Context, p *model.Profile, connected bool) (bench.Datagrams, error) {
	var rounds []bench.Datagrams
	for range f.rounds {
		s, err := p.Stack(reusecheck.UDP)
		if err != nil {
			return bench.Datagrams{}, err
		}
		d, err := bench.Deliver(ctx, s, connected, f.sockets, f.datagrams)
		if err != nil {
			return d, err
		}
		rounds = append(rounds, d)
	}
	return slices.MinFunc(rounds, func(a, b bench.Datagrams) int { return int(a.Took - b.Took) }), nil
}

func (f *udpFlags) onKernel(ctx context.Context, std streams) error {
	running, err := live.RunningKernel()
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "on %s\tns/datagram\tdatagrams/s\tratio\t\n", running)
	alone := time.Duration(0)
	for _, connected := range []int{0, 1, f.sockets} {
		best := time.Duration(0)
		for range f.rounds {
			took, err := live.TimeDatagrams(ctx, connected, f.datagrams)
			if err != nil {
				return err
			}
			if best == 0 || took < best {
				best = took
			}
		}
		if alone == 0 {
			alone = best
		}
		server := "unconnected"
		if connected > 0 {
			server = fmt.Sprintf("%d connected", connected)
		}
		fmt.Fprintf(tab, "%s\t%d\t%.0f\t%.0f %%\t\n", server, best.Nanoseconds()/int64(f.datagrams),
			float64(f.datagrams)/best.Seconds(), 100*float64(alone)/float64(best))
	}
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}
