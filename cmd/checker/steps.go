package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// stepReport is what is told of one step, one line of JSON or a row of a table.
type stepReport struct {
	File       string      `json:"file"`
	Line       int         `json:"line"`
	Op         string      `json:"op"`
	Result     string      `json:"result"`
	Oracle     string      `json:"oracle"`
	Path       string      `json:"path"`
	Visited    int         `json:"visited"`
	Cache      *stepCache  `json:"cache"`
	Kernel     string      `json:"kernel,omitempty"`
	Stated     string      `json:"stated,omitempty"` // when that does not hold
	Mismatch   string      `json:"mismatch,omitempty"`
	Open       string      `json:"open,omitempty"` // why the oracle does not judge
	Violations []violation `json:"violations,omitempty"`
}

type stepCache struct {
	FastReuse     int8 `json:"fastreuse"`
	FastReusePort int8 `json:"fastreuseport"`
}

type violation struct {
	Property string `json:"property"`
	Sentence string `json:"sentence"`
}

// skipReport is told of a trace that cannot run to its end.
type skipReport struct {
	File    string `json:"file"`
	Kernel  string `json:"kernel"`
	Skipped string `json:"skipped"`
}

func newStepReport(t *reusecheck.Trace, st *reusecheck.Step, kernel string, o *spec.Observation, found []spec.Violation) stepReport {
	s := stepReport{
		File: t.File, Line: st.Line, Op: st.Op.Text(t.Name), Result: o.Got.Text(t.Name), Oracle: o.Verdict.Want.Text(t.Name),
		Path: o.Got.Path.String(), Visited: o.Got.Visited, Kernel: kernel, Open: o.Verdict.Open,
	}
	if o.Got.HasCache && o.Got.After.Exists {
		s.Cache = &stepCache{o.Got.After.FastReuse, o.Got.After.FastReusePort}
	}
	if c, bad := spec.Contradicts(*st, o); bad {
		s.Stated, s.Mismatch = c.Stated.Text(t.Name), contradiction(t, st, c)
		if c.Stated.Kind == reusecheck.Unstated {
			s.Stated = "no divergence"
		}
	}
	for _, v := range found {
		s.Violations = append(s.Violations, violation{v.Property, spec.Sentence(o, v)})
	}
	return s
}

// contradiction says which stated answer does not hold.
func contradiction(t *reusecheck.Trace, st *reusecheck.Step, c spec.Contradiction) string {
	op, got, stated := st.Op.Text(t.Name), c.Got.Text(t.Name), c.Stated.Text(t.Name)
	switch {
	case !c.Oracle:
		return fmt.Sprintf("%q is stated %s, but is answered %s", op, stated, got)
	case c.Stated.Kind == reusecheck.Unstated:
		return fmt.Sprintf("%q diverges, which is not stated: the oracle says %s", op, got)
	}
	return fmt.Sprintf("%q is stated to be %s by the oracle, which says %s", op, stated, got)
}

// replayReport prints steps as they come, and counts them.
type replayReport struct {
	std   streams
	json  bool
	quiet bool
	named bool // the kernel is worth a word in every line

	table                   *tabwriter.Writer // of the run at hand
	file, kernel            string            // the run at hand
	notes                   []string          // to stand below the table
	runs, steps, divergence int
	mismatches, skipped     int
	others                  int // traces that are about other kernels
}

func newReplayReport(std streams, f *replayFlags) *replayReport {
	return &replayReport{std: std, json: f.json, quiet: f.quiet, named: len(f.kernels) != 1}
}

// add tells of one step of a trace.
func (r *replayReport) add(t *reusecheck.Trace, s stepReport) error {
	if s.File != r.file || s.Kernel != r.kernel || t.Steps[0].Line == s.Line {
		if err := r.begin(t, s); err != nil {
			return err
		}
	}
	r.steps++
	diverges := s.Oracle != s.Result && s.Open == ""
	if diverges {
		r.divergence++
	}
	if s.Mismatch != "" {
		r.mismatches++
		r.note(fmt.Sprintf("%s:%d: on %s %s", s.File, s.Line, s.Kernel, s.Mismatch))
	}
	switch {
	case r.json:
		if !r.named {
			s.Kernel = ""
		}
		return writeJSON(r.std.out, s)
	case r.quiet:
		return nil
	}
	cache, mark := "-", ""
	if s.Cache != nil {
		cache = reusecheck.Cache{FastReuse: s.Cache.FastReuse, FastReusePort: s.Cache.FastReusePort}.Short()
	}
	switch {
	case s.Mismatch != "":
		mark = "\t<- not as stated"
	case diverges:
		mark = "\t<- diverges, as stated"
	case s.Open != "":
		mark = "\t(the oracle leaves it open)"
	}
	fmt.Fprintf(r.table, "  %d\t%s\t%s\t%s\t%s\t%d\t%s%s\n", s.Line, s.Op, s.Result, s.Oracle, s.Path, s.Visited, cache, mark)
	for _, v := range s.Violations {
		r.note(fmt.Sprintf("  line %d, %s: %s", s.Line, v.Property, v.Sentence))
	}
	return nil
}

// note keeps a line for below the table, or prints it where there is none.
func (r *replayReport) note(line string) {
	switch {
	case r.json:
		fmt.Fprintln(r.std.errs, line)
	case r.quiet:
		fmt.Fprintln(r.std.out, line)
	default:
		r.notes = append(r.notes, line)
	}
}

// begin ends the run at hand and opens the table of the next one.
func (r *replayReport) begin(t *reusecheck.Trace, s stepReport) error {
	if err := r.flush(); err != nil {
		return err
	}
	r.runs++
	r.file, r.kernel = s.File, s.Kernel
	if r.json || r.quiet {
		return nil
	}
	title := t.Title
	if title != "" {
		title = ": " + title
	}
	fmt.Fprintf(r.std.out, "%s on %s%s\n", s.File, s.Kernel, title)
	r.table = tabwriter.NewWriter(r.std.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(r.table, "  line\tstep\tresult\toracle\tpath\tvisited\tcache\n")
	return nil
}

func (r *replayReport) flush() error {
	if r.table == nil {
		return nil
	}
	if err := r.table.Flush(); err != nil {
		return &outputError{err}
	}
	for _, n := range r.notes {
		fmt.Fprintln(r.std.out, n)
	}
	fmt.Fprintln(r.std.out)
	r.table, r.notes = nil, nil
	return nil
}

// skip tells of a trace that cannot run to its end on a kernel.
func (r *replayReport) skip(t *reusecheck.Trace, kernel, why string) error {
	if err := r.flush(); err != nil {
		return err
	}
	r.skipped++
	if r.json {
		return writeJSON(r.std.out, skipReport{t.File, kernel, why})
	}
	fmt.Fprintf(r.std.errs, "skipped: %s on %s: %s\n", t.File, kernel, why)
	return nil
}

// ending tells what was run, and is the error of the whole.
func (r *replayReport) ending(ctx context.Context) error {
	if err := r.flush(); err != nil {
		return err
	}
	out := r.std.out
	if r.json {
		out = r.std.errs
	}
	fmt.Fprintf(out, "%s of %s: %s, %s not as stated\n", count(r.runs, "run"), count(r.steps, "step"),
		count(r.divergence, "divergence"), count(r.mismatches, "answer"))
	if r.others > 0 {
		fmt.Fprintf(out, "%s left out: no kernel that was asked for is among those it is about\n", count(r.others, "trace"))
	}
	switch {
	case r.mismatches > 0:
		return errFindings
	case ctx.Err() != nil:
		return context.Canceled
	case r.steps == 0 && r.runs+r.others+r.skipped > 0:
		return &reusecheck.Unsupported{What: "these traces", Why: "none of them can run on the kernels asked for"}
	}
	return nil
}
