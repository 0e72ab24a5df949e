package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/spec"
)

// verdicts writes the table of verdicts. With a file of rows it goes on where it
// was broken off.
func verdicts(cmd *cobra.Command, std streams, f *proveFlags) error {
	kernels := explore.VerdictKernels()
	if cmd.Flags().Changed("kernel") {
		kernels = strings.Split(f.kernel, ",")
	}
	var confirm explore.Confirm
	switch f.on {
	case onModel:
	case onLive:
		c, err := newConfirmer()
		if err != nil {
			return err
		}
		defer c.stacks.close()
		confirm = c.confirm(cmd.Context())
	default:
		return fmt.Errorf("--on is %q: give model or live", f.on)
	}
	rows, err := readRows(f.rows)
	if err == nil && f.rows != "" {
		err = mayWrite(f.rows)
	}
	if err != nil {
		return err
	}
	var chosen []explore.Row
	for _, k := range kernels {
		of := func(r explore.Row) bool { return r.Kernel == k }
		if !slices.ContainsFunc(rows, of) {
			start := time.Now()
			more, err := await(cmd.Context(), func() ([]explore.Row, error) { return explore.Rows(cmd.Context(), k, f.sockets) })
			if err != nil {
				return err
			}
			fmt.Fprintf(std.errs, "%s: %.0f s\n", k, time.Since(start).Seconds())
			if rows = append(rows, more...); f.rows != "" {
				if err := writeRows(f.rows, rows); err != nil {
					return err
				}
			}
		}
		for _, r := range rows {
			if of(r) {
				chosen = append(chosen, r)
			}
		}
	}
	if f.json {
		return writeJSON(std.out, chosen)
	}
	return explore.WriteVerdicts(std.out, chosen, confirm)
}

func readRows(path string) (rows []explore.Row, err error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		rows, err = explore.ReadRows(b)
	}
	if err != nil {
		return nil, fmt.Errorf("--rows %s: not what prove --table writes there (give a new file, or one of its own): %w", path, err)
	}
	return rows, nil
}

func writeRows(path string, rows []explore.Row) error {
	b, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return writeFile(path, append(b, '\n'))
}

// confirmer replays histories on the running kernel.
type confirmer struct {
	stacks  kernelStacks
	stack   reusecheck.Stack
	release string
}

func newConfirmer() (*confirmer, error) {
	running, err := live.RunningKernel()
	if err != nil {
		return nil, err
	}
	c := &confirmer{release: running.Version}
	if c.stack, err = c.stacks.watched(); err != nil {
		c.stacks.close()
		return nil, err
	}
	return c, nil
}

// confirm reports the running kernel where the last step of a history violates
// the property there too, with the answers that the history states.
func (c *confirmer) confirm(ctx context.Context) explore.Confirm {
	return func(t *reusecheck.Trace, property string) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		props, err := spec.TCP.Select(property)
		if err != nil {
			return "", err
		}
		shown, alike := false, true
		err = spec.NewMachine(spec.TCP, c.stack, props...).Replay(t, func(i int, o *spec.Observation, found []spec.Violation) bool {
			want := t.Steps[i].Want
			alike = alike && (want.Kind == reusecheck.Unstated || want == o.Got.Answer)
			shown = i == len(t.Steps)-1 && len(found) > 0
			return alike
		})
		lacks := (*reusecheck.Unsupported)(nil)
		if errors.As(err, &lacks) {
			return "", nil
		}
		if err != nil || !alike || !shown {
			return "", err
		}
		return c.release, nil
	}
}
