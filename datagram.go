package reusecheck

import (
	"slices"
	"strings"
)

// Lookup is the evidence behind a send's answer: how the stack came to the
// socket that got the datagram.
type Lookup struct {
	// Table is the part that the 4-tuple table of connected sockets had, and
	// Compared how many of its entries were looked at.
	Table    Table
	Compared int
	// Could are the sockets that could have got the datagram: more than one
	// where a hash picks among the members of a reuseport group.
	Could []ID
	// Scored are the sockets that could have got it without the short cut that
	// gave it: if every socket had been scored in the place of the table, or the
	// table asked in the place of early demultiplexing. Empty where a score gave it.
	Scored []ID
}

// Table says what a 4-tuple table did in a look-up.
type Table uint8

// The parts of the 4-tuple table (Linux 6.13 and later).
const (
	TableNone    Table = iota // the stack has none, or does not say
	TableSkipped              // a counter said that it holds nothing for this address
	TableMissed               // it was searched in vain
	TableHit                  // it gave the receiver
)

var tableNames = [...]string{TableNone: "none", TableSkipped: "skipped", TableMissed: "missed", TableHit: "hit"}

func (t Table) String() string { return nameOf(tableNames[:], int(t), "table") }

// Faults are what an [Inspector]'s Check finds wrong with the stack that it
// models, as opposed to a mistake of the model.
type Faults []Fault

// Fault is one thing that is wrong in a stack's structure.
type Fault struct {
	Kind string // in words that are the same for every fault of a kind
	Sock ID     // the socket that it is about, NoID for none
	Text string
}

func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = f[i].Text
	}
	return strings.Join(texts, "; ")
}

// New gives the faults of f that are not in old.
func (f Faults) New(old Faults) Faults {
	var fresh Faults
	for _, x := range f {
		if !slices.ContainsFunc(old, func(o Fault) bool { return o.Kind == x.Kind && o.Sock == x.Sock }) {
			fresh = append(fresh, x)
		}
	}
	return fresh
}
