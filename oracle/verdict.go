// Package oracle says what a stack should answer. It looks at every live socket,
// keeps no cache and no bucket, and is written from the documented semantics of
// SO_REUSEADDR, SO_REUSEPORT, dual-stack sockets and automatic ports: nothing in
// it is taken from package model, which it exists to contradict.
package oracle

import "github.com/reusecheck/reusecheck"

// Verdict is the reference answer to one operation.
type Verdict struct {
	// Want is the reference answer. Where several are allowed (which
	// automatic port), it is the stack's own if that is one of them.
	Want reusecheck.Answer
	// Port is a port that is to be had for a connect that was refused one, 0 in
	// other verdicts. Want does not tell it where nobody listens at the other end.
	Port uint16
	// Agrees says that the stack's answer is one of those allowed.
	Agrees bool
	// Conflicts are all owners that stand against the request, each with
	// the rule that makes it so. The slice is valid until the next call.
	Conflicts []Conflict
	// Allowed are the receivers that a datagram may have, where there are any;
	// Shared are those of them among which it has to be shared out, members of
	// one reuseport group. Both are valid until the next call.
	Allowed, Shared []reusecheck.ID
	// Exit is what an exit meets, nil for other steps. It is valid until the
	// next call.
	Exit *Exit
	// Open is why the documents leave this step open, "" when it is judged.
	// An open step agrees with everything.
	Open string
	// Reference is the whole result of a reference that is a stack itself,
	// nil otherwise.
	Reference *reusecheck.Result
}

// Conflict is one owner that stands against a request, and the rule.
type Conflict struct {
	Owner  reusecheck.ID
	Reason reusecheck.Reason
}
