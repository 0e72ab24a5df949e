package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
)

type timeWaitFlags struct {
	guestFlags
	live       bool
	json       bool
	rounds     int
	namespaces int
	batches    int
	each       int
	staying    int
}

func newBenchTimeWait(std streams) *cobra.Command {
	var f timeWaitFlags
	cmd := &cobra.Command{
		Use:   "timewait",
		Short: "tear down network namespaces, and count the walks of the established table",
		Long: `Timewait makes namespaces and tears them down in batches on every form that the
teardown has had, and counts the walks of the established table, the entries in
it that were stepped over, and the slots, most of them empty, for tables of
several sizes. By default it is the test that the skip was introduced with, 40
shells that each make and leave 100 namespaces without a connection; its report
shows 3 batches, with 6 walks before and none after. How many batches a run
makes is chance: the worker takes what is queued.

After that stand all interleavings of two exits at once, with a shortest one that
leads to a warning where there is one.

With --live, or --image, namespaces are made and let go of on a real kernel, with
TIME_WAIT sockets in each and without, and the times are the medians of the rounds:
of the calls that make them, and from the first that is let go of to the end of
the last purge. Batches and walks are counted where the kernel has kprobes. How
many batches it makes of them is its own affair.`,
		Example: `  checker bench timewait
  checker bench timewait --batches 4000
  checker bench timewait --namespaces 400 --each 1 --staying 1000
  checker bench timewait --live
  checker bench timewait --image /boot/vmlinuz-6.1.0-49-cloud-amd64`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			const most = 100_000
			if f.live || f.image != "" {
				f.fewer(cmd)
			}
			switch {
			case f.namespaces < 1 || f.namespaces > most:
				return fmt.Errorf("--namespaces is %d: give a number from 1 to %d", f.namespaces, most)
			case f.batches < 1 || f.batches > f.namespaces:
				return fmt.Errorf("--batches is %d: give a number from 1 to %d, that of the namespaces", f.batches, f.namespaces)
			case f.each < 0 || f.each > 1000:
				return fmt.Errorf("--each is %d: give a number from 0 to 1000", f.each)
			case f.staying < 0 || f.staying > most:
				return fmt.Errorf("--staying is %d: give a number from 0 to %d", f.staying, most)
			case f.rounds < 1 || f.rounds > 1000:
				return fmt.Errorf("--rounds is %d: give a number from 1 to 1000", f.rounds)
			case f.json && !f.live && f.image == "":
				return errors.New("--json is for the rows of a real kernel: give --live or --image too")
			case f.image != "":
				return f.inGuest(cmd, std)
			case f.live:
				return f.onKernel(cmd.Context(), std)
			}
			if err := f.onModels(cmd.Context(), std); err != nil {
				return err
			}
			return races(std.out)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.namespaces, "namespaces", bench.Shells*bench.EachShell, "namespaces to tear down")
	fs.IntVar(&f.batches, "batches", 3, "batches that they are torn down in (of a model)")
	fs.IntVar(&f.each, "each", 0, "TIME_WAIT sockets in each of them")
	fs.IntVar(&f.staying, "staying", 0, "TIME_WAIT sockets in a namespace that stays (of a model)")
	fs.BoolVar(&f.live, "live", false, "time the running kernel")
	fs.IntVar(&f.rounds, "rounds", 5, "rounds of each row of a real kernel; the median counts")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a row (of a real kernel)")
	f.guestFlags.addTo(cmd)
	for _, real := range []string{"live", "image"} {
		apart(cmd, real, "batches", "how many batches a real kernel makes is its own affair")
		apart(cmd, real, "staying", "what stays is a model's")
	}
	return cmd
}

// fewer are the defaults for a real kernel, whose namespaces take memory and time.
func (f *timeWaitFlags) fewer(cmd *cobra.Command) {
	if !cmd.Flags().Changed("namespaces") {
		f.namespaces = 200
	}
	if !cmd.Flags().Changed("each") {
		f.each = 10
	}
	if !cmd.Flags().Changed("batches") {
		f.batches = 1 // not used
	}
}

// tables are the sizes whose slots are shown.
var tables = []int{1 << 14, 1 << 18, 1 << 20}

func (f *timeWaitFlags) onModels(ctx context.Context, std streams) error {
	fmt.Fprintf(std.out, "%d namespaces in %d batches, %d TIME_WAIT sockets in each, %d elsewhere:\n", f.namespaces, f.batches, f.each, f.staying)
	tab := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "teardown\tsince\twalks\tentries\t")
	for _, slots := range tables {
		fmt.Fprintf(tab, "slots of %d\t", slots)
	}
	fmt.Fprintln(tab)
	for _, era := range model.Eras() {
		p, err := model.ParseOf(reusecheck.TimeWaitExit, era.Kernel)
		if err != nil {
			return err
		}
		u, err := bench.Unshare(ctx, p.NewTimeWait(), f.namespaces, f.batches, f.each, f.staying)
		if err != nil {
			return err
		}
		fmt.Fprintf(tab, "%s\t%s\t%d\t%d\t", era.Name, era.Since, u.Walks, u.Entries)
		for _, slots := range tables {
			fmt.Fprintf(tab, "%d\t", u.Slots(slots))
		}
		fmt.Fprintln(tab)
	}
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	return nil
}

// races prints what two exits at once come to.
func races(out io.Writer) error {
	waits := []model.Waiting{{Exit: 0}, {Exit: 1, Six: true}}
	tab := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tab, "\nTwo exits at once, A with an IPv4 TIME_WAIT socket and B with an IPv6 one:\n")
	var shortest []string
	for _, era := range model.Eras() {
		p, err := model.ParseOf(reusecheck.TimeWaitExit, era.Kernel)
		if err != nil {
			return err
		}
		race, err := model.NewExitRace(p, waits)
		if err != nil {
			return err
		}
		rep := explore.Exits(race)
		says := "nothing goes wrong"
		for _, fault := range []model.RaceFault{model.RaceLoses, model.RaceUses, model.RaceWarns} {
			if steps := rep.Shortest[fault]; steps != nil {
				says, shortest = string(fault), steps
			}
		}
		fmt.Fprintf(tab, "%s\t%s interleavings\t%s\n", era.Name, rep.Interleavings, says)
	}
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	if shortest == nil {
		return nil
	}
	if _, err := fmt.Fprintf(out, "\nA shortest one, of the last of them that has one:\n"); err != nil {
		return &outputError{err}
	}
	for i, step := range shortest {
		if _, err := fmt.Fprintf(out, "  %d. %s\n", i+1, step); err != nil {
			return &outputError{err}
		}
	}
	return nil
}
