package repro

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/reusecheck/reusecheck"
)

// A part that no trace of testdata uses is one that no test compiles.
func TestEveryPartIsUsedByAProgramOfSomeTrace(t *testing.T) {
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatal("no traces in testdata", err)
	}
	for _, lang := range []string{"c", "python", "go"} {
		lib := readLibrary(lang)
		seen := make(map[string]bool)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := reusecheck.Parse(file, text)
			if err != nil {
				t.Fatal(err)
			}
			names, err := PartsOf(tr, lang)
			if no := (*Inexpressible)(nil); errors.As(err, &no) && lang != "c" {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", lang, err)
				continue
			}
			for _, name := range names {
				seen[name] = true
			}
		}
		for _, p := range lib.parts {
			if !seen[p.name] {
				t.Errorf("parts/%s.txt: no trace uses %s", lang, p.name)
			}
		}
	}
}

// PartsOf names the parts of which the program of a trace is made in a language.
func PartsOf(tr *reusecheck.Trace, lang string) ([]string, error) {
	lib := readLibrary(lang)
	l := newLowering(tr, lang, newNameTable(lib, nil, ""))
	l.redirects = lang == "c"
	p, err := l.lower()
	if err != nil {
		return nil, err
	}
	var names []string
	parts, _ := lib.selected(p.used)
	for _, part := range parts {
		names = append(names, part.name)
	}
	return names, nil
}
