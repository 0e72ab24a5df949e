package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return &outputError{err}
	}
	return nil
}

// indent prints a trace's text so that it stands out from what is said of it.
func indent(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "   " + line
		}
		fmt.Fprint(w, line)
	}
}

func count(n int, what string) string {
	many := what + "s"
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		many = stem + "ies"
	}
	switch n {
	case 0:
		return "no " + many
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %s", n, many)
}

func percent(part, whole int) int {
	if whole == 0 {
		return 0
	}
	return (100*part + whole/2) / whole
}

func joined(words []string) string { return strings.Join(words, ",") }
