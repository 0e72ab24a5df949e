package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// worlds are where each known bug is looked for: no more than what its history
// is about.
var worlds = map[string]struct {
	words   string
	sockets int
	note    string
}{
	"1": {"tcp4 addr=127.0.0.1 reuseaddr auto ports=8", 2, "walked; 4.9 shares automatic ports as a last resort anyway, within a part and a parity: " +
		"telling the two apart takes two ports of both, a range of eight"},
	"2":  {"tcp4 addr=127.0.0.1 reuseaddr auto autobind-reuse close", 2, ""},
	"3":  {"tcp4 addr=127.0.0.1 reuseaddr reuseport auto autobind-reuse listen close", 2, ""},
	"4":  {"tcp6 addr=::1,fd00::1 reuseport listen close", 3, ""},
	"6":  {"tcp6 addr=::,::1,fd00::1 reuseport listen close", 3, ""},
	"7":  {"tcp4 tcp6 addr=0.0.0.0,127.0.0.1,:: v6only reuseaddr listen close", 4, ""},
	"8":  {"v4 set-opt", 2, ""},
	"9":  {"tcp4 addr=0.0.0.0,127.0.0.1 listen connect close ports=2", 3, ""},
	"11": {"tcp4 addr=0.0.0.0,127.0.0.1,127.0.0.2 connect listen close ports=2", 3, ""},
	"13": {"tcp4 addr=0.0.0.0,127.0.0.1 connect listen close ports=2", 3, ""},
	"14": {"tcp4 addr=127.0.0.1 listen inherit timewait close", 3, "a listener, its child and the binder; the child's client is outside"},
	"15": {"tcp4 tcp6 addr=::,127.0.0.1 close", 2, ""},
	"16": {"tcp4 tcp6 addr=::ffff:0.0.0.0,127.0.0.1 close", 2, ""},
	"17": {"tcp4 tcp6 addr=::ffff:127.0.0.1,127.0.0.1 close", 2, ""},
	"18": {"tcp4 tcp6 addr=0.0.0.0,::,127.0.0.1 v6only close", 3, ""},
	"19": {"tcp6 addr=::,::ffff:127.0.0.1 v6only close", 2, ""},
	"22": {"tcp4 addr=127.0.0.1,127.0.0.2,0.0.0.0 no-port reuseaddr listen connect close ports=2", 4, "a connection needs a listener on another port, and two steps to bring it there"},
	"23": {"tcp4 addr=127.0.0.1,127.0.0.2 no-port listen connect close ports=2", 3, "as 22"},
	"24": {"v4", 1, ""},
	"25": {"tcp4 addr=127.0.0.1 reuseport uid=2 listen inherit timewait close", 3, "a bind, a listen, the connection and its end, then the listener goes and the binder comes: six steps"},
	"26": {"tcp4 addr=0.0.0.0,127.0.0.1 reuseport dev=3 listen inherit rivals close", 3, "a bind and a listen for each of two listeners, then the connection: five steps"},
	"28": {"tcp4 tcp6 addr=::,0.0.0.0,127.0.0.1 reuseport listen inherit rivals close", 3, "as 26"},
	"E1": {"tcp6 addr=::ffff:0.0.0.0,::ffff:127.0.0.1 close", 2, ""},
	"E2": {"tcp4 addr=0.0.0.0,127.0.0.1 reuseport uid=2 listen connect unaccepted ports=2", 3, "walked"},
	"27": {"tcp4 addr=127.0.0.1 reuseport cpu=1 listen inherit rivals", 3, "walked; as 26"},
}

var errDone = errors.New("found")

// recall puts each known bug back and writes a table of what finds it.
func recall(ctx context.Context) error {
	fmt.Printf("# Recall\n\nEach sequential bug of the model's history, put back into the kernel that it lived in, is looked for by exploration: the first\n" +
		"history, shortest first, that violates a property there and not where the bug is mended. Steps do not count socket lines. *Walked* are\n" +
		"worlds of which the states have no words, by the engine of the second table, as there every violation compared.\n\n" +
		"    go run ./bench/explore recall > bench/recall.md\n\n" +
		"| id | kernel | world | sockets | property | steps | states | s | |\n|---|---|---|---|---|---|---|---|---|\n")
	missed := 0
	for _, row := range model.History() {
		w := worlds[row.ID]
		n, err := tellRow(row, w.words, w.sockets, w.note, func() (string, error) { return recallRow(ctx, row, w.words, w.sockets) })
		if err != nil {
			return err
		}
		missed += n
	}
	more, err := recallWalks(ctx)
	if err != nil {
		return err
	}
	if missed += more; missed > 0 {
		fmt.Fprintf(os.Stderr, "%d rows were missed\n", missed)
	}
	return nil
}

// tellRow prints a row of the table, and counts it when its bug is missed.
func tellRow(row model.Row, words string, sockets int, note string, look func() (string, error)) (missed int, err error) {
	if sockets == 0 || row.Lives == "" {
		fmt.Printf("| %s | %s | - | - | - | - | - | - | %s |\n", row.ID, row.Lives, note)
		return 0, nil
	}
	line, err := look()
	if err != nil {
		return 0, fmt.Errorf("row %s: %w", row.ID, err)
	}
	if line == "" {
		missed, line = 1, fmt.Sprintf("| %s | %s | `%s` | %d | **missed** | - | - | - |", row.ID, row.Lives, words, sockets)
	}
	fmt.Printf("%s %s |\n", line, note)
	return missed, nil
}

func recallRow(ctx context.Context, row model.Row, words string, most int) (string, error) {
	healed, err := model.Parse(row.Healed)
	if err != nil {
		return "", err
	}
	control := spec.NewMachine(spec.TCP, healed.New())
	start := time.Now()
	for n := 1; n <= most; n++ {
		e, kernel, err := engineIn(row.Lives, words, n)
		if err != nil {
			return "", err
		}
		h, property, err := first(ctx, e, explore.NewJudge(kernel, nil), control)
		if err != nil {
			return "", err
		}
		if h != nil {
			return fmt.Sprintf("| %s | %s | `%s` | %d | %s | %d | %d | %.2f |", row.ID, row.Lives, words, n, property, h.Depth, h.States,
				time.Since(start).Seconds()), nil
		}
	}
	return "", nil
}

// engine is a search or a walk.
type engine interface {
	Run(context.Context, func(*explore.History) error) (*explore.Outcome, error)
}

// engineIn is the engine of a world of TCP.
func engineIn(kernel, words string, sockets int) (engine, *model.Profile, error) {
	s, err := searchIn(kernel, words, sockets)
	if err != nil {
		return nil, nil, err
	}
	if explore.Packable(spec.TCP, s.World) == "" {
		return s, s.Kernel, nil
	}
	return &explore.Walk{System: spec.TCP, World: s.World, Sockets: sockets, Every: true, Workers: s.Workers, Memory: s.Memory,
		Stack: func() (reusecheck.Stack, error) { return s.Kernel.New(), nil }}, s.Kernel, nil
}

// first is the first history, shortest first, whose violation the mended kernel
// does not show in it, with the property; nil when there is none.
func first(ctx context.Context, e engine, judge *explore.Judge, mended *spec.Machine) (found *explore.History, property string, err error) {
	_, err = e.Run(ctx, func(h *explore.History) error {
		fails, err := judge.Failures(h)
		if err != nil {
			return err
		}
		for _, f := range fails {
			if mended.Shows(stripped(h.Trace), f.Violation) < 0 {
				found, property = h, f.Violation.Property
				return errDone
			}
		}
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if found != nil {
		err = nil
	}
	return found, property, err
}

// stripped is a trace without answers, which are another kernel's.
func stripped(t *reusecheck.Trace) *reusecheck.Trace {
	c := t.Clone()
	for i := range c.Steps {
		c.Steps[i].Want, c.Steps[i].Oracle = reusecheck.Answer{}, reusecheck.Answer{}
	}
	return c
}
