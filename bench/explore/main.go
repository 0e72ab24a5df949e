// Command explore measures package explore: what it finds of the known bugs, how
// states grow with sockets, and how it compares with SPIN.
//
//	go run ./bench/explore recall > bench/recall.md
//	go run ./bench/explore growth > bench/growth.svg
//	go run ./bench/explore spin > bench/spin/spin.md
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	what := map[string]func(context.Context) error{"recall": recall, "growth": growth, "spin": compare}
	if len(os.Args) < 2 || what[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: explore recall, explore growth or explore spin [SOCKETS]")
		os.Exit(2)
	}
	if err := what[os.Args[1]](ctx); err != nil {
		fmt.Fprintf(os.Stderr, "explore: %v\n", err)
		os.Exit(1)
	}
}

// searchIn is an exploration of a kernel in a world.
func searchIn(kernel, words string, sockets int, props ...*spec.Property) (*explore.Search, error) {
	k, err := model.Parse(kernel)
	if err != nil {
		return nil, err
	}
	w, err := explore.ParseWorld(words)
	if err != nil {
		return nil, err
	}
	return &explore.Search{Kernel: k, World: w, Sockets: sockets, Workers: runtime.GOMAXPROCS(0), Properties: props, Memory: 12 << 30}, nil
}
