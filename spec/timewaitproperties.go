package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

const purgeName = "purge"

// Purge is the property that an exit takes what is its own and nothing else.
var Purge = &Property{
	Name: purgeName,
	Doc: "When an exit returns, no TIME_WAIT socket of its namespaces is left, of either family, and none of another namespace " +
		"is gone. What an exit leaves stands in nobody's way.",
	Check: checkPurge,
}

// PreciseWalk is the property that no table is walked for nothing.
var PreciseWalk = &Property{
	Name: preciseName,
	Doc: "No table is walked when no namespace of the batch has a TIME_WAIT socket in it, and none more than once a pass. " +
		"Kernels from 6.9 on walk always: half-open requests of the kernel's own listeners are purged too and are not counted.",
	Check: checkWalks,
}

// Counts is the property that what is counted is what is there.
var Counts = &Property{
	Name: structureName,
	Doc: "A namespace's count of TIME_WAIT sockets equals those that it has, of both families, while it lives; it ends at zero " +
		"and is not used after.",
	Check: checkFaults,
}

// The ways in which an exit can be wrong.
const (
	leftBehind = "TIME_WAIT sockets of the batch are left"
	takenAlong = "TIME_WAIT sockets of another namespace are gone"
	inTheWay   = "refused because of a namespace that is gone"
	noReason   = "a table is walked although no namespace of the batch has TIME_WAIT sockets"
	ownForNone = "a namespace's own table is walked although it has no TIME_WAIT sockets"
	oneForNone = "a table is walked of which no namespace of the batch has TIME_WAIT sockets, beside one of which some have"
	walkedMore = "a table is walked more than once a pass"
)

func checkPurge(o *Observation) Violation {
	switch o.Op.Verb {
	case reusecheck.VExit:
		return checkExit(o)
	case reusecheck.VBind, reusecheck.VListen, reusecheck.VConnect:
		r, _ := o.Ghost.(*remains)
		if r != nil && r.left > 0 && !o.Verdict.Agrees && o.Got.Kind == reusecheck.Failed && len(o.Verdict.Conflicts) == 0 {
			return Violation{Property: purgeName, Kind: o.Op.Verb.String() + " " + inTheWay}
		}
	}
	return Violation{}
}

func checkExit(o *Observation) Violation {
	e := o.Verdict.Exit
	if e == nil || o.Got.Kind != reusecheck.Exited {
		return Violation{}
	}
	if o.Got.Left > 0 {
		return Violation{purgeName, leftBehind, leftTags(o)}
	}
	t := Tags(0)
	for _, id := range missing(o) {
		if s := o.Socket(id); s != nil {
			t |= familyTag(s)
		}
	}
	if t != 0 {
		return Violation{purgeName, takenAlong, t}
	}
	return Violation{}
}

func familyTag(s *reusecheck.Socket) Tags {
	if s.Family.Is6() {
		return left6
	}
	return left4
}

// leftTags are the families of what is left: those that the stack shows, or else
// all that the batch had, since a count does not tell.
func leftTags(o *Observation) (t Tags) {
	e := o.Verdict.Exit
	if o.Stack != nil {
		o.Stack.Sockets(func(s *reusecheck.Socket) bool {
			if s.State == reusecheck.TimeWait && slices.Contains(e.Gone, s.ID) {
				t |= familyTag(s)
			}
			return true
		})
	}
	if t != 0 {
		return t
	}
	for _, id := range e.Gone {
		if s := o.Socket(id); s != nil {
			t |= familyTag(s)
		}
	}
	return t
}

// missing are the TIME_WAIT sockets of other namespaces that the stack has not any
// more; none where it does not show those that it has.
func missing(o *Observation) (gone []reusecheck.ID) {
	if len(o.Verdict.Exit.Spared) == 0 || !o.Got.HasWaiting && o.Stack == nil {
		return nil
	}
	gone = append(gone, o.Verdict.Exit.Spared...)
	there := func(id reusecheck.ID) {
		gone = slices.DeleteFunc(gone, func(g reusecheck.ID) bool { return g == id })
	}
	if o.Got.HasWaiting {
		for _, id := range o.Got.Waiting {
			there(id)
		}
		return gone
	}
	o.Stack.Sockets(func(s *reusecheck.Socket) bool {
		if s.State == reusecheck.TimeWait {
			there(s.ID)
		}
		return len(gone) > 0
	})
	return gone
}

func checkWalks(o *Observation) Violation {
	e := o.Verdict.Exit
	if e == nil || o.Got.Kind != reusecheck.Exited {
		return Violation{}
	}
	passes := passesOf(o)
	if int(o.Got.Walks) <= passes*e.Most/2 { // the oracle allows for two
		return Violation{}
	}
	// A pass goes through each table that the batch is concerned with, the shared
	// one among them even where each namespace has its own.
	tables, kind := 1+e.Own, noReason
	switch {
	case e.Own == e.Namespaces, e.Waiting == 0 && int(o.Got.Walks) <= passes*e.Own:
		kind = ownForNone
	case e.Own > 0 && e.Waiting > 0:
		kind = oneForNone
	}
	if int(o.Got.Walks) > passes*tables {
		kind = walkedMore
	}
	return Violation{Property: preciseName, Kind: kind}
}

// passesOf is how many passes an exit made: two, one a family, where the stack
// does not say.
func passesOf(o *Observation) int {
	if o.Got.Passes > 0 {
		return o.Got.Passes
	}
	return 2
}

// sayTimeWait puts the violations of an exit into words.
func sayTimeWait(o *Observation, v Violation) string {
	op := o.Op.Text(o.Names)
	e := o.Verdict.Exit
	switch {
	case v.Property == structureName:
		return fmt.Sprintf("After %q the counts contradict what is there: %v.", op, o.Broken)
	case v.Property == purgeName && e == nil:
		return fmt.Sprintf("%q is refused with %s although its namespace has nothing that stands against it: what an exit left of a "+
			"namespace that is gone is taken for the new one's.", op, o.answer(o.Got.Answer))
	case e == nil:
		return ""
	case v.Kind == leftBehind:
		return fmt.Sprintf("%q returns and leaves %d of the TIME_WAIT sockets that its namespaces had (%s): what is left points at a "+
			"namespace that is no more.", op, o.Got.Left, o.list(e.Gone))
	case v.Kind == takenAlong:
		return fmt.Sprintf("%q also ends %s, which belongs to another namespace: its 4-tuple is free to be used again before the peer has "+
			"forgotten it.", op, o.list(missing(o)))
	case v.Kind == walkedMore:
		return fmt.Sprintf("%q walks %s in %s, and each of them needs one walk of a table at most.", op,
			times(int(o.Got.Walks), "once", "%d times"), times(passesOf(o), "one pass", "%d passes"))
	case v.Property == preciseName:
		return fmt.Sprintf("%q walks through %s, although %s: the count would tell. %s: half-open requests of the kernel's own "+
			"listeners, which a walk drops too, are in no count.", op, times(int(o.Got.Walks), "a whole table", "whole tables %d times"),
			who(e), gaveUp[v.Kind])
	}
	return ""
}

// gaveUp says why the skip was given up.
var gaveUp = map[string]string{
	noReason:   "Kernels from 6.1 to 6.8 asked it and left the walk out, which 2a750d6a5b36 gave up",
	oneForNone: "A namespace's own table is walked always since 740ea3c4a0b2, before 6.1, and the shared one since 2a750d6a5b36, in 6.9",
	ownForNone: "A namespace's own table is walked always since 740ea3c4a0b2, before 6.1",
}

// who says how many of a batch have TIME_WAIT sockets.
func who(e *oracle.Exit) string {
	switch {
	case e.Waiting == 0 && e.Namespaces == 1:
		return "the namespace has no TIME_WAIT socket"
	case e.Waiting == 0:
		return fmt.Sprintf("none of the %d namespaces has a TIME_WAIT socket", e.Namespaces)
	case e.Own < e.Namespaces:
		return fmt.Sprintf("only %d of the %d namespaces, of which %d with a table of its own and the others with a shared one, have TIME_WAIT sockets",
			e.Waiting, e.Namespaces, e.Own)
	}
	return fmt.Sprintf("only %d of the %d namespaces, each with a table of its own, have TIME_WAIT sockets", e.Waiting, e.Namespaces)
}

func times(n int, one, more string) string {
	switch {
	case n == 1:
		return one
	case strings.Contains(more, "%d"):
		return fmt.Sprintf(more, n)
	}
	return more
}

// list names sockets with their family and address.
func (o *Observation) list(ids []reusecheck.ID) string {
	var s []string
	for _, id := range ids {
		what := o.name(id)
		if sock := o.Socket(id); sock != nil {
			what += ": " + sock.Family.String() + " " + sock.Local.String()
		}
		s = append(s, what)
	}
	return strings.Join(s, "; ")
}
