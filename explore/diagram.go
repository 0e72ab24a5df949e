package explore

import (
	"fmt"
	"io"
	"slices"
)

// diagram is a Boolean function of named variables as a reduced decision diagram:
// how a table that was asked of the model becomes a formula.
type diagram struct {
	vars  []variable // the first is asked first
	nodes []node
	root  int
}

// variable is one bit of one of a formula's words.
type variable struct {
	word string
	bit  uint
}

func (v variable) String() string { return fmt.Sprintf("%s%d", v.word, v.bit) }

type node struct{ at, no, yes int }

// diagramOf makes the diagram of a set of assignments: bit i of a key, from the
// top, is variable i's value. Keys need not be in order.
func diagramOf(vars []variable, keys []uint64) *diagram {
	slices.Sort(keys)
	keys = slices.Compact(keys)
	d := &diagram{vars: vars, nodes: make([]node, 2)}
	unique := map[node]int{}
	var build func(keys []uint64, at int) int
	build = func(keys []uint64, at int) int {
		left := len(vars) - at
		switch {
		case len(keys) == 0:
			return 0
		case left == 0 || left < 62 && len(keys) == 1<<left:
			return 1
		}
		bit := uint64(1) << (left - 1)
		cut, _ := slices.BinarySearchFunc(keys, bit, func(k, bit uint64) int {
			if k&bit == 0 {
				return -1
			}
			return 1
		})
		n := node{at, build(keys[:cut], at+1), build(keys[cut:], at+1)}
		if n.no == n.yes {
			return n.no
		}
		i, ok := unique[n]
		if !ok {
			i = len(d.nodes)
			unique[n] = i
			d.nodes = append(d.nodes, n)
		}
		return i
	}
	d.root = build(keys, 0)
	return d
}

// formula writes diagrams as definitions, each node once.
type formula struct {
	out  io.Writer
	next int
	err  error
}

func (f *formula) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(f.out, format, args...); err != nil && f.err == nil {
		f.err = err
	}
}

// write defines d with its variables replaced by terms, and gives its name.
func (f *formula) write(d *diagram, term func(variable) string) string {
	names := make([]string, len(d.nodes))
	names[0], names[1] = "false", "true"
	for i := 2; i < len(d.nodes); i++ { // children come first
		n := d.nodes[i]
		names[i] = fmt.Sprintf("d%d", f.next)
		f.next++
		f.printf("(define-fun %s () Bool (ite %s %s %s))\n", names[i], term(d.vars[n.at]), names[n.yes], names[n.no])
	}
	return names[d.root]
}
