package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
	"github.com/reusecheck/reusecheck/shrink"
)

// finding is what is told of a finding, one line of JSON or a paragraph.
type finding struct {
	Finding      int      `json:"finding"`
	Title        string   `json:"title"`
	Kernel       string   `json:"kernel"`
	Property     string   `json:"property"`
	Kind         string   `json:"kind"`
	Causes       string   `json:"causes,omitempty"`
	Sentence     string   `json:"sentence"`
	CrossesUsers bool     `json:"crosses_users"`
	Minimal      bool     `json:"minimal"`
	History      int      `json:"history"`
	Trace        string   `json:"trace"`
	Control      string   `json:"control,omitempty"` // the trace that is answered otherwise
	File         string   `json:"file,omitempty"`
	Programs     []string `json:"programs,omitempty"`
}

const securityNote = "crosses users: report to the kernel's security contact (security@kernel.org) before you publish it"

// found puts a finding into words. source says how to make it again.
func found(n *shrink.Finding, kernel, source string) finding {
	t := *n.Trace // the finder compares its own with those to come
	t.Title, t.Source = n.Title(), source
	if n.Sentence == "" {
		n.Sentence = "It did not show again when the trace was replayed: it depends on a choice that was the stack's own."
	}
	return finding{
		Title: t.Title, Kernel: kernel, Property: n.Violation.Property, Kind: n.Violation.Kind,
		Causes: n.Violation.Tags.Causes(), Sentence: n.Sentence, CrossesUsers: n.CrossesUsers,
		Minimal: n.Report.Minimal, History: n.History + 1, Trace: t.String(),
	}
}

// reporter streams findings as they are made.
type reporter struct {
	std     streams
	json    bool
	dir     string         // where each is written too, "" for nowhere
	formats []repro.Format // of the programs beside it
	meter   *meter
	names   shrink.Names
	n       int
	// brief names a finding whose title was told before in a line: it is the
	// same by another rule or another step.
	brief bool
	told  map[string]int
	// played counts the histories of searches that were given a time, if any.
	played int
	limit  time.Duration
}

// prepare makes the directory, and tries it, before anything is searched.
func (r *reporter) prepare() error {
	if r.dir == "" {
		return nil
	}
	if err := makeDirectory(r.dir); err != nil {
		return err
	}
	return mayWrite(filepath.Join(r.dir, "finding.trace"))
}

// add tells of one finding.
func (r *reporter) add(f finding) error {
	if r.meter != nil {
		r.meter.clear()
	}
	r.n++
	f.Finding = r.n
	if r.dir != "" {
		f.File = filepath.Join(r.dir, r.names.Of(f.Title)+".trace")
		if err := writeFile(f.File, []byte(f.Trace)); err != nil {
			return err
		}
		if err := r.programs(&f); err != nil {
			return err
		}
	}
	if r.json {
		return writeJSON(r.std.out, f)
	}
	out := r.std.out
	if first := r.told[f.Title]; first > 0 && r.brief {
		return written(fmt.Fprintf(out, "%d. %s: a variant of %d; --variants prints it\n\n", f.Finding, f.Title, first))
	}
	if r.told == nil {
		r.told = map[string]int{}
	}
	r.told[f.Title] = f.Finding
	fmt.Fprintf(out, "%d. %s\n\n", f.Finding, f.Title)
	indent(out, bare(f.Trace))
	if f.Control != "" {
		fmt.Fprintf(out, "\n   but\n\n")
		indent(out, bare(f.Control))
	}
	fmt.Fprintf(out, "\n   %s\n", f.Sentence)
	if f.CrossesUsers {
		fmt.Fprintf(out, "   %s\n", securityNote)
	}
	if !f.Minimal {
		fmt.Fprintf(out, "   this trace may not be the smallest\n")
	}
	return written(fmt.Fprintln(out))
}

func written(_ int, err error) error {
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// bare is a trace without what is said beside it.
func bare(text string) string {
	t, err := reusecheck.Parse("finding", []byte(text))
	if err != nil {
		return text
	}
	t.Title, t.Source = "", ""
	return t.String()
}
