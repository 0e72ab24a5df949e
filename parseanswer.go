package reusecheck

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ParseAnswer reads what [Answer.Text] prints: ok, ok PORT, an error's symbol,
// none, ok walks=N left=M, or a name that lookup knows; a nil lookup knows none.
// The empty text is the answer that states nothing.
func ParseAnswer(s string, lookup func(name string) (ID, bool)) (Answer, error) {
	var words []word
	for w := range strings.FieldsSeq(s) {
		words = append(words, word{text: w})
	}
	if len(words) == 0 {
		return Answer{}, nil
	}
	if lookup == nil {
		lookup = func(string) (ID, bool) { return 0, false }
	}
	a, used, wrong, msg := readAnswer(words, lookup)
	switch {
	case msg != "":
		if near := nearest(wrong.text, resultWords()); near != "" {
			msg += fmt.Sprintf("; did you mean %s?", near)
		}
		return Answer{}, errors.New(msg)
	case used < len(words):
		return Answer{}, fmt.Errorf("unexpected %q after the result %q", words[used].text, a)
	}
	return a, nil
}

// resultWords are the words that a result may begin with, names aside.
func resultWords() []string {
	known := []string{"ok", "none"}
	for _, s := range errnoNames {
		known = append(known, s)
	}
	slices.Sort(known)
	return known
}

// readAnswer reads a result at the start of words and says how many it used,
// or which word is wrong and why.
func readAnswer(words []word, lookup func(string) (ID, bool)) (a Answer, used int, wrong word, msg string) {
	first := words[0]
	switch first.text {
	case "ok":
		return readSuccess(words)
	case "none":
		return Answer{Kind: Nobody}, 1, word{}, ""
	}
	if e, ok := errnoByName[first.text]; ok {
		return Fail(e), 1, word{}, ""
	}
	if id, ok := lookup(first.text); ok {
		return Answer{Kind: Received, Who: id}, 1, word{}, ""
	}
	return Answer{}, 0, first, fmt.Sprintf("unknown result %q", first.text)
}

func readSuccess(words []word) (a Answer, used int, wrong word, msg string) {
	if len(words) == 1 {
		return Success, 1, word{}, ""
	}
	w := words[1]
	if isDigit(w.text[0]) {
		port, ok := parseNumber(w.text, 1<<16-1)
		if !ok || port == 0 {
			return Answer{}, 0, w, fmt.Sprintf("%q is not a port that can be picked: 1 to 65535 without leading zeros", w.text)
		}
		return Picked(uint16(port)), 2, word{}, ""
	}
	walks, isExit := strings.CutPrefix(w.text, "walks=")
	if !isExit {
		return Success, 1, word{}, ""
	}
	n, ok := parseNumber(walks, math.MaxInt32)
	if !ok {
		return Answer{}, 0, w, fmt.Sprintf("%q is not a count of walks", w.text)
	}
	if len(words) == 2 {
		return Answer{}, 0, w, "left=M is missing after walks=N"
	}
	left, isLeft := strings.CutPrefix(words[2].text, "left=")
	m, ok := parseNumber(left, math.MaxInt32)
	if !isLeft || !ok {
		return Answer{}, 0, words[2], fmt.Sprintf("%q where left=M stands", words[2].text)
	}
	return Answer{Kind: Exited, Walks: int32(n), Left: int32(m)}, 3, word{}, ""
}
