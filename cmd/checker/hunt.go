package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// hunt is a search whose failures are shrunk and told.
type hunt struct {
	cmd     *cobra.Command
	budget  *budget
	report  *reporter
	system  *spec.System
	stack   func() (reusecheck.Stack, error)
	props   []*spec.Property
	world   *spec.World
	kernel  string               // as it is named to the person
	kernels reusecheck.KernelSet // as the traces name it
	words   string               // the command line, but for the budget
}

// run searches and tells what it finds, and then what it did.
func (h *hunt) run(ctx context.Context) error {
	limited, stop := h.budget.within(ctx)
	defer stop()
	h.report.told = nil // what is a variant of what, each system tells anew
	h.report.meter = newMeter(h.report.std.errs, "histories", h.budget.checks)
	search := &spec.Search{
		System: h.system, Stack: h.stack, World: h.world, Properties: h.props,
		Seed: h.budget.seed, Checks: h.budget.checks, Steps: h.budget.length(h.cmd), Workers: h.budget.workers,
		Progress: func(s spec.Stats) { h.report.meter.set(s.Histories) },
	}
	finder := &shrink.Finder{System: h.system, Stack: h.stack, Kernels: h.kernels}
	start, before := time.Now(), h.report.n
	var failed error
	stats, err := shrink.Hunt(limited, search, finder, func(n *shrink.Finding) bool {
		source := fmt.Sprintf("%s --seed %d, history %d", h.words, h.budget.seed, n.History+1)
		failed = h.report.add(found(n, h.kernel, source))
		return failed == nil
	})
	h.report.meter.clear()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if what := slices.Sorted(maps.Keys(stats.Skipped)); stats.Steps == 0 && len(what) > 0 {
		return &reusecheck.Unsupported{What: what[0], Why: "no history gets past its first step"}
	}
	h.report.played += stats.Histories
	h.report.limit = h.budget.limit
	h.summary(stats, h.report.n-before, time.Since(start))
	return nil
}

// ending is the error of a command that has told all it found.
func (r *reporter) ending(ctx context.Context) error {
	switch {
	case r.n > 0:
		return errFindings
	case ctx.Err() != nil:
		return context.Canceled
	case r.limit > 0 && r.played == 0:
		return fmt.Errorf("--time %v was over before one history was played: give it more", r.limit)
	}
	return nil
}

type summary struct {
	Kernel    string         `json:"kernel"`
	System    string         `json:"system"`
	Seed      uint64         `json:"seed"`
	Histories int            `json:"histories"`
	Steps     int            `json:"steps"`
	Granted   int            `json:"granted"`
	Verbs     map[string]int `json:"verbs"`
	Uncounted int            `json:"uncounted,omitempty"`
	Skipped   map[string]int `json:"skipped,omitempty"`
	Findings  int            `json:"findings"`
	Again     string         `json:"again"`
}

type jsonSummary struct {
	Summary summary `json:"summary"`
}

func (h *hunt) summary(s spec.Stats, findings int, took time.Duration) {
	sum := summary{
		Kernel: h.kernel, System: string(h.system.Name), Seed: h.budget.seed, Histories: s.Histories, Steps: s.Steps, Granted: s.Granted,
		Verbs: map[string]int{}, Uncounted: s.Uncounted, Skipped: s.Skipped, Findings: findings,
		Again: h.words + h.budget.words(h.cmd, s.Histories),
	}
	for _, v := range reusecheck.Verbs() {
		if n := s.Verbs[v]; n > 0 {
			sum.Verbs[v.String()] = n
		}
	}
	h.report.close(sum)
	fmt.Fprintf(h.report.std.errs, "%.1f s, %.0f steps/s with %s\n", took.Seconds(),
		float64(s.Steps)/max(took.Seconds(), 1e-9), count(h.budget.workers, "worker"))
}

// close tells what a search did.
func (r *reporter) close(s summary) {
	if r.json {
		_ = writeJSON(r.std.out, jsonSummary{s}) // a reader that is gone is seen at the end
		return
	}
	on := s.Kernel
	if s.System != string(spec.Default.Name) {
		on += ", " + s.System
	}
	fmt.Fprintf(r.std.out, "%s on %s: %d histories, %d steps, %d %% granted\n",
		count(s.Findings, "finding"), on, s.Histories, s.Steps, percent(s.Granted, s.Steps))
	var mix []string
	for _, v := range reusecheck.Verbs() {
		if n := s.Verbs[v.String()]; n > 0 {
			mix = append(mix, fmt.Sprintf("%s %.1f %%", v, 100*float64(n)/float64(s.Steps)))
		}
	}
	if len(mix) > 0 {
		fmt.Fprintf(r.std.out, "steps: %s\n", strings.Join(mix, ", "))
	}
	if s.Uncounted > 0 {
		fmt.Fprintf(r.std.out, "uncounted: %d of %s: their walks, or what they left, could not be seen\n", s.Uncounted, count(s.Verbs[reusecheck.VExit.String()], "exit"))
	}
	for _, what := range slices.Sorted(maps.Keys(s.Skipped)) {
		fmt.Fprintf(r.std.out, "skipped: %s ended early: %s cannot be tested here\n", count(s.Skipped[what], "history"), what)
	}
	fmt.Fprintf(r.std.out, "again: %s\n", s.Again)
}
