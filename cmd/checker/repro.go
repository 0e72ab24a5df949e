package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/repro"
	"github.com/reusecheck/reusecheck/spec"
)

type reproFlags struct {
	formats []string
	out     string
	kernel  string
	control string
	list    bool
}

func newRepro(std streams) *cobra.Command {
	var f reproFlags
	cmd := &cobra.Command{
		Use:   "repro FILE|-",
		Short: "write a trace as a program that shows it elsewhere",
		Long: `Repro writes a trace as a program: for a maintainer to run on a kernel, or for a
reviewer to put into the kernel's tree. The program's header says what it shows,
which kernels are affected, how to build and run it and what to expect.

` + formatHelp() + `
One format goes to standard output or to the file of --output, several go into
the directory of --output, each as FILE's name with the ending of the format. All
are put in place whole, or none: when one cannot be written, or a format has no
words for a step, which is then named.

What a step does not state is answered by a model: the newest kernel that the
trace's kernels header names. With --kernel that kernel's answers take the place
of all that are stated.

` + exitCodes,
		Example: `  checker repro --format c slip.trace
  checker repro --format c,selftest,python --output programs slip.trace
  checker repro --format selftest --control right.trace -o slip-selftest.c slip.trace
  checker shrink long.trace | checker repro --format python -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return noArguments(cmd, args)
			}
			if err := atLeastOne("the trace to write as a program: a file, or - for standard input")(cmd, args); err != nil {
				return err
			}
			return atMostOne(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return written(fmt.Fprint(std.out, formatHelp()))
			}
			return f.run(cmd.Context(), std, args[0])
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"trace"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	fs := cmd.Flags()
	fs.StringSliceVarP(&f.formats, "format", "f", nil, "formats to write, joined by commas")
	complete(cmd, "format", formatWords)
	fs.StringVarP(&f.out, "output", "o", "", "write to this file, or into this directory")
	fs.StringVar(&f.kernel, "kernel", "", "modelled kernel whose answers the program has (those that the trace states)")
	complete(cmd, "kernel", kernelWords)
	fs.StringVar(&f.control, "control", "", "trace of the same shape that does not diverge, which the format selftest has beside it")
	_ = cmd.MarkFlagFilename("control", "trace")
	fs.BoolVar(&f.list, "list", false, "only list the formats")
	return cmd
}

func formatHelp() string {
	var b strings.Builder
	b.WriteString("Formats:\n")
	for _, f := range repro.Formats() {
		writeItem(&b, f.Name, f.Doc)
	}
	return b.String()
}

func formatWords(string) []string {
	var s []string
	for _, f := range repro.Formats() {
		s = append(s, f.Name+"\t"+f.Doc)
	}
	return s
}

// pickFormats are the formats of these names, each once.
func pickFormats(names []string) ([]repro.Format, error) {
	var picked []repro.Format
	seen := map[string]bool{}
	for _, name := range names {
		found := false
		for _, f := range repro.Formats() {
			if f.Name == name && !seen[name] {
				picked = append(picked, f)
			}
			found = found || f.Name == name
		}
		if !found {
			return nil, &repro.UnknownFormat{Name: name}
		}
		seen[name] = true
	}
	return picked, nil
}

func (f *reproFlags) run(ctx context.Context, std streams, path string) error {
	formats, err := pickFormats(f.formats)
	switch {
	case err != nil:
		return fmt.Errorf("--format: %w", err)
	case len(formats) == 0:
		return errors.New("--format is missing: give one or several of those that checker repro --list tells of")
	case len(formats) > 1 && f.out == "":
		return errors.New("several formats are several files: give the directory to write them into with --output")
	}
	if f.control != "" && !slices.Contains(f.formats, repro.WithControl) {
		return fmt.Errorf("--control stands beside the finding in the format %s, which is not asked for", repro.WithControl)
	}
	if f.kernel != "" {
		if _, err := model.Parse(f.kernel); err != nil {
			return err
		}
	}
	t, err := readTrace(ctx, path, std.in)
	if err != nil {
		return err
	}
	named := path
	if path == "-" {
		named = ""
	}
	told, info, err := retell(t, f.kernel, std)
	if err != nil {
		return err
	}
	if f.control != "" {
		if info.Control, err = f.beside(ctx, std, t); err != nil {
			return err
		}
	}
	info.Name = programName(named)
	return f.write(std, told, info, formats)
}

// beside reads the control, answered as the finding is. One that diverges, or is
// for another system, would show nothing about the finding.
func (f *reproFlags) beside(ctx context.Context, std streams, finding *reusecheck.Trace) (*reusecheck.Trace, error) {
	t, err := readTrace(ctx, f.control, std.in)
	if err != nil {
		return nil, err
	}
	of, err := spec.SystemOf(finding)
	if err != nil {
		return nil, err
	}
	switch its, err := spec.SystemOf(t); {
	case err != nil:
		return nil, err
	case its != of:
		return nil, fmt.Errorf("--control: %s is a trace of system %s, %s is one of %s", t.File, its.Name, finding.File, of.Name)
	}
	told, _, err := retell(t, f.kernel, std)
	if err != nil {
		return nil, err
	}
	for i := range told.Steps {
		if s := &told.Steps[i]; s.Oracle.Kind != reusecheck.Unstated {
			return nil, fmt.Errorf("--control: %s:%d: %q diverges from the oracle: a control does not", t.File, s.Line, s.Text(told.Name))
		}
	}
	return told, nil
}

// programName is what the programs of a trace's file are called.
func programName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if path == "" || name == "" || name == "." {
		return "repro"
	}
	return name
}

// write makes all programs before it writes the first.
func (f *reproFlags) write(std streams, t *reusecheck.Trace, info repro.Info, formats []repro.Format) error {
	into, err := f.directory(len(formats))
	if err != nil {
		return err
	}
	var files []string
	var texts [][]byte
	for _, format := range formats {
		file := filepath.Join(f.out, info.Name+format.Ext)
		if !into {
			file = f.out
		}
		if file != "" {
			info.File = filepath.Base(file)
		}
		text, err := repro.Generate(t, format.Name, info)
		if err != nil {
			return inexpressible(t, err)
		}
		files, texts = append(files, file), append(texts, text)
	}
	if into {
		if err := makeDirectory(f.out); err != nil {
			return err
		}
	}
	if files[0] == "" { // the only one
		return written(std.out.Write(texts[0]))
	}
	return writeFiles(files, texts)
}

// directory reports whether the output is a directory, one that is there or one
// that several formats need.
func (f *reproFlags) directory(formats int) (bool, error) {
	st, err := os.Stat(f.out)
	switch {
	case f.out == "":
		return false, nil
	case err == nil && !st.IsDir() && formats > 1:
		return false, fmt.Errorf("%s is a file: several formats need a directory", f.out)
	}
	return formats > 1 || err == nil && st.IsDir() || os.IsPathSeparator(f.out[len(f.out)-1]), nil
}

// inexpressible says where the step stands that a format has no words for.
func inexpressible(t *reusecheck.Trace, err error) error {
	if no := (*repro.Inexpressible)(nil); errors.As(err, &no) {
		return &inexpressibleError{t.File, no}
	}
	return err
}

type inexpressibleError struct {
	file string
	step *repro.Inexpressible
}

func (e *inexpressibleError) Error() string {
	where := e.file
	if e.step.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.file, e.step.Line)
	}
	return fmt.Sprintf("%s: the format %s cannot express %q: %s", where, e.step.Format, e.step.Step, e.step.Why)
}
