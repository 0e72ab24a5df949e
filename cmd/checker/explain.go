package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explain"
	"github.com/reusecheck/reusecheck/model"
)

type explainFlags struct {
	kernel  string
	sockets string
	brief   bool
	steps   []int
	json    bool
}

func newExplain(std streams) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE|- | --sockets TEXT",
		Short: "tell why each step of a trace is answered as it is, and what would make a refused one succeed",
		Long: `Explain replays a trace on a modelled kernel and tells its story, a paragraph a
step: who holds the port, which owners were looked at or skipped and by which
cache, which one decided and by which rule, and what the oracle says. The last
refused step comes first, with the smallest changes that make it succeed. They
are found by search and each is replayed: earlier steps keep their answers and
the oracle agrees.

Without a trace, --sockets takes the sockets in the order in which they are made:

  FAMILY [ADDR:PORT] [OPTION...] [listen] [connect ADDR:PORT]; ...

FAMILY is tcp4, tcp6, udp4 or udp6, an OPTION is reuseaddr, reuseport, v6only,
no-port, uid=N, dev=NAME or range=LO-HI. The sockets are called a, b, c...; steps
of the trace language can stand between them: close a, set a reuseport=on.
An address that the model's host does not have is replaced by one that it has.

Without --kernel it is the newest modelled kernel that the trace's kernels header
names. The exit code is 0 whether steps are refused or not, 2 for bad input, 3 for
what is not modelled.`,
		Example: `  checker explain slip.trace
  checker explain --brief --kernel 6.1 slip.trace
  checker explain --sockets "tcp4 0.0.0.0:80 reuseaddr listen; tcp4 127.0.0.1:80 reuseaddr"
  checker explain --sockets "udp4 0.0.0.0:53; udp4 127.0.0.1:53; send 127.0.0.1:9 -> 127.0.0.1:53"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, std, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"trace"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	addKernel(cmd, &f.kernel)
	cmd.Flags().StringVar(&f.sockets, "sockets", "", "sockets to make in this order, instead of a trace")
	cmd.Flags().BoolVarP(&f.brief, "brief", "b", false, "tell only the steps that are refused or answered wrong")
	cmd.Flags().IntSliceVar(&f.steps, "step", nil, "tell only these steps, by number, joined by commas")
	apart(cmd, "brief", "step", "each of them says which steps are told")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object a step")
	return cmd
}

func (f *explainFlags) run(cmd *cobra.Command, std streams, args []string) error {
	t, notes, err := f.trace(cmd, std, args)
	if err != nil {
		return err
	}
	k, err := f.profile(cmd, t)
	if err != nil {
		return err
	}
	for _, n := range f.steps {
		if n < 1 || n > len(t.Steps) {
			return fmt.Errorf("--step is %d: %s has steps 1 to %d", n, t.File, len(t.Steps))
		}
	}
	s, err := explain.Tell(cmd.Context(), t, k)
	if err != nil {
		return err
	}
	if f.json {
		for i := range s.Steps {
			if st := &s.Steps[i]; f.tells(st) {
				if err := writeJSON(std.out, st); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, n := range notes {
		fmt.Fprintln(std.out, n)
	}
	keep := f.tells
	if !f.brief && len(f.steps) == 0 {
		keep = nil
	}
	if err := s.Write(std.out, keep); err != nil {
		return &outputError{err}
	}
	if f.sockets != "" && keep == nil {
		fmt.Fprintf(std.out, "\nAs a trace, for checker replay:\n\n")
		indent(std.out, s.Stated().String())
	}
	return nil
}

// tells reports whether a step is to be told of.
func (f *explainFlags) tells(st *explain.Step) bool {
	return (!f.brief || explain.Notable(st)) && (len(f.steps) == 0 || slices.Contains(f.steps, st.Number))
}

// trace is what is explained, with notes on what stands for what.
func (f *explainFlags) trace(cmd *cobra.Command, std streams, args []string) (*reusecheck.Trace, []string, error) {
	switch given := cmd.Flags().Changed("sockets"); {
	case given && len(args) > 0:
		return nil, nil, fmt.Errorf("--sockets stands for a trace, but %q is given too", args[0])
	case given:
		return explain.Sockets(f.sockets)
	case len(args) == 0:
		return nil, nil, fmt.Errorf("%s needs the trace to explain: a file, - for standard input, or --sockets; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	case len(args) > 1:
		return nil, nil, fmt.Errorf("%s takes one trace, but %q is given too", cmd.CommandPath(), args[1])
	}
	t, err := readTrace(cmd.Context(), args[0], std.in)
	return t, nil, err
}

// profile is the kernel asked for, or the newest that the trace names.
func (f *explainFlags) profile(cmd *cobra.Command, t *reusecheck.Trace) (*model.Profile, error) {
	if !cmd.Flags().Changed("kernel") {
		named := model.NamedOf(t.Config.System, t.Kernels)
		for i := len(named) - 1; i >= 0; i-- {
			if named[i].String() == named[i].Generation.Name {
				return named[i], nil
			}
		}
		if len(named) > 0 {
			return named[len(named)-1], nil
		}
		if len(model.GenerationsOf(t.Config.System)) > 0 {
			return nil, errors.New(t.File + ": no modelled kernel is one of those that its header names: give --kernel")
		}
	}
	return model.ParseOf(t.Config.System, f.kernel)
}
