package reusecheck

import (
	"fmt"
	"strings"
	"testing"
)

// textOf is a trace of n sockets that bind, as large traces are.
func textOf(n int) string {
	var b strings.Builder
	b.WriteString("title    many sockets\n\n")
	for id := range ID(n) {
		fmt.Fprintf(&b, "socket %s tcp4 reuseaddr uid=%d\nbind %s 127.0.0.1:40000 => ok oracle EADDRINUSE\n", id, id, id)
	}
	return b.String()
}

// The times of a byte must not grow with the size: parsing is linear.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		text := []byte(textOf(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseWithin("", text, unbounded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPrint(b *testing.B) {
	trace := MustParse(textOf(1000))
	b.SetBytes(int64(len(trace.String())))
	b.ReportAllocs()
	for b.Loop() {
		_ = trace.String()
	}
}

func BenchmarkValidate(b *testing.B) {
	trace := MustParse(textOf(10))
	b.ReportAllocs()
	for b.Loop() {
		if err := trace.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}
