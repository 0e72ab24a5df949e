package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
)

// guestFlags say which kernel to boot instead of using the running one.
type guestFlags struct {
	image   string
	modules string
	timeout time.Duration
}

func (g *guestFlags) addTo(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&g.image, "image", "", "kernel image to boot in QEMU, such as a bzImage or /boot/vmlinuz-*")
	fs.StringVar(&g.modules, "modules", "", "directory of the image's modules (found beside the image or in /lib/modules)")
	fs.DurationVar(&g.timeout, "boot-timeout", live.DefaultBootTimeout, "time limit for a run in QEMU")
	_ = cmd.MarkFlagFilename("image")
	_ = cmd.MarkFlagDirname("modules")
	cmd.PreRunE = func(*cobra.Command, []string) error { return g.verify(fs) }
}

// verify refuses what says something of a guest when there is none.
func (g *guestFlags) verify(fs *pflag.FlagSet) error {
	for _, name := range []string{"modules", "boot-timeout"} {
		if g.image == "" && fs.Changed(name) {
			return fmt.Errorf("--%s is about a kernel in QEMU: give its --image", name)
		}
	}
	if g.timeout <= 0 {
		return fmt.Errorf("--boot-timeout is %v: give a positive time such as 5m", g.timeout)
	}
	return nil
}

// words are the flags that boot the same kernel again.
func (g *guestFlags) words() string {
	s := " --image " + shellWord(g.image)
	if g.modules != "" {
		s += " --modules " + shellWord(g.modules)
	}
	return s
}

// guestMain runs the command line that the host gave, when this is the guest.
func guestMain(args []string, out io.Writer) int {
	// The guest's standard error is the console that the host reads lines from:
	// nothing may take it for a person's terminal and draw on it.
	return run(context.Background(), args, streams{strings.NewReader(""), out, struct{ io.Writer }{os.Stderr}})
}

// boot runs a command line in the guest. Every object that it prints goes to
// object; the exit code is the guest's.
func (g *guestFlags) boot(ctx context.Context, std streams, args []string, files map[string][]byte, object func([]byte) error) (int, error) {
	if _, err := live.ImageVersion(g.image); err != nil {
		return exitUsage, err // before anything is built
	}
	init, done, err := guestInit(ctx)
	if err != nil {
		return exitImpossible, err
	}
	defer done()
	var failed error
	var said []string // by the guest on its standard error
	result, err := live.Boot(ctx, live.BootOptions{
		Image: g.image, Modules: g.modules, Init: init, Args: args, Files: files, Timeout: g.timeout,
		Object: func(b []byte) {
			if err := object(b); err != nil && failed == nil {
				failed = err
			}
		},
		Progress: func(text string) {
			if isTerminal(std.errs) {
				fmt.Fprintln(std.errs, text)
			}
		},
		Console: func(line []byte) {
			if s, ok := strings.CutPrefix(string(line), "checker: "); ok || len(said) > 0 && !strings.HasPrefix(s, "{") {
				said = append(said, strings.TrimRight(s, "\r"))
			}
		},
	})
	if err == nil {
		err = failed
	}
	booted, lacks := (*live.BootError)(nil), (*reusecheck.Unsupported)(nil)
	switch {
	case errors.As(err, &booted), errors.As(err, &lacks):
		return exitImpossible, err
	case err != nil:
		return exitUsage, err // the image, the modules or this program are not fit for it
	}
	for _, m := range result.Missing {
		fmt.Fprintf(std.errs, "skipped in the guest: %s\n", m)
	}
	for _, w := range result.Warnings {
		fmt.Fprintf(std.errs, "the guest's kernel complained: %s\n", w)
	}
	fmt.Fprintf(std.errs, "%v: up in %.1f s, %.1f s in all with %s\n", result.Kernel, result.Up.Seconds(), result.Elapsed.Seconds(), result.Accelerator)
	if result.Exit > exitFindings {
		return result.Exit, fmt.Errorf("in the guest: %s", strings.TrimSpace(strings.Join(said, "\n")))
	}
	return result.Exit, nil
}

// each reads every object that a guest prints, and hands it on.
func each[T any](take func(T) error) func([]byte) error {
	return func(object []byte) error {
		var v T
		if err := json.Unmarshal(object, &v); err != nil {
			return fmt.Errorf("the guest says what cannot be read: %w", err)
		}
		return take(v)
	}
}

// guestError carries the guest's exit code to the end of this program.
type guestError struct {
	code int
	err  error
}

func (e *guestError) Error() string { return e.err.Error() }
func (e *guestError) Unwrap() error { return e.err }

// inGuest runs the same command inside the image's kernel and tells what it says.
func (f *liveFlags) inGuest(cmd *cobra.Command, std streams) error {
	if err := f.budget.verify(cmd); err != nil {
		return err
	}
	r := &reporter{std: std, json: f.json, dir: f.dir}
	if err := f.programFlags.into(r); err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	args := append([]string{"live", "--json"}, given(cmd, "image", "modules", "boot-timeout", "json", "out", "repro")...)
	code, err := f.boot(cmd.Context(), std, args, nil, each(func(v struct {
		finding
		jsonSummary
	}) error {
		if v.Finding == 0 {
			v.Summary.Again += f.guestFlags.words()
			r.close(v.Summary)
			return nil
		}
		return r.add(v.finding)
	}))
	return guestEnding(cmd.Context(), code, err)
}

// inGuest replays the traces inside the image's kernel and tells what it says.
func (f *replayFlags) inGuest(cmd *cobra.Command, std streams, args []string) error {
	traces, err := readTraces(cmd.Context(), args, std.in)
	if err != nil {
		return err
	}
	inside, files := []string{"replay", "--json", "--on=" + onLive}, map[string][]byte{}
	outside := map[string]*reusecheck.Trace{}
	for i, t := range traces {
		name := fmt.Sprintf("/traces/%d.trace", i+1)
		files[name], outside[name] = []byte(t.String()), t
		inside = append(inside, name)
	}
	r := newReplayReport(std, f)
	code, err := f.boot(cmd.Context(), std, inside, files, each(func(v struct {
		stepReport
		Skipped string `json:"skipped"`
	}) error {
		t := outside[v.File]
		if t == nil {
			return fmt.Errorf("the guest speaks of a trace that it was not given: %s", v.File)
		}
		v.File = t.File
		if v.Skipped != "" {
			return r.skip(t, v.Kernel, v.Skipped)
		}
		return r.add(t, v.stepReport)
	}))
	if err != nil {
		return guestEnding(cmd.Context(), code, err)
	}
	r.others = len(traces) - r.runs
	return r.ending(cmd.Context())
}

func guestEnding(ctx context.Context, code int, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return &guestError{code, err}
	case code == exitFindings:
		return errFindings
	}
	return nil
}

// given are the flags that the person gave, but for some.
func given(cmd *cobra.Command, but ...string) []string {
	var args []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, b := range but {
			if f.Name == b {
				return
			}
		}
		value := f.Value.String()
		if s, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	return args
}
