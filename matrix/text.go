package matrix

import (
	"fmt"
	"io"
	"strings"
)

// textWidth is the widest line of a grid, in characters.
const textWidth = 120

// WriteText prints a grid for a terminal, at most 120 columns wide, with its legend.
func (m *Matrix) WriteText(w io.Writer) error {
	v := m.view()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", m.Title())
	v.grid(&b)
	fmt.Fprintf(&b, "\n%s\n", fold(v.axes(), textWidth))
	for _, s := range v.legend() {
		fmt.Fprintf(&b, "  %-2s %s\n", s.Code, strings.ReplaceAll(fold(s.Words, textWidth-5), "\n", "\n     "))
	}
	fmt.Fprintf(&b, "%s\n", v.tally())
	told := v.told()
	for _, t := range told {
		fmt.Fprintf(&b, "\n%s\n", fold(fmt.Sprintf("row %d, column %d: %s", t.cell.First+1, t.cell.Second+1, t.why), textWidth))
		indent(&b, "   ", t.trace)
	}
	if m.Command != "" {
		if len(told) > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "again: %s\n", m.Command)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// grid prints the codes, in as many blocks of columns as the width asks for. A
// mark stands where the blank between two codes would.
func (v *view) grid(b *strings.Builder) {
	number := len(fmt.Sprint(len(v.Kinds)))
	label, cell := 0, 3
	for _, k := range v.Kinds {
		label = max(label, number+1+len(k.String()))
	}
	for _, c := range v.codes {
		cell = max(cell, len(c))
	}
	per := max(1, (textWidth-label-1)/cell)
	n := len(v.Columns)
	for from := 0; from < n; from += per {
		to := min(n, from+per)
		fmt.Fprintf(b, "\n%*s ", label, "")
		for _, c := range v.Columns[from:to] {
			fmt.Fprintf(b, "%-*d", cell, c+1)
		}
		trimLine(b)
		for i, k := range v.Kinds {
			fmt.Fprintf(b, "%-*s ", label, fmt.Sprintf("%*d %s", number, i+1, k))
			for _, code := range v.codes[i*n+from : i*n+to] {
				fmt.Fprintf(b, "%-*s", cell, code)
			}
			trimLine(b)
		}
	}
}

// trimLine ends a line, without blanks at its end.
func trimLine(b *strings.Builder) {
	s := strings.TrimRight(b.String(), " ")
	b.Reset()
	b.WriteString(s + "\n")
}

func indent(b *strings.Builder, by, text string) {
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = by + line
		}
		b.WriteString(line)
	}
}

// fold breaks a text into lines of at most width characters.
func fold(text string, width int) string {
	var b strings.Builder
	col := 0
	for i, w := range strings.Fields(text) {
		switch {
		case i > 0 && col+1+len(w) > width:
			b.WriteByte('\n')
			col = 0
		case i > 0:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	return b.String()
}

// WriteMarkdown prints a table for a document, with its legend.
func (m *Matrix) WriteMarkdown(w io.Writer) error {
	v := m.view()
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", m.Title())
	b.WriteString("| | first socket |")
	for _, c := range m.Columns {
		fmt.Fprintf(&b, " %d |", c+1)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(m.Columns)) + "\n")
	for i, k := range m.Kinds {
		fmt.Fprintf(&b, "| %d | %s |", i+1, k)
		for j := range m.Columns {
			fmt.Fprintf(&b, " %s |", markdownCode(v.codes[i*len(m.Columns)+j]))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n%s\n\n", v.axes())
	for _, s := range v.legend() {
		fmt.Fprintf(&b, "- %s: %s\n", markdownCode(s.Code), s.Words)
	}
	fmt.Fprintf(&b, "\n%s.\n", v.tally())
	for _, t := range v.told() {
		fmt.Fprintf(&b, "\nRow %d, column %d: %s.\n\n", t.cell.First+1, t.cell.Second+1, t.why)
		indent(&b, "    ", t.trace)
	}
	if m.Command != "" {
		fmt.Fprintf(&b, "\n    %s\n", m.Command)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownCode keeps Markdown from reading a code as its own.
func markdownCode(code string) string { return strings.ReplaceAll(code, "*", "\\*") }
