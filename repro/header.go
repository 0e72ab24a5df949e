package repro

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/reusecheck/reusecheck"
)

// header is what stands at the top of a program.
type header struct {
	build, run string   // commands; empty where there is none
	needs      string   // what running it takes
	expect     []string // sentences; by default those of a program with exit statuses
	remark     string   // what else has to be said, "" for nothing
}

const headerColumns = 78

// lines are the header's lines, without comment marks.
func (h header) lines(t *reusecheck.Trace, info Info) []string {
	var out []string
	if t.Title != "" {
		out = append(out, wrapped("", t.Title)...)
		out = append(out, "")
	}
	field := func(key, value string) {
		if value != "" {
			if key != "" {
				key += ":"
			}
			out = append(out, wrapped(fmt.Sprintf("%-9s", key), value)...)
		}
	}
	field("finding", info.Finding)
	field("kernels", info.Kernels)
	field("source", t.Source)
	// Commands stay whole, to be copied.
	if h.build != "" {
		out = append(out, "build:   "+h.build)
	}
	if h.run != "" {
		out = append(out, "run:     "+h.run)
	}
	field("", h.needs)
	expect := h.expect
	if expect == nil {
		expect = append(expectation(t),
			"Exit status 0: as the oracle says; 1: divergence reproduced; 2: could not run, with the reason.")
	}
	for i, e := range expect {
		key := ""
		if i == 0 {
			key = "expect:"
		}
		out = append(out, wrapped(fmt.Sprintf("%-9s", key), e)...)
	}
	field("note", h.remark)
	return out
}

// shellWord is a file's name as a shell takes it, on one line whatever it holds.
func shellWord(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name)
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:/@") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// expectation says which steps tell the kernels apart.
func expectation(t *reusecheck.Trace) []string {
	var out []string
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Oracle.Kind == reusecheck.Unstated {
			continue
		}
		out = append(out, fmt.Sprintf("%q is answered with %s by an affected kernel, with %s by one that answers as the oracle does.",
			s.Op.Text(t.Name), stated(s.Want, t.Name), stated(s.Oracle, t.Name)))
	}
	if out == nil {
		out = []string{"every answer is the oracle's."}
	}
	return out
}

// wrapped breaks a text into lines, the first of which begins with key and the
// others as far in.
func wrapped(key, text string) []string {
	var out []string
	line, begun := key, false
	for _, word := range strings.Fields(text) {
		if begun && len(line)+1+len(word) > headerColumns {
			out = append(out, line)
			line, begun = strings.Repeat(" ", len(key)), false
		}
		if begun {
			line += " "
		}
		line += word
		begun = true
	}
	return append(out, strings.TrimRight(line, " "))
}
