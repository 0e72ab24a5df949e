package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type replayFlags struct {
	guestFlags
	kernels []string
	on      string
	json    bool
	quiet   bool
}

func newReplay(std streams) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE|DIR|-...",
		Short: "run traces step by step and compare with what they state",
		Long: `Replay runs traces and prints every step: the result, the oracle's answer, the
path, the owners visited and the bind bucket's cache after it (fastreuse and
fastreuseport; - is no bucket). A directory stands for every .trace file below
it, - for standard input.

Without --kernel each trace runs on every modelled kernel that its kernels
header names. A result other than the stated one, and a divergence that the
trace does not state, is a finding. A violation of a property is printed below
its step.

With --on live they run on the running kernel instead, and with --image on one
that QEMU boots: those whose kernels header includes its release. The cache is
shown where the kernel lets it be read.

With --json there is one object a step. It names the kernel when more than one
can be meant, what was stated when that does not hold ("stated"), and the
properties violated ("violations").

` + exitCodes,
		Example: `  checker replay slip.trace
  checker replay --kernel 6.18,6.18+first-bind-fix slip.trace
  checker replay --quiet corpus
  checker replay --quiet --on live corpus
  checker replay --json - < slip.trace`,
		Args: atLeastOne("a trace to replay: a file, a directory, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.image != "" {
				return f.inGuest(cmd, std, args)
			}
			return f.run(cmd.Context(), std, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"trace"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringSliceVar(&f.kernels, "kernel", nil, "modelled kernels, joined by commas (those that the trace names)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a step")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only what does not hold, and the summary")
	cmd.Flags().StringVar(&f.on, "on", "model", "what the traces run on: model or live, the running kernel")
	complete(cmd, "on", func(string) []string { return []string{onModel, onLive} })
	f.guestFlags.addTo(cmd)
	complete(cmd, "kernel", kernelWords)
	apart(cmd, "image", "kernel", "the image's kernel answers, no modelled one")
	return cmd
}

// What traces can run on.
const (
	onModel = "model"
	onLive  = "live"
)

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func (f *replayFlags) run(ctx context.Context, std streams, args []string) error {
	run, done, err := f.runners()
	if err != nil {
		return err
	}
	defer done()
	traces, err := readTraces(ctx, args, std.in)
	if err != nil {
		return err
	}
	r := newReplayReport(std, f)
	meter := newMeter(std.errs, "traces", len(traces))
	for i, t := range traces {
		runners := run(t)
		for _, on := range runners {
			if ctx.Err() != nil {
				break
			}
			if err := replay(ctx, r, t, on); err != nil {
				return err
			}
		}
		if len(runners) == 0 {
			r.others++
		}
		if f.quiet {
			meter.set(i + 1)
		}
	}
	meter.clear()
	return r.ending(ctx)
}

// runner makes the stacks that traces of each system run on.
type runner struct {
	name  string
	stack func(reusecheck.System) (reusecheck.Stack, error)
}

// runners says which stacks a trace runs on, and how to let go of them.
func (f *replayFlags) runners() (func(*reusecheck.Trace) []runner, func(), error) {
	switch {
	case f.on == onLive && len(f.kernels) > 0:
		return nil, nil, errors.New("--kernel names a modelled kernel, and --on live is the running one: give one of them")
	case f.on == onLive:
		running, err := live.RunningKernel()
		if err != nil {
			return nil, nil, err
		}
		k := &kernelStacks{}
		s, err := k.watched()
		if err != nil {
			k.close()
			return nil, nil, err
		}
		on := []runner{{running.String(), func(reusecheck.System) (reusecheck.Stack, error) { return s, nil }}}
		return func(t *reusecheck.Trace) []runner {
			if t.Kernels.Includes("", running.Version) {
				return on
			}
			return nil
		}, k.close, nil
	case f.on != onModel:
		return nil, nil, fmt.Errorf("--on is %q: give %s or %s", f.on, onModel, onLive)
	}
	var asked []runner
	for _, k := range f.kernels {
		p, err := model.Parse(k)
		if err != nil {
			return nil, nil, err
		}
		asked = append(asked, runner{p.String(), p.Stack})
	}
	return func(t *reusecheck.Trace) []runner {
		if asked != nil {
			return asked
		}
		system := t.Config.System
		if _, err := spec.SystemOf(t); err != nil {
			system = spec.Default.Name // any: the run says what is lacking
		}
		var rs []runner
		for _, p := range model.NamedOf(system, t.Kernels) {
			rs = append(rs, runner{p.String(), p.Stack})
		}
		return rs
	}, func() {}, nil
}

// replay runs one trace on one stack and reports its steps.
func replay(ctx context.Context, r *replayReport, t *reusecheck.Trace, on runner) error {
	sys, err := spec.SystemOf(t)
	var stack reusecheck.Stack
	if err == nil {
		stack, err = on.stack(sys.Name)
	}
	if err == nil {
		var failed error
		err = spec.NewMachine(sys, stack).Replay(t, func(i int, o *spec.Observation, found []spec.Violation) bool {
			failed = r.add(t, newStepReport(t, &t.Steps[i], on.name, o, found))
			return failed == nil && ctx.Err() == nil
		})
		if failed != nil {
			return failed
		}
	}
	if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
		return r.skip(t, on.name, lacks.Error())
	}
	if err != nil {
		return failedOn(t, on.name, err)
	}
	return nil
}
