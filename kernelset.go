package reusecheck

import (
	"errors"
	"fmt"
	"strings"
)

// KernelSet is a trace's kernels header: which kernels' answers it states. The
// zero value is "all". Equal sets compare equal with ==, if they were written
// in the same way.
//
// An element is "all", a version ("6.1"), a range of versions ("6.8-", "-6.7",
// "6.1-6.7", both ends included), or a profile's name ("6.18+first-bind-fix",
// "6.18-some-change"), which holds for that profile alone. Elements are joined
// by commas. Versions compare component by component on as many components as
// the bound has: 6.1.192 lies in "6.1-6.7", in "-6.1" and in "6.1.168-". A
// component that a version lacks is 0.
//
// "all", versions and ranges hold for bare generations only: a profile with
// changes added or taken away answers differently somewhere by intent, so that
// it has to be named.
type KernelSet struct{ text string }

// ParseKernels reads a kernels header's value.
func ParseKernels(s string) (KernelSet, error) {
	text, _, msg := parseKernels(s)
	if msg != "" {
		return KernelSet{}, errors.New(msg + "; write all, 6.1, 6.8-, -6.7, 6.1-6.7, a profile such as 6.18+first-bind-fix, or several joined by commas")
	}
	return kernelSet(text), nil
}

// kernelSet makes the zero value of the text that says no more than it.
func kernelSet(text string) KernelSet {
	if text == "all" {
		text = ""
	}
	return KernelSet{text}
}

// parseKernels gives the canonical text, or what is wrong at which byte.
func parseKernels(s string) (text string, off int, msg string) {
	var out strings.Builder
	for at := 0; ; {
		raw, _, more := strings.Cut(s[at:], ",")
		e := strings.Trim(raw, " \t")
		if msg := checkElement(e); msg != "" {
			return "", at + strings.Index(raw, e), msg
		}
		out.WriteString(e)
		if !more {
			return out.String(), 0, ""
		}
		out.WriteByte(',')
		at += len(raw) + 1
	}
}

func checkElement(e string) string {
	el := readElement(e)
	switch {
	case e == "":
		return "an element of the kernels is missing"
	case el.kind == notAnElement:
		return fmt.Sprintf("%q is not a set of kernels", e)
	case el.kind == versionRange && el.lo != "" && el.hi != "" && CompareVersions(el.lo, el.hi) > 0:
		return fmt.Sprintf("the range %s ends before it begins", e)
	}
	return ""
}

// String is the header's value, "all" for the zero value.
func (k KernelSet) String() string {
	if k.text == "" {
		return "all"
	}
	return k.text
}

// Equal reports whether k and o were written in the same way.
func (k KernelSet) Equal(o KernelSet) bool { return k == o }

// Profiles are the profiles' names among k's elements: kernels with changes
// added or taken away.
func (k KernelSet) Profiles() []string {
	var names []string
	for e := range strings.SplitSeq(k.String(), ",") {
		if readElement(e).kind == profileName {
			names = append(names, e)
		}
	}
	return names
}

// Includes reports whether k names the kernel with this profile ("6.18",
// "6.18+first-bind-fix") of this release ("6.18.44", "6.1.192"). Of a release
// what follows the numbers is ignored; an empty one stands for the profile's
// own version.
func (k KernelSet) Includes(profile, release string) bool {
	release = leadingVersion(release)
	bare := profile == "" || isVersion(profile)
	if release == "" && bare {
		release = profile
	}
	for e := range strings.SplitSeq(k.String(), ",") {
		switch el := readElement(e); el.kind {
		case profileName:
			if e == profile {
				return true
			}
		case everyKernel:
			if bare {
				return true
			}
		case versionRange:
			if bare && release != "" && el.contains(release) {
				return true
			}
		}
	}
	return false
}

type elementKind uint8

const (
	notAnElement elementKind = iota
	everyKernel
	versionRange
	profileName
)

// element is one part of a kernels header; an end of a range that is empty is open.
type element struct {
	kind   elementKind
	lo, hi string
}

func readElement(e string) element {
	if e == "all" {
		return element{kind: everyKernel}
	}
	lo, hi, isRange := strings.Cut(e, "-")
	okLo, okHi := isVersion(lo), isVersion(hi)
	switch {
	case !isRange && okLo:
		return element{versionRange, lo, lo}
	case isRange && (okLo && hi == "" || lo == "" && okHi || okLo && okHi):
		return element{versionRange, lo, hi}
	case isProfile(e):
		return element{kind: profileName}
	}
	return element{}
}

func (el element) contains(release string) bool {
	return (el.lo == "" || compareTo(release, el.lo) >= 0) && (el.hi == "" || compareTo(release, el.hi) <= 0)
}

// isVersion accepts numbers joined by dots, none with a leading zero.
func isVersion(s string) bool {
	for n := range strings.SplitSeq(s, ".") {
		if _, ok := parseNumber(n, 1<<16-1); !ok {
			return false
		}
	}
	return true
}

// isProfile accepts a version and then changes, each after a + or a -.
func isProfile(s string) bool {
	i := strings.IndexAny(s, "+-")
	if i < 1 || !isVersion(s[:i]) || !isLetter(s[len(s)-1]) && !isDigit(s[len(s)-1]) {
		return false
	}
	for j, sign := i, false; j < len(s); j++ {
		wasSign := sign
		sign = s[j] == '+' || s[j] == '-'
		switch c := s[j]; {
		case sign && wasSign, wasSign && !isLetter(c):
			return false
		case !sign && !isLetter(c) && !isDigit(c) && c != '_' && c != '.':
			return false
		}
	}
	return true
}

func leadingVersion(release string) string {
	end := 0
	for end < len(release) && (isDigit(release[end]) || release[end] == '.') {
		end++
	}
	return strings.TrimRight(release[:end], ".")
}

// compareTo compares v with a bound, on as many components as the bound has.
func compareTo(v, bound string) int {
	for b := range strings.SplitSeq(bound, ".") {
		var n string
		n, v, _ = strings.Cut(v, ".")
		if c := component(n) - component(b); c != 0 {
			return c
		}
	}
	return 0
}

// CompareVersions compares two versions ("5.4", "6.1.192") on the components that
// both have: less than 0 when v is the older, 0 when one is a line of the other.
func CompareVersions(v, w string) int {
	if strings.Count(v, ".") < strings.Count(w, ".") {
		return -compareTo(w, v)
	}
	return compareTo(v, w)
}

func component(s string) int {
	n, _ := parseNumber(s, 1<<16-1)
	return int(n)
}
