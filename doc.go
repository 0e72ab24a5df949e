// Package reusecheck is the vocabulary of a model checker for the reuse
// semantics of sockets: who may bind, listen on, connect from or receive on an
// address and port that others already use.
//
// Everything that the checker's parts exchange is named here and nowhere else:
//
//   - [Op], one operation on a socket, and [Answer], what user space sees of it;
//   - [Result], an answer with the evidence behind it: the path taken, the
//     owners visited, the bind bucket's cache before and after;
//   - [Trace], a sequence of steps with their stated answers, and the trace
//     language it is written in ([Parse], [Trace.String]);
//   - [Socket], what is known of a live socket from outside;
//   - [Stack], whatever answers operations: a modelled kernel, the running
//     kernel, a kernel in an emulator, another TCP/IP implementation.
//
// The package needs the standard library only and decides nothing: what a
// kernel does is in package model, what it should do in package oracle.
package reusecheck
