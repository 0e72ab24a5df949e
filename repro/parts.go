package repro

import (
	"embed"
	"fmt"
	"sort"
	"strings"
)

// The texts that programs are put together from: what each helper is, once for
// each language.
//
//go:embed parts/*.txt
var partFiles embed.FS

// part is one helper of a program.
type part struct {
	name     string
	needs    []string
	includes []string
	text     string
}

// library is the parts of one language, in the order in which they are written.
type library struct {
	name  string
	parts []part
	index map[string]int
}

// readLibrary reads the parts of a language. An error in them is a mistake of
// this package.
func readLibrary(name string) *library {
	raw, err := partFiles.ReadFile("parts/" + name + ".txt")
	if err != nil {
		panic(err)
	}
	lib := &library{name: name, index: make(map[string]int)}
	_, rest, _ := strings.Cut(string(raw), "\n== ")
	for _, section := range strings.Split(rest, "\n== ") {
		head, text, _ := strings.Cut(section, "\n")
		partName, needs, ok := strings.Cut(head, ":")
		if !ok {
			panic(fmt.Sprintf("parts/%s.txt: no colon in %q", name, head))
		}
		p := part{name: partName, needs: strings.Fields(needs)}
		for strings.HasPrefix(text, "include ") {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			p.includes = append(p.includes, strings.Fields(line)[1:]...)
		}
		p.text = strings.Trim(text, "\n") + "\n"
		lib.index[p.name] = len(lib.parts)
		lib.parts = append(lib.parts, p)
	}
	return lib
}

// with is a library in which the parts of another stand in place of those of
// the same name.
func (lib *library) with(other *library) *library {
	out := &library{name: lib.name + " with " + other.name, index: lib.index}
	for _, p := range lib.parts {
		if i, ok := other.index[p.name]; ok {
			p = other.parts[i]
		}
		out.parts = append(out.parts, p)
	}
	return out
}

// plus is a library with another's parts after its own.
func (lib *library) plus(other *library) *library {
	out := &library{name: lib.name + " and " + other.name, index: make(map[string]int)}
	out.parts = append(append(out.parts, lib.parts...), other.parts...)
	for i, p := range out.parts {
		out.index[p.name] = i
	}
	return out
}

// selected gives the named parts and all that they need, in the library's
// order, and their headers, sorted.
func (lib *library) selected(names map[string]bool) (parts []part, includes []string) {
	want := make([]bool, len(lib.parts))
	var add func(name, by string)
	add = func(name, by string) {
		i, ok := lib.index[name]
		if !ok {
			panic(fmt.Sprintf("parts/%s.txt has no part %q, which %s needs", lib.name, name, by))
		}
		if want[i] {
			return
		}
		want[i] = true
		for _, n := range lib.parts[i].needs {
			add(n, name)
		}
	}
	for n := range names {
		add(n, "a step")
	}
	seen := make(map[string]bool)
	for i, p := range lib.parts {
		if !want[i] {
			continue
		}
		parts = append(parts, p)
		for _, inc := range p.includes {
			if !seen[inc] {
				seen[inc] = true
				includes = append(includes, inc)
			}
		}
	}
	sort.Strings(includes)
	return parts, includes
}

func hasPart(parts []part, name string) bool {
	for _, p := range parts {
		if p.name == name {
			return true
		}
	}
	return false
}
