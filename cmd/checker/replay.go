package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type replayFlags struct {
	kernels []string
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

With --json there is one object a step. It names the kernel when more than one
can be meant, what was stated when that does not hold ("stated"), and the
properties violated ("violations").

` + exitCodes,
		Example: `  checker replay slip.trace
  checker replay --kernel 6.18,6.18+first-bind-fix slip.trace
  checker replay --quiet corpus
  checker replay --json - < slip.trace`,
		Args: atLeastOne("a trace to replay: a file, a directory, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd.Context(), std, f, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"trace"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringSliceVar(&f.kernels, "kernel", nil, "modelled kernels, joined by commas (those that the trace names)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a step")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only what does not hold, and the summary")
	complete(cmd, "kernel", kernelWords)
	return cmd
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

func replay(ctx context.Context, std streams, f replayFlags, args []string) error {
	var asked []*model.Profile
	for _, k := range f.kernels {
		p, err := model.Parse(k)
		if err != nil {
			return err
		}
		asked = append(asked, p)
	}
	traces, err := readTraces(ctx, args, std.in)
	if err != nil {
		return err
	}
	r := &replayer{std: std, flags: f}
	meter := newMeter(std.errs, "traces", len(traces))
	for i, t := range traces {
		profiles := asked
		if len(f.kernels) == 0 {
			profiles = model.Named(t.Kernels)
		}
		for _, p := range profiles {
			if ctx.Err() != nil {
				break
			}
			if err := r.one(ctx, t, p); err != nil {
				return err
			}
		}
		if len(profiles) == 0 {
			r.skipped++
			fmt.Fprintf(std.errs, "%s: no modelled kernel is among its kernels (%s); name one with --kernel\n", t.File, t.Kernels)
		}
		if f.quiet {
			meter.set(i + 1)
		}
	}
	meter.clear()
	return r.summary(ctx)
}

// replayer runs traces and prints what it sees.
type replayer struct {
	std                     streams
	flags                   replayFlags
	runs, steps, divergence int
	mismatches, skipped     int
}

func (r *replayer) one(ctx context.Context, t *reusecheck.Trace, p *model.Profile) error {
	sys, err := spec.SystemOf(t)
	if err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	var show stepPrinter = noSteps{}
	switch {
	case r.flags.json:
		show = &jsonSteps{w: r.std.out, trace: t, kernel: p.String(), named: len(r.flags.kernels) != 1}
	case !r.flags.quiet:
		show = newTextSteps(r.std.out, t, p.String())
	}
	r.runs++
	var mismatches []string
	var failed error
	err = spec.NewMachine(sys, p.New()).Replay(t, func(i int, o *spec.Observation, found []spec.Violation) bool {
		st := &t.Steps[i]
		c, bad := spec.Contradicts(*st, o)
		r.steps++
		if !o.Verdict.Agrees {
			r.divergence++
		}
		if bad {
			mismatches = append(mismatches, fmt.Sprintf("%s:%d: on %s %s", t.File, st.Line, p.String(), contradiction(t, st, c)))
		}
		failed = show.step(st, o, found, c, bad)
		return failed == nil && ctx.Err() == nil
	})
	if err == nil {
		err = failed
	}
	if end := show.end(); err == nil {
		err = end
	}
	r.mismatches += len(mismatches)
	out := r.std.out
	if r.flags.json {
		out = r.std.errs
	}
	for _, m := range mismatches {
		fmt.Fprintln(out, m)
	}
	if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
		r.skipped++
		fmt.Fprintf(r.std.errs, "%s: on %s: %v\n", t.File, p.String(), err)
		return nil
	}
	if err != nil && !errors.As(err, new(*outputError)) {
		return fmt.Errorf("%s: on %s: %w", t.File, p.String(), err)
	}
	return err
}

// contradiction says which stated answer does not hold.
func contradiction(t *reusecheck.Trace, st *reusecheck.Step, c spec.Contradiction) string {
	op, got, stated := st.Op.Text(t.Name), c.Got.Text(t.Name), c.Stated.Text(t.Name)
	switch {
	case !c.Oracle:
		return fmt.Sprintf("%q is stated %s, but is answered %s", op, stated, got)
	case c.Stated.Kind == reusecheck.Unstated:
		return fmt.Sprintf("%q diverges, which is not stated: the oracle says %s", op, got)
	}
	return fmt.Sprintf("%q is stated to be %s by the oracle, which says %s", op, stated, got)
}

func (r *replayer) summary(ctx context.Context) error {
	out := r.std.out
	if r.flags.json {
		out = r.std.errs
	}
	fmt.Fprintf(out, "%s of %s: %s, %s not as stated\n", count(r.runs, "run"), count(r.steps, "step"),
		count(r.divergence, "divergence"), count(r.mismatches, "answer"))
	switch {
	case r.mismatches > 0:
		return errFindings
	case ctx.Err() != nil:
		return context.Canceled
	case r.runs == 0 || r.runs == r.skipped:
		return &reusecheck.Unsupported{What: "these traces", Why: "none of them can run on the kernels asked for"}
	}
	return nil
}

// stepPrinter prints the steps of one run.
type stepPrinter interface {
	step(st *reusecheck.Step, o *spec.Observation, found []spec.Violation, c spec.Contradiction, bad bool) error
	end() error
}

type noSteps struct{}

func (noSteps) step(*reusecheck.Step, *spec.Observation, []spec.Violation, spec.Contradiction, bool) error {
	return nil
}
func (noSteps) end() error { return nil }

// textSteps prints a table.
type textSteps struct {
	trace *reusecheck.Trace
	w     io.Writer
	tab   *tabwriter.Writer
	notes []string
}

func newTextSteps(w io.Writer, t *reusecheck.Trace, kernel string) *textSteps {
	title := t.Title
	if title != "" {
		title = ": " + title
	}
	fmt.Fprintf(w, "%s on %s%s\n", t.File, kernel, title)
	s := &textSteps{trace: t, w: w, tab: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	fmt.Fprintf(s.tab, "  line\tstep\tresult\toracle\tpath\tvisited\tcache\n")
	return s
}

func (s *textSteps) step(st *reusecheck.Step, o *spec.Observation, found []spec.Violation, c spec.Contradiction, bad bool) error {
	mark := ""
	switch {
	case bad:
		mark = "\t<- not as stated"
	case !o.Verdict.Agrees:
		mark = "\t<- diverges, as stated"
	case o.Verdict.Open != "":
		mark = "\t(the oracle leaves it open)"
	}
	fmt.Fprintf(s.tab, "  %d\t%s\t%s\t%s\t%s\t%d\t%s%s\n", st.Line, st.Op.Text(s.trace.Name), o.Got.Text(s.trace.Name),
		o.Verdict.Want.Text(s.trace.Name), o.Got.Path, o.Got.Visited, cacheText(o.Got.After), mark)
	for _, v := range found {
		s.notes = append(s.notes, fmt.Sprintf("  line %d, %s: %s\n", st.Line, v.Property, spec.Sentence(o, v)))
	}
	return nil
}

func (s *textSteps) end() error {
	err := s.tab.Flush()
	for _, n := range s.notes {
		fmt.Fprint(s.w, n)
	}
	fmt.Fprintln(s.w)
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// jsonSteps prints one object a step.
type jsonSteps struct {
	w      io.Writer
	trace  *reusecheck.Trace
	kernel string
	named  bool
}

type jsonStep struct {
	File       string     `json:"file"`
	Line       int        `json:"line"`
	Op         string     `json:"op"`
	Result     string     `json:"result"`
	Oracle     string     `json:"oracle"`
	Path       string     `json:"path"`
	Visited    int        `json:"visited"`
	Cache      *jsonCache `json:"cache"`
	Kernel     string     `json:"kernel,omitempty"`
	Stated     string     `json:"stated,omitempty"`
	Open       string     `json:"open,omitempty"`
	Violations []string   `json:"violations,omitempty"`
}

type jsonCache struct {
	FastReuse     int8 `json:"fastreuse"`
	FastReusePort int8 `json:"fastreuseport"`
}

func (s *jsonSteps) step(st *reusecheck.Step, o *spec.Observation, found []spec.Violation, c spec.Contradiction, bad bool) error {
	j := jsonStep{
		File: s.trace.File, Line: st.Line, Op: st.Op.Text(s.trace.Name), Result: o.Got.Text(s.trace.Name),
		Oracle: o.Verdict.Want.Text(s.trace.Name), Path: o.Got.Path.String(), Visited: o.Got.Visited, Open: o.Verdict.Open,
	}
	if o.Got.HasCache && o.Got.After.Exists {
		j.Cache = &jsonCache{o.Got.After.FastReuse, o.Got.After.FastReusePort}
	}
	if s.named {
		j.Kernel = s.kernel
	}
	if bad {
		j.Stated = st.Text(s.trace.Name)[len(j.Op):]
		if j.Stated == "" {
			j.Stated = "no divergence"
		}
	}
	for _, v := range found {
		j.Violations = append(j.Violations, v.Property)
	}
	return writeJSON(s.w, j)
}

func (s *jsonSteps) end() error { return nil }
