package reusecheck

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// HeaderError is an error of a header whose text can be read, found by who knows
// what it means: a kernel that nobody has, a setting that the kernel refuses.
type HeaderError struct {
	Header string // its first word, such as sysctl
	Part   string // the part of its text that is wrong
	Err    error
}

func (e *HeaderError) Error() string {
	if e.Header == headerNames[hSysctl] {
		return fmt.Sprintf("header sysctl %s: %v", e.Part, e.Err)
	}
	return fmt.Sprintf("header %s: %v", e.Header, e.Err)
}

func (e *HeaderError) Unwrap() error { return e.Err }

// header is where a header stands in the text that a trace was read from.
type header struct {
	name, text string
	place      ParseError // of the text
}

// Placed says where in t's file the header is that err is about: a *ParseError.
// Another error, and one of a trace that was not read from a text, stays as it is.
func (t *Trace) Placed(err error) error {
	var wrong *HeaderError
	if !errors.As(err, &wrong) {
		return err
	}
	for i := range t.headers {
		h := &t.headers[i]
		if at := h.find(wrong.Part); h.name == wrong.Header && at >= 0 {
			e := h.place
			e.Column += utf8.RuneCountInString(h.text[:at])
			e.Msg = wrong.Error()
			return &e
		}
	}
	return err
}

// find is where part stands in the header's text, as an element of a set or as the
// name of a setting; negative where it does not.
func (h *header) find(part string) int {
	at := 0
	for _, element := range strings.FieldsFunc(h.text, func(r rune) bool { return r == ',' || strings.ContainsRune(blanks, r) }) {
		at += strings.Index(h.text[at:], element)
		if element == part {
			return at
		}
		at += len(element)
	}
	return -1
}
