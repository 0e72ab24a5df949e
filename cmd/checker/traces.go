package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// readTraces reads the traces that the arguments name: files, directories with
// everything below them, or - for standard input. Nothing is run when one of
// them has an error.
func readTraces(ctx context.Context, args []string, in io.Reader) ([]*reusecheck.Trace, error) {
	var ts []*reusecheck.Trace
	for _, arg := range args {
		paths, err := tracePaths(ctx, arg)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			t, err := readTrace(ctx, p, in)
			if err != nil {
				return nil, err
			}
			ts = append(ts, t)
		}
	}
	return ts, nil
}

// readTrace reads one trace, and refuses one of which nothing would ever run.
func readTrace(ctx context.Context, path string, in io.Reader) (*reusecheck.Trace, error) {
	t, err := await(ctx, func() (*reusecheck.Trace, error) { return parseTrace(path, in) })
	if err != nil {
		return nil, err
	}
	if err := model.CheckNames(t.Kernels); err != nil {
		return nil, t.Placed(err)
	}
	if len(t.Steps) == 0 {
		return nil, fmt.Errorf("%s has no step: expected a trace, such as checker check prints", t.File)
	}
	return t, nil
}

// failedOn is the error of a trace that a kernel could not begin or go on with: with
// the place of a header that is at fault.
func failedOn(t *reusecheck.Trace, kernel string, err error) error {
	if at := (*reusecheck.ParseError)(nil); errors.As(t.Placed(err), &at) {
		return at
	}
	return fmt.Errorf("%s: on %s: %w", t.File, kernel, err)
}

func parseTrace(path string, in io.Reader) (*reusecheck.Trace, error) {
	if path != "-" {
		return reusecheck.ParseFile(path)
	}
	// One byte more than allowed tells a full input from one that is too long.
	text, err := io.ReadAll(io.LimitReader(in, int64(reusecheck.DefaultLimits.Bytes)+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return reusecheck.Parse("stdin", text)
}

func tracePaths(ctx context.Context, arg string) ([]string, error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	st, err := os.Stat(arg)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return []string{arg}, nil
	}
	var paths []string
	err = filepath.WalkDir(arg, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(p) == ".trace" {
			paths = append(paths, p)
		}
		if err == nil {
			err = ctx.Err() // the tree may be large
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no trace: expected a directory with .trace files below it", arg)
	}
	slices.Sort(paths)
	return paths, nil
}
