package spec

import (
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

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

// Observation is one step with everything that a property may ask of it.
type Observation struct {
	Op      reusecheck.Op
	Got     reusecheck.Result
	Verdict oracle.Verdict
	// Ghost is the cache as the documented intent would have it, before and
	// after the step.
	GhostBefore, GhostAfter reusecheck.Cache
	// Broken is what the stack's own structure check said, nil when it is
	// sound or cannot be asked.
	Broken error
}

// Property is a named statement about every step of every history.
type Property struct {
	Name string
	Doc  string
	// Check gives the violation that the step shows, or nil.
	Check func(*Observation) *Violation
}

// Violation is one step at which a property does not hold.
type Violation struct {
	Property string
	// Kind tells apart the ways in which one property can fail, so that
	// shrinking does not slide from one finding to another.
	Kind string
}
