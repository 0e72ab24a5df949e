package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

type shrinkFlags struct {
	kernel     string
	properties []string
	file       string
}

func newShrink(std streams) *cobra.Command {
	var f shrinkFlags
	cmd := &cobra.Command{
		Use:   "shrink FILE|-",
		Short: "take a trace down to the smallest one that shows the same violation",
		Long: `Shrink runs a trace, takes its violation (the first that leaves the stack other
than the oracle allows, else the first of any property), and prints the smallest
trace that still shows it: no step, option or socket can be dropped and no value
made simpler. Standard error says what is wrong and which candidates were tried.

It exits 0 with the trace, 2 when the trace shows nothing to shrink.`,
		Example: `  checker shrink long.trace
  checker shrink --kernel 6.18+first-bind-fix --property sound -o small.trace long.trace`,
		Args: oneTrace("the trace to shrink: a file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error { return shrinkTrace(cmd, std, f, args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"trace"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	addKernel(cmd, &f.kernel)
	addProperties(cmd, &f.properties)
	cmd.Flags().StringVarP(&f.file, "output", "o", "", "write the trace to this file")
	return cmd
}

func shrinkTrace(cmd *cobra.Command, std streams, f shrinkFlags, path string) error {
	if _, err := model.Parse(f.kernel); err != nil {
		return err
	}
	t, err := readTrace(cmd.Context(), path, std.in)
	if err != nil {
		return err
	}
	sys, err := spec.SystemOf(t)
	if err != nil {
		return err
	}
	profile, err := model.ParseOf(sys.Name, f.kernel)
	if err != nil {
		return err
	}
	props, err := sys.Select(f.properties...)
	if err != nil {
		return err
	}
	kernels, err := reusecheck.ParseKernels(f.kernel)
	if err != nil {
		return err
	}
	finder := &shrink.Finder{
		System: sys, Kernels: kernels,
		Stack: func() (reusecheck.Stack, error) { return profile.Stack(sys.Name) },
	}
	n, err := finder.FromTrace(cmd.Context(), t, props)
	if err != nil {
		return failedOn(t, f.kernel, err)
	}
	fmt.Fprintf(std.errs, "%s\n%s\n%s\n", n.Title(), n.Sentence, n.Report)
	if n.CrossesUsers {
		fmt.Fprintln(std.errs, securityNote)
	}
	if f.file != "" {
		if err := writeFile(f.file, []byte(n.Trace.String())); err != nil {
			return err
		}
	} else {
		fmt.Fprint(std.out, n.Trace)
	}
	return cmd.Context().Err() // interrupted: what was reached is printed
}
