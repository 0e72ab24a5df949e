package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

type exploreFlags struct {
	programFlags
	kernel     string
	system     string
	depth      int
	world      string
	without    []string
	sockets    int
	properties []string
	workers    int
	memory     string
	unreduced  bool
	checkpoint string
	json       bool
	dir        string
}

func newExplore(std streams) *cobra.Command {
	var f exploreFlags
	cmd := &cobra.Command{
		Use:   "explore",
		Short: "visit every state of a small world, and prove that there is no other finding",
		Long: `Explore visits every state that a modelled kernel can reach with a few sockets,
breadth first to the end, and prints each distinct smallest finding once. When it
finds nothing it prints a witness for each kind of step, so that an empty search
cannot pass for a proof.

The world is made of words, each of which adds to it; --without takes away.

System tcp has an engine of its own, which exploits what is interchangeable. The
others, and worlds of tcp with cpu=, unaccepted or more than two ports, are
explored by playing every history again, with sockets and namespaces
interchangeable and nothing else; that knows no --checkpoint and no --unreduced,
and takes a --depth.

` + exploreWorldHelp() + `
` + propertyHelp() + `
` + exitCodes,
		Example: `  checker explore
  checker explore --kernel 6.18+first-bind-fix --world "v4 uid=2" --sockets 4 --property sound
  checker explore --world "tcp6 mapped v6only reuseport listen" --sockets 3
  checker explore --world mixed --sockets 4 --memory 8G --checkpoint mixed.state
  checker explore --system udp --world tuple --sockets 2
  checker explore --system timewait --sockets 4`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exploreWorld(cmd, std, &f)
		},
	}
	addKernel(cmd, &f.kernel)
	addProperties(cmd, &f.properties)
	fs := cmd.Flags()
	fs.StringVar(&f.system, "system", string(spec.Default.Name), "system to explore")
	complete(cmd, "system", systemWords)
	fs.StringVar(&f.world, "world", spec.Default.Explored, "the world, in words ("+otherWorlds()+")")
	fs.IntVar(&f.depth, "depth", 0, "of systems other than tcp, and worlds that its engine has no room for: steps of a history at most (0: as many as there are)")
	fs.StringSliceVar(&f.without, "without", nil, "take these parts out of the world, joined by commas")
	fs.IntVar(&f.sockets, "sockets", 3, "sockets at one time, accepted children included")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "states expanded at the same time")
	fs.StringVar(&f.memory, "memory", "4G", "memory for states")
	fs.BoolVar(&f.unreduced, "unreduced", false, "tell apart what is interchangeable")
	fs.StringVar(&f.checkpoint, "checkpoint", "", "save to this file now and then, and go on from it if it is there")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a line")
	fs.StringVar(&f.dir, "out", "", "also write each finding as a .trace file into this directory")
	f.programFlags.addTo(cmd)
	complete(cmd, "without", worldWords)
	return cmd
}

// otherWorlds are the worlds of the other systems where none is given.
func otherWorlds() string {
	var s []string
	for _, sys := range spec.Systems {
		if sys != spec.Default {
			s = append(s, string(sys.Name)+": "+sys.Explored)
		}
	}
	return strings.Join(s, ", ")
}

func exploreWorldHelp() string {
	var b strings.Builder
	b.WriteString("Words of a world:\n")
	names, docs := explore.Words()
	for i, n := range names {
		writeItem(&b, n, docs[i])
	}
	return b.String()
}

func exploreWorld(cmd *cobra.Command, std streams, f *exploreFlags) error {
	systems, err := spec.SelectSystems(f.system)
	if err != nil {
		return err
	}
	if len(systems) != 1 {
		return fmt.Errorf("--system is %q: explore one at a time", f.system)
	}
	sys := systems[0]
	if !cmd.Flags().Changed("world") {
		f.world = sys.Explored
	}
	x := &exploration{flags: f, system: sys, report: &reporter{std: std, json: f.json, dir: f.dir}}
	if x.kernel, err = model.ParseOf(sys.Name, f.kernel); err != nil {
		return err
	}
	if f.workers < 1 || f.workers > 1024 {
		return fmt.Errorf("--workers is %d: give a number from 1 to 1024", f.workers)
	}
	if err := x.prepare(); err != nil {
		return err
	}
	if err := f.programFlags.into(x.report); err != nil {
		return err
	}
	if err := x.report.prepare(); err != nil {
		return err
	}
	x.report.meter = newMeter(std.errs, "states", 0)
	return x.run(cmd.Context())
}

// searcher is an engine that explores.
type searcher interface {
	Run(context.Context, func(*explore.History) error) (*explore.Outcome, error)
}

// prepare makes the engine.
func (x *exploration) prepare() error {
	f := x.flags
	world, err := explore.ParseWorld(f.world)
	if err != nil {
		return err
	}
	if err := world.Without(f.without...); err != nil {
		return err
	}
	if err := explore.Fits(x.system, world); err != nil {
		return err
	}
	props, err := x.system.Select(f.properties...)
	if err != nil {
		return err
	}
	memory, err := explore.ParseSize(f.memory)
	if err != nil {
		return fmt.Errorf("--memory: %w", err)
	}
	stack, err := x.stack()
	if err != nil {
		return err
	}
	x.judge = explore.JudgeOf(x.system, stack, props)
	progress := func(s explore.Stats) { x.report.meter.set(int(s.States)) }
	why := explore.Packable(x.system, world)
	if x.packed = why == ""; x.packed {
		if f.checkpoint != "" {
			if err := mayWrite(f.checkpoint); err != nil {
				return err
			}
		}
		if f.depth != 0 {
			return fmt.Errorf("--depth is for systems other than %[1]s: the states of %[1]s are explored to the end, but in worlds with %[2]s", packedSystems(), unpacked)
		}
		x.search = &explore.Search{Kernel: x.kernel, World: world, Sockets: f.sockets, Properties: props, Workers: f.workers,
			Memory: memory, Unreduced: f.unreduced, Checkpoint: f.checkpoint, Progress: progress}
		return nil
	}
	switch of := x.system; {
	case f.checkpoint != "" && of.Packed:
		return fmt.Errorf("--checkpoint is not for this world: %s, and then a state is the history that leads to it, and is not saved", why)
	case f.unreduced && of.Packed:
		return fmt.Errorf("--unreduced is not for this world: %s, and then only sockets are interchangeable", why)
	case f.checkpoint != "":
		return fmt.Errorf("--checkpoint is for %s: of other systems a state is the history that leads to it, and is not saved", packedSystems())
	case f.unreduced:
		return fmt.Errorf("--unreduced is for %s: of other systems only sockets and namespaces are interchangeable", packedSystems())
	case f.depth < 0:
		return fmt.Errorf("--depth is %d: give a number of steps, or 0 for as many as there are", f.depth)
	}
	x.search = &explore.Walk{System: x.system, Stack: x.stack, World: world, Sockets: f.sockets, Depth: f.depth, Properties: props,
		Workers: f.workers, Memory: memory, Progress: progress}
	return nil
}

// unpacked are the words of worlds that an engine of its own has no room for.
const unpacked = "cpu=, unaccepted or more than two ports"

// packedSystems are those with an engine of their own.
func packedSystems() string { return systemsThat(func(sys *spec.System) bool { return sys.Packed }) }

func (x *exploration) stack() (reusecheck.Stack, error) { return x.kernel.Stack(x.system.Name) }

// exploration is a search whose violations are shrunk and told.
type exploration struct {
	flags  *exploreFlags
	system *spec.System
	kernel *model.Profile
	report *reporter
	judge  *explore.Judge
	search searcher
	packed bool // it has an engine of its own
}

func (x *exploration) run(ctx context.Context) error {
	kernels, err := reusecheck.ParseKernels(x.flags.kernel)
	if err != nil {
		return err
	}
	finder := &shrink.Finder{System: x.system, Kernels: kernels, Stack: x.stack}
	outcome, err := x.search.Run(ctx, func(h *explore.History) error {
		fails, err := x.judge.Failures(h)
		for _, fail := range fails {
			n, ferr := finder.Find(ctx, fail)
			if ferr != nil || ctx.Err() != nil {
				return ferr
			}
			if n != nil {
				if err := x.report.add(found(n, x.flags.kernel, x.words())); err != nil {
					return err
				}
			}
		}
		return err
	})
	x.report.meter.clear()
	if err != nil {
		return err
	}
	if err := x.close(outcome); err != nil {
		return err
	}
	return x.report.ending(ctx)
}

// words are the command line that explores the same again.
func (x *exploration) words() string {
	f := x.flags
	s := fmt.Sprintf("checker explore --kernel %s --world %q --sockets %d", f.kernel, f.world, f.sockets)
	if x.system != spec.Default {
		s = fmt.Sprintf("checker explore --system %s --kernel %s --world %q --sockets %d", f.system, f.kernel, f.world, f.sockets)
	}
	if f.depth > 0 {
		s += fmt.Sprintf(" --depth %d", f.depth)
	}
	if len(f.without) > 0 {
		s += " --without " + joined(f.without)
	}
	if len(f.properties) > 0 {
		s += " --property " + joined(f.properties)
	}
	if f.unreduced {
		s += " --unreduced"
	}
	return s
}

type exploreSummary struct {
	Kernel  string `json:"kernel"`
	System  string `json:"system"`
	World   string `json:"world"`
	Sockets int    `json:"sockets"`
	explore.Stats
	Violations int64       `json:"violations"`
	Findings   int         `json:"findings"`
	Steps      []stepCount `json:"steps"`
	Again      string      `json:"again"`
}

type stepCount struct {
	Step   string `json:"step"`
	Count  int64  `json:"count"`
	Depth  int    `json:"depth"`
	Trace  string `json:"trace"`
	reason reusecheck.Reason
}

func (x *exploration) close(o *explore.Outcome) error {
	f, std := x.flags, x.report.std
	var steps []stepCount
	for _, s := range o.Steps {
		h := &explore.History{Trace: s.Trace}
		if _, err := x.judge.Failures(h); err != nil {
			return err
		}
		answer := "refused"
		if s.Answer.Kind == reusecheck.OK {
			answer = "ok"
		}
		steps = append(steps, stepCount{Step: s.Verb.String() + " " + answer, Count: s.Count, Depth: s.Depth, Trace: h.Trace.String(), reason: s.Reason})
	}
	if x.report.json {
		return writeJSON(std.out, struct {
			Summary exploreSummary `json:"summary"`
		}{exploreSummary{f.kernel, f.system, f.world, f.sockets, o.Stats, o.Violations, x.report.n, steps, x.words()}})
	}
	if x.report.n == 0 {
		fmt.Fprintf(std.out, "A witness for each kind of step:\n")
		for _, s := range steps {
			fmt.Fprintf(std.out, "\n%s, %d times: %s\n\n", s.Step, s.Count, s.reason)
			indent(std.out, s.Trace)
		}
		fmt.Fprintln(std.out)
	}
	fmt.Fprintf(std.out, "%s on %s in %q with %s: %d states, %d transitions, depth %d\n", count(x.report.n, "finding"),
		x.on(), f.world, count(f.sockets, "socket"), o.States, o.Transitions, o.Depth)
	for _, what := range slices.Sorted(maps.Keys(o.Skipped)) {
		fmt.Fprintf(std.out, "not judged: %d transitions to %s\n", o.Skipped[what], what)
	}
	if o.Complete {
		but := ""
		if len(o.Skipped) > 0 {
			but = ", but for what is only reached by transitions that are not judged"
		}
		fmt.Fprintf(std.out, "complete: every reachable state was visited%s\n", but)
	} else {
		fmt.Fprintf(std.out, "not complete: every history of up to %s was covered; of %d states met beyond that the steps were not all performed, or not noted\n",
			count(o.Covered, "step"), o.Uncovered)
	}
	fmt.Fprintf(std.out, "again: %s\n", x.words())
	if !x.packed {
		fmt.Fprintf(std.errs, "%.1f s, %.0f states/s, %.0f transitions/s with %s; some %.0f bytes a state\n", o.Seconds,
			float64(o.States)/max(o.Seconds, 1e-9), o.Rate(), count(f.workers, "worker"), float64(o.Bytes)/float64(max(o.States, 1)))
		return nil
	}
	fmt.Fprintf(std.errs, "%.1f s, %.0f states/s, %.0f transitions/s with %s; %.1f bytes a state, %d symmetries, %d different sockets\n",
		o.Seconds, float64(o.States)/max(o.Seconds, 1e-9), o.Rate(), count(f.workers, "worker"),
		float64(o.Bytes)/float64(max(o.States, 1)), o.Symmetries, o.Kinds)
	return nil
}

// on names what was explored.
func (x *exploration) on() string {
	if x.system == spec.Default {
		return x.flags.kernel
	}
	return x.flags.kernel + ", " + x.flags.system
}
