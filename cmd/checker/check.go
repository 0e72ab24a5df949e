package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// checkFlags are what a person may say of a search.
type checkFlags struct {
	kernel     string
	properties []string
	without    []string
	checks     int
	steps      int
	seed       uint64
	limit      time.Duration
	workers    int
	json       bool
	dir        string
}

func newCheck(std streams) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "search random histories of a modelled kernel for findings",
		Long: `Check plays random histories on a modelled kernel, holds every step to the
properties and prints each distinct finding once: the property, the smallest
trace that shows it, and why.

The same seed prints the same text, whatever the number of workers; how long it
took goes to standard error. With --time the budget is the clock's, so that the
closing line says which --checks gives the same again.

` + propertyHelp() + `
` + worldHelp() + `
` + exitCodes,
		Example: `  checker check
  checker check --kernel 6.18+first-bind-fix --property sound
  checker check --without set,dev,uid --time 1m
  checker check --kernel 6.1 --seed 7 --checks 1000000 --out findings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, std, f) },
	}
	fs := cmd.Flags()
	addKernel(cmd, &f.kernel)
	addProperties(cmd, &f.properties)
	fs.StringSliceVar(&f.without, "without", nil, "take these parts out of the world, joined by commas")
	fs.IntVar(&f.checks, "checks", spec.DefaultChecks, "histories to try")
	fs.IntVar(&f.steps, "steps", spec.DefaultSteps, "steps in each history, socket lines included")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of the random choices")
	fs.DurationVar(&f.limit, "time", 0, "stop after this time, such as 30s; without --checks there is no other end")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "histories played at the same time")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a line")
	fs.StringVar(&f.dir, "out", "", "also write each finding as a .trace file into this directory")
	complete(cmd, "without", worldWords)
	return cmd
}

func (f *checkFlags) verify(cmd *cobra.Command) error {
	if f.limit != 0 && !cmd.Flags().Changed("checks") {
		f.checks = 0
	}
	const most = 1 << 40
	switch {
	case f.limit < 0:
		return fmt.Errorf("--time is %v: give a positive time such as 30s", f.limit)
	case cmd.Flags().Changed("checks") && (f.checks < 1 || f.checks > most):
		return fmt.Errorf("--checks is %d: give a number from 1 to %d", f.checks, most)
	case f.steps < 1 || f.steps > 100_000:
		return fmt.Errorf("--steps is %d: give a number from 1 to 100000", f.steps)
	case f.workers < 1 || f.workers > 1024:
		return fmt.Errorf("--workers is %d: give a number from 1 to 1024", f.workers)
	}
	return nil
}

func check(cmd *cobra.Command, std streams, f checkFlags) error {
	if err := f.verify(cmd); err != nil {
		return err
	}
	profile, err := model.Parse(f.kernel)
	if err != nil {
		return err
	}
	sys, world := spec.TCP, spec.TCP.World()
	if err := world.Without(f.without...); err != nil {
		return err
	}
	props, err := sys.Select(f.properties...)
	if err != nil {
		return err
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0o755); err != nil {
			return fmt.Errorf("cannot make the directory for findings: %w", err)
		}
	}
	kernels, err := reusecheck.ParseKernels(f.kernel)
	if err != nil {
		return err
	}
	stack := func() (reusecheck.Stack, error) { return profile.New(), nil }
	meter := newMeter(std.errs, "histories", f.checks)
	search := spec.Search{
		System: sys, Stack: stack, World: world, Properties: props,
		Seed: f.seed, Checks: f.checks, Steps: f.steps, Workers: f.workers, PerFinding: perFinding,
		Progress: func(s spec.Stats) { meter.set(s.Histories) },
	}
	finder := &shrink.Finder{System: sys, Stack: stack, Kernels: kernels, Retries: retries}
	p := &findingPrinter{std: std, flags: f, cmd: cmd, meter: meter}
	return p.run(cmd.Context(), &search, finder)
}

// How many failures of one kind are kept, and how many that a known finding
// explains are shrunk all the same in case another hides behind it.
const (
	perFinding = 3
	retries    = 1
)

// findingPrinter streams what a search finds.
type findingPrinter struct {
	std   streams
	flags checkFlags
	cmd   *cobra.Command
	meter *meter
	names shrink.Names
	n     int
}

func (p *findingPrinter) run(ctx context.Context, search *spec.Search, finder *shrink.Finder) error {
	if p.flags.limit > 0 {
		limited, stop := context.WithTimeout(ctx, p.flags.limit)
		defer stop()
		ctx = limited
	}
	start := time.Now()
	var failed error
	stats, err := search.Run(ctx, func(fail spec.Failure) bool {
		n, err := finder.Find(ctx, fail)
		if err == nil && n != nil {
			err = p.print(n)
		}
		failed = err
		return err == nil && ctx.Err() == nil
	})
	p.meter.clear()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	p.summary(stats, time.Since(start))
	switch {
	case p.n > 0:
		return errFindings
	case p.cmd.Context().Err() != nil:
		return context.Canceled
	}
	return nil
}

// jsonFinding is a finding as one line of JSON.
type jsonFinding struct {
	Finding      int    `json:"finding"`
	Name         string `json:"name"`
	Kernel       string `json:"kernel"`
	Property     string `json:"property"`
	Kind         string `json:"kind"`
	Causes       string `json:"causes,omitempty"`
	Sentence     string `json:"sentence"`
	CrossesUsers bool   `json:"crosses_users"`
	Minimal      bool   `json:"minimal"`
	History      int    `json:"history"`
	Trace        string `json:"trace"`
	File         string `json:"file,omitempty"`
}

const securityNote = "crosses users: report to the kernel's security contact (security@kernel.org) before you publish it"

func (p *findingPrinter) print(n *shrink.Finding) error {
	p.meter.clear()
	p.n++
	name := p.names.Of(n)
	t := *n.Trace // the finder compares its own with those to come
	t.Title = n.Title()
	t.Source = fmt.Sprintf("checker check --kernel %s --seed %d, history %d", p.flags.kernel, p.flags.seed, n.History+1)
	file := ""
	if p.flags.dir != "" {
		file = filepath.Join(p.flags.dir, name+".trace")
		if err := writeFile(file, []byte(t.String())); err != nil {
			return err
		}
	}
	if p.flags.json {
		return writeJSON(p.std.out, jsonFinding{
			Finding: p.n, Name: name, Kernel: p.flags.kernel, Property: n.Violation.Property,
			Kind: n.Violation.Kind, Causes: n.Violation.Tags.Causes(), Sentence: n.Sentence,
			CrossesUsers: n.CrossesUsers, Minimal: n.Report.Minimal, History: n.History + 1,
			Trace: t.String(), File: file,
		})
	}
	out := p.std.out
	fmt.Fprintf(out, "%d. %s\n\n", p.n, t.Title)
	indent(out, n.Trace.String())
	fmt.Fprintf(out, "\n   %s\n", n.Sentence)
	if n.CrossesUsers {
		fmt.Fprintf(out, "   %s\n", securityNote)
	}
	if !n.Report.Minimal {
		fmt.Fprintf(out, "   this trace may not be the smallest: %s\n", whyNotMinimal(n))
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return &outputError{err}
	}
	return nil
}

func whyNotMinimal(n *shrink.Finding) string {
	if n.Report.Stopped != nil {
		return "shrinking was interrupted"
	}
	return "it depends on a choice that the trace states"
}

type jsonSummary struct {
	Summary struct {
		Kernel    string `json:"kernel"`
		Seed      uint64 `json:"seed"`
		Histories int    `json:"histories"`
		Steps     int    `json:"steps"`
		Granted   int    `json:"granted"`
		Findings  int    `json:"findings"`
		Again     string `json:"again"`
	} `json:"summary"`
}

func (p *findingPrinter) summary(s spec.Stats, took time.Duration) {
	again := p.again(s.Histories)
	if p.flags.json {
		var j jsonSummary
		j.Summary.Kernel, j.Summary.Seed, j.Summary.Again = p.flags.kernel, p.flags.seed, again
		j.Summary.Histories, j.Summary.Steps, j.Summary.Granted, j.Summary.Findings = s.Histories, s.Steps, s.Granted, p.n
		_ = writeJSON(p.std.out, j)
	} else {
		fmt.Fprintf(p.std.out, "%s on %s: %d histories, %d steps, %d %% granted\nagain: %s\n",
			count(p.n, "finding"), p.flags.kernel, s.Histories, s.Steps, percent(s.Granted, s.Steps), again)
	}
	fmt.Fprintf(p.std.errs, "%.1f s, %.0f steps/s with %s\n", took.Seconds(),
		float64(s.Steps)/max(took.Seconds(), 1e-9), count(p.flags.workers, "worker"))
}

// again is the command line that prints the same findings.
func (p *findingPrinter) again(histories int) string {
	s := fmt.Sprintf("checker check --kernel %s --seed %d --checks %d", p.flags.kernel, p.flags.seed, max(1, histories))
	if p.cmd.Flags().Changed("steps") {
		s += fmt.Sprintf(" --steps %d", p.flags.steps)
	}
	if len(p.flags.properties) > 0 {
		s += " --property " + joined(p.flags.properties)
	}
	if len(p.flags.without) > 0 {
		s += " --without " + joined(p.flags.without)
	}
	return s
}
