// Command checker holds the reuse semantics of sockets to an oracle that looks at
// every owner: it searches, replays, shrinks, lists what is modelled and measures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
)

// The exit codes, for every verb.
const (
	exitNothing     = 0
	exitFindings    = 1
	exitUsage       = 2
	exitImpossible  = 3
	exitInterrupted = 130
)

const exitCodes = `Exit codes: 0 nothing found, 1 findings, 2 bad usage or input, 3 not possible
here, 130 interrupted before anything was found.`

// errFindings ends a run that has printed what it found.
var errFindings = errors.New("there are findings")

// outputError is a failure to write what was asked for.
type outputError struct{ err error }

func (e *outputError) Error() string { return fmt.Sprintf("the output cannot be written: %v", e.err) }

func main() {
	live.GuestMain(guestMain) // the first process of a kernel in QEMU
	live.Serve()              // the helper that tests without privileges
	ctx, stop := signal.NotifyContext(context.Background(), endings(signal.Ignored(syscall.SIGHUP))...)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// endings are the signals that end a run with what it has. A terminal that is closed
// ends it too, if the run was not started to outlive it (nohup).
func endings(outlives bool) []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !outlives {
		s = append(s, syscall.SIGHUP)
	}
	return s
}

// streams are what a command reads and writes.
type streams struct {
	in        io.Reader
	out, errs io.Writer
}

// run carries out one command line and gives the exit code.
func run(ctx context.Context, args []string, std streams) int {
	out := &checkedWriter{w: std.out}
	std.out = out
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.errs)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, errFindings)) {
		err = &outputError{out.err} // what was found was not told
	}
	code := exitCode(ctx, err)
	if err != nil && code != exitFindings && code != exitInterrupted {
		fmt.Fprintf(std.errs, "checker: %v\n", err)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	lacks, unwritable := (*reusecheck.Unsupported)(nil), (*outputError)(nil)
	unavailable, guest := (*live.Unavailable)(nil), (*guestError)(nil)
	wordless, unprovable := (*inexpressibleError)(nil), (*unprovableError)(nil)
	switch {
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.As(err, &guest):
		return guest.code
	case err != nil && ctx.Err() != nil, errors.Is(err, context.Canceled):
		return exitInterrupted
	case err == nil:
		return exitNothing
	case errors.As(err, &lacks), errors.As(err, &unwritable), errors.As(err, &unavailable), errors.As(err, &wordless),
		errors.As(err, &unprovable):
		return exitImpossible
	}
	return exitUsage
}

// checkedWriter remembers the first error, so that a full disk is not silent.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.err = err
	return n, err
}

func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "checker",
		Short: "check the reuse semantics of sockets against an oracle that looks at every owner",
		Long: `Checker asks one question of a kernel's socket reuse: does the short cut give
the answer that looking at every owner would give? It searches modelled kernels
for histories in which it does not, shrinks them and says why.

` + exitCodes,
		Example: `  checker check                     search the default kernel
  checker replay corpus             run traces and compare with what they state
  checker kernels 6.18              what is modelled, change by change`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          aVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newCheck(std), newExplore(std), newProve(std), newReplay(std), newExplain(std), newShrink(std), newLive(std), newMatrix(std), newKernels(std), newBench(std))
	root.AddCommand(newRepro(std))
	root.InitDefaultCompletionCmd("completion")
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		// Else a shell that is not known would get a page of help, and exit code 0.
		completion.Args, completion.RunE = aVerb, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return root
}
