package repro

import (
	"strconv"
	"strings"
)

// nameTable gives the sockets of a trace names that a language accepts.
type nameTable struct {
	taken map[string]bool   // words of the language and of the program's helpers
	given map[string]string // by the trace's name
	// style turns a word with underscores into one of the language; nil
	// leaves it.
	style func(string) string
}

func newNameTable(lib *library, style func(string) string, words string) *nameTable {
	n := &nameTable{taken: make(map[string]bool), given: make(map[string]string), style: style}
	for _, w := range strings.Fields(words) {
		n.taken[w] = true
	}
	for _, p := range lib.parts {
		n.taken[n.styled(p.name)] = true
	}
	return n
}

func (n *nameTable) styled(s string) string {
	if n.style != nil {
		return n.style(s)
	}
	return s
}

// of is the variable of a socket.
func (n *nameTable) of(name string) string {
	if v, ok := n.given[name]; ok {
		return v
	}
	v := n.fresh(strings.ReplaceAll(name, "-", "_"))
	n.given[name] = v
	return v
}

// fresh is a variable like the word that no other has.
func (n *nameTable) fresh(word string) string {
	v := n.styled(word)
	// A word in capitals may be a macro of some header.
	if n.taken[v] || len(v) > 1 && v == strings.ToUpper(v) {
		v += "_"
	}
	for base, i := v, 2; n.taken[v]; i++ {
		v = base + strconv.Itoa(i)
	}
	n.taken[v] = true
	return v
}

// camel turns a_word_like_this into aWordLikeThis.
func camel(s string) string {
	parts := strings.Split(s, "_")
	out := parts[0]
	for _, p := range parts[1:] {
		if p != "" {
			out += strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return out
}
