package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type checkFlags struct {
	budget
	kernel     string
	properties []string
	json       bool
	dir        string
	variants   bool
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
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, std, &f) },
	}
	addKernel(cmd, &f.kernel)
	addProperties(cmd, &f.properties)
	f.budget.addTo(cmd, spec.DefaultChecks, runtime.GOMAXPROCS(0))
	cmd.Flags().BoolVar(&f.variants, "variants", false, "print the variants of a finding in full too (--json and --out always do)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&f.dir, "out", "", "also write each finding as a .trace file into this directory")
	return cmd
}

func check(cmd *cobra.Command, std streams, f *checkFlags) error {
	if err := f.budget.verify(cmd); err != nil {
		return err
	}
	profile, err := model.ParseOf(spec.TCP.Name, f.kernel)
	if err != nil {
		return err
	}
	world, err := f.budget.world(spec.TCP)
	if err != nil {
		return err
	}
	props, err := spec.TCP.Select(f.properties...)
	if err != nil {
		return err
	}
	kernels, err := reusecheck.ParseKernels(f.kernel)
	if err != nil {
		return err
	}
	r := &reporter{std: std, json: f.json, dir: f.dir, brief: !f.variants}
	if err := r.prepare(); err != nil {
		return err
	}
	words := "checker check --kernel " + f.kernel
	if len(f.properties) > 0 {
		words += " --property " + joined(f.properties)
	}
	h := hunt{
		cmd: cmd, budget: &f.budget, report: r, system: spec.TCP, props: props, world: world,
		stack:  func() (reusecheck.Stack, error) { return profile.New(), nil },
		kernel: f.kernel, kernels: kernels, words: words,
	}
	if err := h.run(cmd.Context()); err != nil {
		return err
	}
	return r.ending(cmd.Context())
}
