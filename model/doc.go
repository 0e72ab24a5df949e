// Package model holds the modelled kernels: what each generation of Linux does
// when sockets share a TCP port, short cuts and all.
//
// There is one implementation, [TCP]. What sets generations apart is data: a
// [Generation] is a list of named [Change] values, each of which sets a rule,
// and a [Profile] is a generation with changes added or taken away, written
// "6.18+first-bind-fix". See changes.go to add one.
package model
