// Package matrix asks, for every pair of socket kinds, what a kernel says to the
// second socket when the first one has the port: may it bind, may it listen, and
// did the cache or a look at the owners answer.
//
// A [Kind] is a row; [Parse] reads a list of them. [Fill] runs one small trace
// for each pair on any number of stacks, with the oracle beside each. The
// [Matrix] it makes is plain data, printed as a grid, as Markdown, as JSON and
// as one self-contained page.
package matrix
