package spec

import (
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// System is one short cut under test, as the engines see it: an oracle,
// properties, the steps that there are, and what else the engines ask of it. No
// engine knows which system it runs.
type System struct {
	Name       reusecheck.System
	Doc        string
	Properties []*Property
	// Strict says that any disagreement parts the stack from its oracle, so
	// that a history ends there; else only a grant that the oracle refuses does.
	Strict bool
	// Lasting says that a stack whose structure is broken goes on answering as
	// that stack does, so that the history goes on too.
	Lasting bool
	// Say puts a violation into words where it is of the system's own kind; it
	// gives "" for what [Sentence] says of any. It may be nil.
	Say func(*Observation, Violation) string
	// Steps is the length of a random history, 0 for [DefaultSteps].
	Steps int
	// Explored is the world that is explored where none is named, in the words of
	// package explore.
	Explored string
	// Packed says that package model packs the system's states into words, so that
	// package explore has an engine for them beside the one that plays histories.
	Packed bool
	// Cache is the property of a cache that each port has, which can be read on a
	// running kernel, and which a plain bind elsewhere on the port empties; nil for
	// a system without.
	Cache *Property
	// Unproved says why an argument about one cache and one owner does not carry
	// over to it, "" where it does.
	Unproved string
	// Needs names what a machine must have for anything to be tested on it, in the
	// words of package live's features; Alone says why histories cannot be played
	// on it side by side, "" where they can.
	Needs []string
	Alone string
	// World is the default domain of the generator.
	World func() *World
	// NewOracle makes the reference, NewGhost the cache that the documented
	// intent would keep, NewGenerator a source of operations in a world, NewMenu
	// the list of them.
	NewOracle    func() Oracle
	NewGhost     func() Ghost
	NewGenerator func(*World) Generator
	NewMenu      func(*World) Menu
}

// Property finds one of the system's properties by name.
func (s *System) Property(name string) *Property {
	for _, p := range s.Properties {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Oracle judges a stack's answers, step by step. It knows the live sockets from
// the operations and from what the stack answered, never from the stack itself.
type Oracle interface {
	// Reset forgets everything and starts in a fresh namespace.
	Reset(reusecheck.Config)
	// Judge says what op should be answered, given what the stack answered
	// (which counts only where several answers are allowed). It changes nothing.
	Judge(op reusecheck.Op, got reusecheck.Answer) oracle.Verdict
	// Follow takes note that op was answered got: whether right or wrong, it
	// has happened.
	Follow(op reusecheck.Op, got reusecheck.Answer)
	// Sockets calls yield for every live socket as the oracle knows it.
	Sockets(yield func(*reusecheck.Socket) bool)
}

// Ghost is the cache that a specification keeps beside a stack: what the
// stack's own would say if it were kept by the documented intent.
type Ghost interface {
	Reset()
	// Before looks at an operation that is about to be done and gives the
	// cache of the port it concerns, and the socket as it was when the stack's
	// own cache was last keyed to it, nil when it was to none. live are the
	// sockets before it.
	Before(op reusecheck.Op, live []reusecheck.Socket) (reusecheck.Cache, *reusecheck.Socket)
	// After takes note of the result and gives that cache after it. live
	// are the sockets after it.
	After(op reusecheck.Op, got reusecheck.Result, live []reusecheck.Socket) reusecheck.Cache
	// Admitted is the socket as it was when it last passed a check, nil when
	// it never did (it came by a connection).
	Admitted(id reusecheck.ID) *reusecheck.Socket
}

// Source makes a generator's choices: a random number generator, or rapid.
type Source interface {
	// Intn gives a number from 0 to n-1, for n of at least 1.
	Intn(n int) int
}

// Generator makes operations that can be asked of the sockets that live.
type Generator interface {
	// Start begins a history: it picks the part of the world that this
	// history uses, and its configuration.
	Start(Source) reusecheck.Config
	// Next gives the history's next operation.
	Next(src Source, live []reusecheck.Socket) reusecheck.Op
	// Verbs are the verbs it can give now; Of gives an operation of one verb,
	// false when none fits the sockets that live.
	Verbs() []reusecheck.Verb
	Of(v reusecheck.Verb, src Source, live []reusecheck.Socket) (reusecheck.Op, bool)
}
