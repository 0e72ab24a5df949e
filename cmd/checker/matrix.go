package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/matrix"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type matrixFlags struct {
	guestFlags
	kernels []string
	rows    string
	format  string
	on      string
	out     string
}

type matrixFormat struct {
	name  string
	write func(*matrix.Matrix, io.Writer) error
}

// matrixFormats are what a matrix can be printed as. The last is for a guest,
// whose console takes short lines only.
var matrixFormats = []matrixFormat{
	{"text", (*matrix.Matrix).WriteText},
	{"markdown", (*matrix.Matrix).WriteMarkdown},
	{"html", (*matrix.Matrix).WriteHTML},
	{"json", (*matrix.Matrix).WriteJSON},
	{guestParts, (*matrix.Matrix).WriteParts},
}

const guestParts = "parts"

func newMatrix(std streams) *cobra.Command {
	var f matrixFlags
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "show for every pair of socket kinds who may share a port",
		Long: `Matrix asks of every pair of socket kinds: when the first has the port, may the
second bind to it, may it listen then, and did the cache or a look at the owners
answer. Each cell is a trace of its own. With several kernels it shows where they
differ, in answer or path.

With --on live the running kernel fills it, and with --image one that QEMU boots.
It is held to its model (--kernel, else picked from the release) cell by cell, its
caches too where it lets them be read.

Rows are kinds, separated by semicolons, or names of sets:

  FAMILY ADDR [v6only] [reuseaddr] [reuseport] [uid=N] [dev=DEV] [listen]

` + matrixSetHelp() + `
The page that --format html makes needs nothing but itself. Its cells open by a
click, by the enter key, and by a fragment: page.html#cell=ROW,COLUMN.

Exit codes: 0, 1 the running kernel is not as its model, 2 bad usage or input,
3 not possible here, 130 interrupted. A divergence from the oracle is marked; it
is no failure.`,
		Example: `  checker matrix
  checker matrix --kernel 6.18,6.18+first-bind-fix
  checker matrix --rows "tcp4 127.0.0.1 reuseaddr uid=1001 listen; tcp6 :: v6only"
  checker matrix --rows users --format html -o users.html
  checker matrix --on live`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, std) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kernels, "kernel", nil, "modelled kernels, joined by commas ("+defaultKernel+"; with --on live that of the release)")
	complete(cmd, "kernel", kernelWords)
	fs.StringVar(&f.rows, "rows", matrix.Default, "socket kinds and sets, separated by semicolons")
	complete(cmd, "rows", func(string) []string {
		var s []string
		for _, set := range matrix.Sets() {
			s = append(s, set.Name+"\t"+set.Doc)
		}
		return s
	})
	fs.StringVar(&f.format, "format", "text", "print it as "+strings.Join(formatNames(), ", "))
	complete(cmd, "format", func(string) []string { return formatNames() })
	fs.StringVar(&f.on, "on", onModel, "what fills it: model, or live, the running kernel")
	complete(cmd, "on", func(string) []string { return []string{onModel, onLive} })
	fs.StringVarP(&f.out, "out", "o", "", "write it to this file, whole or not at all")
	f.guestFlags.addTo(cmd)
	return cmd
}

func formatNames() []string {
	var s []string
	for _, f := range matrixFormats {
		if f.name != guestParts {
			s = append(s, f.name)
		}
	}
	return s
}

func matrixSetHelp() string {
	var b strings.Builder
	for _, s := range matrix.Sets() {
		writeItem(&b, s.Name, fmt.Sprintf("%s (%d kinds)", s.Doc, len(s.Kinds)))
	}
	return b.String()
}

func (f *matrixFlags) run(cmd *cobra.Command, std streams) error {
	at := slices.IndexFunc(matrixFormats, func(m matrixFormat) bool { return m.name == f.format })
	if at < 0 {
		return fmt.Errorf("--format is %q: give one of %s", f.format, strings.Join(formatNames(), ", "))
	}
	kinds, err := matrix.Parse(f.rows)
	if err != nil {
		return err
	}
	m, err := f.fill(cmd, std, kinds)
	if err != nil {
		return err
	}
	m.Command = matrixCommand(cmd)
	if err := f.print(std, m, matrixFormats[at].write); err != nil {
		return err
	}
	return matrixEnding(std, m)
}

// fill makes the matrix that was asked for, wherever.
func (f *matrixFlags) fill(cmd *cobra.Command, std streams, kinds []matrix.Kind) (*matrix.Matrix, error) {
	system := spec.OfFamily(kinds[0].Family).Name
	models, err := f.models(system)
	switch {
	case err != nil:
		return nil, err
	case f.on != onLive && f.on != onModel:
		return nil, fmt.Errorf("--on is %q: give %s or %s", f.on, onModel, onLive)
	case f.image == "" && f.on == onModel:
		return matrix.Fill(cmd.Context(), kinds, models, false, nil)
	case len(f.kernels) > 1:
		return nil, errors.New("a real kernel is held to one model: give one --kernel, or none to have it picked from the release")
	case f.image != "":
		return f.inGuest(cmd, std)
	}
	return f.running(cmd.Context(), std, system, kinds, models)
}

// models are the modelled kernels that were named; the default without a name.
func (f *matrixFlags) models(system reusecheck.System) ([]matrix.Kernel, error) {
	names := f.kernels
	if len(names) == 0 {
		names = []string{defaultKernel}
	}
	var ks []matrix.Kernel
	for _, name := range names {
		p, err := model.ParseOf(system, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(ks, func(k matrix.Kernel) bool { return k.Name == p.String() }) {
			return nil, fmt.Errorf("--kernel names %s twice", p)
		}
		k, err := modelKernel(p, system)
		if err != nil {
			return nil, err
		}
		ks = append(ks, k)
	}
	return ks, nil
}

func modelKernel(p *model.Profile, system reusecheck.System) (matrix.Kernel, error) {
	stack, err := p.Stack(system)
	if err != nil {
		return matrix.Kernel{}, err
	}
	answers, err := reusecheck.ParseKernels(p.String())
	return matrix.Kernel{Name: p.String(), Answers: answers, Stack: stack}, err
}

// running fills the matrix from the running kernel, its model beside it.
func (f *matrixFlags) running(ctx context.Context, std streams, system reusecheck.System, kinds []matrix.Kind, models []matrix.Kernel) (*matrix.Matrix, error) {
	version, err := live.RunningKernel()
	if err != nil {
		return nil, err
	}
	profile := model.ForReleaseOf(system, version.Version)
	if len(f.kernels) == 0 {
		if models[0], err = modelKernel(profile, system); err != nil {
			return nil, err
		}
	}
	k := &kernelStacks{}
	defer k.close()
	stack, err := k.watched()
	if err != nil {
		return nil, err
	}
	answers, err := reusecheck.ParseKernels(version.Version)
	if err != nil { // a release that is no version
		answers = models[0].Answers
	}
	meter := newMeter(std.errs, "pairs", 0)
	defer meter.clear()
	return matrix.Fill(ctx, kinds, []matrix.Kernel{{Name: version.String(), Answers: answers, Stack: stack}, models[0]}, true,
		func(done, _ int) { meter.set(done) })
}

// print writes the matrix to where it was asked for.
func (f *matrixFlags) print(std streams, m *matrix.Matrix, write func(*matrix.Matrix, io.Writer) error) error {
	if f.out == "" {
		if err := write(m, std.out); err != nil {
			return &outputError{err}
		}
		return nil
	}
	var b bytes.Buffer
	if err := write(m, &b); err != nil {
		return err
	}
	return writeFile(f.out, b.Bytes())
}

// matrixEnding tells what was not tested, and is the error of the whole.
func matrixEnding(std streams, m *matrix.Matrix) error {
	skipped := map[string]int{}
	var reasons []string
	for _, c := range m.Skipped() {
		for _, o := range c.Outcomes {
			if o.Skipped != "" && skipped[o.Skipped] == 0 {
				reasons = append(reasons, o.Skipped)
			}
			if o.Skipped != "" {
				skipped[o.Skipped]++
			}
		}
	}
	for _, why := range reasons {
		fmt.Fprintf(std.errs, "skipped: %s: %s\n", count(skipped[why], "pair"), why)
	}
	if bad := m.Disagreements(); len(bad) > 0 {
		fmt.Fprintf(std.errs, "%s is not as its model in %s\n", m.Kernels[0], count(len(bad), "pair"))
		return errFindings
	}
	if len(m.Skipped()) == len(m.Cells) {
		return &reusecheck.Unsupported{What: "these pairs", Why: strings.Join(reasons, "; ")}
	}
	return nil
}

// inGuest fills the matrix inside the image's kernel.
func (f *matrixFlags) inGuest(cmd *cobra.Command, std streams) (*matrix.Matrix, error) {
	args := append([]string{"matrix", "--on=" + onLive, "--format=" + guestParts},
		given(cmd, "image", "modules", "boot-timeout", "on", "format", "out")...)
	var parts matrix.Assembly
	code, err := f.boot(cmd.Context(), std, args, nil, parts.Add)
	if err = guestEnding(cmd.Context(), code, err); err != nil && !errors.Is(err, errFindings) {
		return nil, err
	}
	return parts.Matrix()
}

// matrixCommand is the command line, for the one who reads what it made.
func matrixCommand(cmd *cobra.Command) string {
	words := []string{cmd.CommandPath()}
	for _, w := range given(cmd, "out") {
		name, value, _ := strings.Cut(w, "=")
		words = append(words, name, shellWord(value))
	}
	return strings.Join(words, " ")
}

// shellWord quotes what a shell would not take as one word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-_.,:/=@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
