// Package spec says what must hold of a stack, and looks for a history in which
// it does not.
//
// The properties are named values ([Sound], [Complete], [Precise], [Structure]).
// A [Machine] holds a stack to them one operation at a time, with an oracle and
// a ghost cache beside it. Histories come from one generator with two drivers:
// [Search], which is fast, and a rapid state machine ([Check]), which fits into
// go test and into native fuzzing. A stack of your own takes six lines:
//
//	func TestMyStack(t *testing.T) {
//		spec.Check(t, spec.TCP, func() (reusecheck.Stack, error) { return mystack.New(), nil })
//	}
package spec
