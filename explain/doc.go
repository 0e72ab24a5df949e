// Package explain tells the story of a trace: a paragraph a step, with the owners
// that were looked at or skipped, the one that decided and the rule in words, what
// the oracle says, and for a refused step the smallest change that makes it
// succeed.
//
// It decides nothing itself. What happened it takes from a [spec.Machine] that
// replays the trace on a modelled kernel; why an owner may be shared with, from the
// oracle, asked again without one option or the other; what would help, from
// replaying changed traces on the same kernel ([Remedy]).
package explain
