package explain

import (
	"fmt"
	"io"
	"strings"
)

// width is how wide a paragraph is printed.
const width = 96

// Write prints the story for a person: what became of it first, then a paragraph a
// step. Only the steps that keep holds of are told, nil for all.
func (s *Story) Write(out io.Writer, keep func(*Step) bool) error {
	var b strings.Builder
	s.heading(&b)
	last := s.LastRefused()
	for i := range s.Steps {
		if st := &s.Steps[i]; keep == nil || keep(st) {
			b.WriteByte('\n')
			st.write(&b, i == last, keep == nil)
		}
	}
	s.elsewhere(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// Notable reports whether a step was refused or answered wrong.
func Notable(st *Step) bool { return st.Refused || st.Diverges }

// heading is the last refused step with its remedies, or that there is none.
func (s *Story) heading(b *strings.Builder) {
	if s.Trace.Title != "" {
		wrap(b, "", s.Trace.Title)
	}
	last := s.LastRefused()
	if last < 0 {
		fmt.Fprintf(b, "On %s no step is refused.\n", s.Kernel)
	} else {
		st := &s.Steps[last]
		why := ""
		if st.Why != "" {
			why = ": " + st.Why
		}
		wrap(b, "", fmt.Sprintf("On %s %q (%s) is refused with %s%s.", s.Kernel, st.Op, st.at(), st.Result, why))
		st.remedies(b)
	}
	s.wrong(b)
}

// wrong names the steps that the oracle answers otherwise.
func (s *Story) wrong(b *strings.Builder) {
	n := 0
	for i := range s.Steps {
		st := &s.Steps[i]
		if !st.Diverges {
			continue
		}
		if n++; n <= most {
			wrap(b, "", fmt.Sprintf("%q (%s) is answered %s, where a look at every owner says %s.", st.Op, st.at(), st.Result, st.Oracle))
		}
	}
	if n > most {
		fmt.Fprintf(b, "So are %d more.\n", n-most)
	}
}

func (st *Step) at() string {
	if st.Line > 0 {
		return fmt.Sprintf("line %d", st.Line)
	}
	return fmt.Sprintf("step %d", st.Number)
}

func (st *Step) write(b *strings.Builder, told, whole bool) {
	mark := ""
	if st.Diverges {
		mark = " oracle " + st.Oracle
	}
	fmt.Fprintf(b, "%d. %s => %s%s\n", st.Number, st.Op, st.Result, mark)
	wrap(b, "   ", strings.Join(st.Text, " "))
	switch {
	case !st.Refused:
	case told && (!whole || len(st.Remedies) == 0): // the top says so
	case told:
		b.WriteString("   What helps is said at the top.\n")
	default:
		st.remedies(b)
	}
}

func (st *Step) remedies(b *strings.Builder) {
	if len(st.Remedies) == 0 {
		wrap(b, "   ", fmt.Sprintf("Nothing small helps: %s of options, users, devices, addresses, ports and order tried.", plural(st.Tried, "change")))
		return
	}
	b.WriteString("   It succeeds with any one of these, each tried:\n")
	for _, r := range st.Remedies {
		text := "- " + r.Text
		if len(r.Lines) > 0 {
			text += ": " + strings.Join(r.Lines, "; ")
		}
		wrapHanging(b, "   ", "     ", text)
	}
}

// elsewhere says how the other kernels answer.
func (s *Story) elsewhere(b *strings.Builder) {
	if len(s.Same)+len(s.Elsewhere) > 0 {
		b.WriteByte('\n')
	}
	if len(s.Same) > 0 {
		wrap(b, "", fmt.Sprintf("The same on %s.", listed(s.Same, len(s.Same))))
	}
	for _, e := range s.Elsewhere {
		wrap(b, "", e)
	}
}

func wrap(b *strings.Builder, indent, text string) { wrapHanging(b, indent, indent, text) }

// wrapHanging breaks a text into lines; the first has an indent of its own.
func wrapHanging(b *strings.Builder, first, rest, text string) {
	col := len(first)
	b.WriteString(first)
	for i, w := range strings.Fields(text) {
		switch {
		case i > 0 && col+1+len(w) > width:
			b.WriteString("\n" + rest)
			col = len(rest)
		case i > 0:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	b.WriteByte('\n')
}
