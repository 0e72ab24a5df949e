package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type checkFlags struct {
	budget
	programFlags
	kernel     string
	systems    []string
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
trace that shows it, and why. It does so for one system after the other, tcp, udp
and timewait, as far as the kernel models them.

The same seed prints the same text, whatever the number of workers; how long it
took goes to standard error. With --time the budget is the clock's, so that the
closing line says which --checks gives the same again.

` + propertyHelp() + `
` + worldHelp() + `
` + exitCodes,
		Example: `  checker check
  checker check --kernel 6.18+first-bind-fix --property sound
  checker check --system udp --property lookup
  checker check --without set,dev,uid --time 1m
  checker check --kernel 6.1 --seed 7 --checks 1000000 --out findings --repro c,selftest`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, std, &f) },
	}
	addKernel(cmd, &f.kernel)
	addSystems(cmd, &f.systems)
	addProperties(cmd, &f.properties)
	f.budget.addTo(cmd, spec.DefaultChecks, runtime.GOMAXPROCS(0))
	cmd.Flags().BoolVar(&f.variants, "variants", false, "print the variants of a finding in full too (--json and --out always do)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&f.dir, "out", "", "also write each finding as a .trace file into this directory")
	f.programFlags.addTo(cmd)
	return cmd
}

func check(cmd *cobra.Command, std streams, f *checkFlags) error {
	if err := f.budget.verify(cmd); err != nil {
		return err
	}
	profile, err := model.Parse(f.kernel)
	if err != nil {
		return err
	}
	systems, err := f.systemsOf(profile)
	if err != nil {
		return err
	}
	kernels, err := reusecheck.ParseKernels(f.kernel)
	if err != nil {
		return err
	}
	r := &reporter{std: std, json: f.json, dir: f.dir, brief: !f.variants}
	if err := f.programFlags.into(r); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	f.budget.parts = len(systems)
	for _, sys := range systems {
		if err := f.hunt(cmd, r, profile, sys, kernels); err != nil {
			return err
		}
		if cmd.Context().Err() != nil {
			break
		}
	}
	return r.ending(cmd.Context())
}

// systemsOf are the systems to check: those that were named, or all that the
// kernel models and that have the properties.
func (f *checkFlags) systemsOf(profile *model.Profile) ([]*spec.System, error) {
	all, err := spec.SelectSystems(f.systems...)
	if err != nil {
		return nil, err
	}
	var fit []*spec.System
	var first error
	for _, sys := range all {
		_, err := profile.Stack(sys.Name)
		if err == nil {
			_, err = sys.Select(f.properties...)
		}
		switch {
		case err == nil:
			fit = append(fit, sys)
		case first == nil || len(f.systems) > 0:
			first = err
		}
	}
	if len(fit) == 0 || len(f.systems) > 0 && len(fit) < len(all) {
		return nil, first
	}
	return fit, nil
}

// hunt searches one system.
func (f *checkFlags) hunt(cmd *cobra.Command, r *reporter, profile *model.Profile, sys *spec.System, kernels reusecheck.KernelSet) error {
	world, err := f.budget.world(sys)
	if err != nil {
		return err
	}
	props, err := sys.Select(f.properties...)
	if err != nil {
		return err
	}
	words := fmt.Sprintf("checker check --kernel %s --system %s", f.kernel, sys.Name)
	if len(f.properties) > 0 {
		words += " --property " + joined(f.properties)
	}
	h := hunt{
		cmd: cmd, budget: &f.budget, report: r, system: sys, props: props, world: world,
		stack:  func() (reusecheck.Stack, error) { return profile.Stack(sys.Name) },
		kernel: f.kernel, kernels: kernels, words: words,
	}
	return h.run(cmd.Context())
}
