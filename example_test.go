package reusecheck_test

import (
	"fmt"

	"github.com/reusecheck/reusecheck"
)

func ExampleParse() {
	trace, err := reusecheck.Parse("overlap.trace", []byte(`
title reuseport-only socket slips past a reuseaddr-only owner
kernels 4.11-   # since the cache keeps an address

socket a tcp4 reuseaddr
socket b tcp4 reuseport reuseaddr
socket c tcp4 reuseport
bind a 127.0.0.1:40000 => ok
bind b 127.0.0.1:40000 => ok
bind c 127.0.0.1:40000 => ok oracle EADDRINUSE
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(trace)
	fmt.Println("counterexample:", trace.Diverges())
	// Output:
	// title    reuseport-only socket slips past a reuseaddr-only owner
	// kernels  4.11-
	//
	// socket a tcp4 reuseaddr
	// socket b tcp4 reuseaddr reuseport
	// socket c tcp4 reuseport
	// bind a 127.0.0.1:40000 => ok
	// bind b 127.0.0.1:40000 => ok
	// bind c 127.0.0.1:40000 => ok oracle EADDRINUSE
	// counterexample: true
}

func ExampleParseError() {
	_, err := reusecheck.Parse("overlap.trace", []byte("socket a tcp4 resueaddr\n"))
	fmt.Println(err)
	// Output:
	// overlap.trace:1:15: unknown option "resueaddr"; did you mean reuseaddr?
	//     socket a tcp4 resueaddr
	//                   ^
	//     expected v6only, reuseaddr, reuseport, no-port, transparent, uid=N, dev=DEV, cpu=N, netns=NAME or range=LO-HI
}
