package reusecheck

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseError is an error of a trace's text. Nothing of such a trace is run.
type ParseError struct {
	File   string // as given to Parse
	Line   int    // from 1
	Column int    // in characters, from 1
	Text   string // the line, without its end; control characters are replaced

	Msg        string // what is wrong
	Expected   string // what would be right, "" when Msg says it
	Suggestion string // the nearest word that would be right, "" when none is near
}

// ErrorAt is the error of a text's byte at, with the line that it stands in. near
// is the suggestion, if there is one.
func ErrorAt(file, text string, at int, msg, expected string, near ...string) *ParseError {
	at = min(at, len(text))
	start := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, more := strings.Cut(text[start:], "\n")
	if more {
		line = strings.TrimSuffix(line, "\r")
	}
	return &ParseError{
		File: file, Line: 1 + strings.Count(text[:start], "\n"), Column: utf8.RuneCountInString(text[start:at]) + 1,
		Text: quotable(line), Msg: shortened(msg), Expected: expected, Suggestion: strings.Join(near, ""),
	}
}

// shortened leaves out the middle of a message: a word that it quotes can be as
// long as the text.
func shortened(msg string) string {
	const begin, end = 120, 60
	r := []rune(msg)
	if len(r) <= begin+end {
		return msg
	}
	return string(r[:begin]) + "..." + string(r[len(r)-end:])
}

// How much of a long line an error quotes, and how much of that stands before
// the place it is about, in characters.
const (
	quoteWidth  = 100
	quoteBefore = 60
)

// Error is one line "file:line:column: what is wrong", the line with a caret
// under the place, and what was expected.
func (e *ParseError) Error() string {
	var b strings.Builder
	file := e.File
	if file == "" {
		file = "trace"
	}
	fmt.Fprintf(&b, "%s:%d:%d: %s", file, e.Line, e.Column, e.Msg)
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %s?", e.Suggestion)
	}
	text, at := e.quote()
	if text != "" {
		fmt.Fprintf(&b, "\n    %s\n    %s^", text, strings.Repeat(" ", at))
	}
	if e.Expected != "" {
		fmt.Fprintf(&b, "\n    expected %s", e.Expected)
	}
	return b.String()
}

// quote gives the part of the line to show and where in it the caret stands.
func (e *ParseError) quote() (string, int) {
	line := []rune(e.Text)
	at := min(max(e.Column-1, 0), len(line))
	from := 0
	if len(line) > quoteWidth {
		from = max(0, min(at-quoteBefore, len(line)-quoteWidth))
	}
	to := min(len(line), from+quoteWidth)
	text := string(line[from:to])
	at -= from
	if from > 0 {
		text, at = "..."+text, at+3
	}
	if to < len(line) {
		text += "..."
	}
	return strings.TrimRight(text, " "), at
}

// quotable replaces what would move the caret or upset a terminal. Every byte
// of broken UTF-8 counts as one character, as utf8.RuneCount has it.
func quotable(line string) string {
	var b strings.Builder
	for _, r := range line {
		switch {
		case r == '\t':
			r = ' '
		case unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ':
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

// nearest is the candidate with the smallest edit distance to word, "" when
// none is near enough to be what was meant. Of equals the one that begins most
// like word wins, then the first.
func nearest(word string, candidates []string) string {
	const longest = 64 // keeps the cost of an error bounded
	if word == "" || len(word) > longest {
		return ""
	}
	w := strings.ToLower(word)
	best, limit, common := "", (len(w)+1)/3, -1
	for _, c := range candidates {
		if len(c) > longest || c == word {
			continue
		}
		lower := strings.ToLower(c)
		d, n := editDistance(w, lower, limit), commonPrefix(w, lower)
		if d < limit || d == limit && n > common {
			best, limit, common = c, d, n
		}
	}
	return best
}

func commonPrefix(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours that turn a into b; more than limit may be given as any such number.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
