package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// walkWorlds are where the known bugs of the other systems are looked for.
var walkWorlds = map[string]struct {
	words      string
	sockets    int
	note       string
	properties []string
}{
	"27":  {"udp4 addr=127.0.0.1 reuseport send cpu=2", 2, "", nil},
	"29":  {"udp4 addr=0.0.0.0,127.0.0.1 crowd", 1, "eleven sockets are there to begin with", nil},
	"30":  {"udp4 addr=0.0.0.0,127.0.0.1 connect disconnect send", 1, "", nil},
	"31":  {"udp4 addr=0.0.0.0,127.0.0.1 connect send", 1, "", nil},
	"32":  {"udp4 addr=0.0.0.0,127.0.0.1 connect disconnect send", 1, "", nil},
	"33":  {"udp4 addr=127.0.0.1 dev=1 set-dev connect send arrivals no-early-demux", 1, "", nil},
	"34":  {"udp4 addr=0.0.0.0,127.0.0.1 connect disconnect send", 1, "", nil},
	"35":  {"udp4 addr=127.0.0.1 reuseport connect send", 3, "", nil},
	"36":  {"udp4 addr=127.0.0.1 reuseport connect send group=127", 2, "127 members are there to begin with, and the 129th makes the group grow", nil},
	"37":  {"udp4 addr=127.0.0.1 reuseport connect send", 3, "a group of three, one of which connects, then the datagram: five steps", nil},
	"38":  {"", 0, "the trace language has no such moment", nil},
	"E3":  {"udp4 addr=0.0.0.0,127.0.0.1 reuseaddr reuseport close", 3, "", nil},
	"E4":  {"udp4 addr=127.0.0.1 reuseaddr dev=1 connect send arrivals no-early-demux", 2, "", lookup},
	"E5":  {"udp4 addr=127.0.0.1 reuseport connect disconnect send", 2, "", lookup},
	"E6":  {"udp6 addr=::1,fd00::1 connect disconnect send", 1, "", nil},
	"E7":  {"udp4 addr=127.0.0.1 reuseport connect send", 2, "", lookup},
	"E8":  {"udp4 addr=127.0.0.1 reuseport uid=2 reuseaddr connect send", 3, "", nil},
	"E9":  {"udp4 addr=127.0.0.1 reuseport dev=1 disconnect send", 2, "", nil},
	"E12": {"udp4 addr=127.0.0.1 reuseaddr dev=1 set-dev connect send arrivals", 2, "", nil},
	"E13": {"udp4 addr=127.0.0.1 reuseport connect disconnect send cpu=1 set-cpu", 2, "two connect to one peer, a datagram is counted, one asks for a processor, and a datagram shows it: five steps", nil},
	"E14": {"udp6 addr=::1 reuseaddr dev=3 connect send cpu=1", 2, "", nil},
	"E10": {"udp4 udp6 addr=0.0.0.0,::,::1 connect", 2, "", nil},

	"39":  {"tcp4 addr=127.0.0.1 listen inherit timewait expire close nets=1", 2, "a bind, a listen, the connection and its end, then the exit: five steps", nil},
	"40":  {"tcp4 addr=127.0.0.1 listen inherit timewait expire close nets=1", 2, "as 39", nil},
	"44":  {"tcp4 tcp6 addr=127.0.0.1,::1 listen inherit timewait expire close nets=1", 2, "as 39", nil},
	"E11": {"tcp4 addr=127.0.0.1 nets=1", 1, "", nil},
	"41":  {"", 0, "no wrong answer by itself", nil},
	"42":  {"", 0, "the trace language has no kernel listeners", nil},
	"43":  {"", 0, "the trace language has no such moment", nil},
	"45":  {"", 0, "every interleaving of two exits is explored apart: `explore.Exits`", nil},
	"46":  {"", 0, "the trace language has no such moment", nil},
	"47":  {"", 0, "the trace language has no such moment", nil},
}

// lookup narrows a row to the property that it is about, where the mended kernel
// does without a table, and so without all that is wrong with it.
var lookup = []string{spec.Lookup.Name}

// recallWalks is recall for the systems that are explored by playing histories.
func recallWalks(ctx context.Context) (missed int, err error) {
	fmt.Printf("\n## UDP, and the exit of namespaces\n\nThe same by the engine that knows no system. Here every violation is compared, not the first of its kind: what UDP's tables do\n" +
		"wrong the mended kernel does wrong too, in other histories. Sockets that are there to begin with are not counted.\n\n" +
		"| id | kernel | world | sockets | property | steps | states | s | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, sys := range []*spec.System{spec.UDP, spec.TimeWait} {
		for _, row := range model.HistoryOf(sys.Name) {
			w := walkWorlds[row.ID]
			n, err := tellRow(row, w.words, w.sockets, w.note, func() (string, error) {
				return walkRow(ctx, sys, row, w.words, w.sockets, w.properties)
			})
			if err != nil {
				return missed, err
			}
			missed += n
		}
	}
	return missed, nil
}

// walkRow looks for the first violation, shortest first, that the mended kernel
// does not show in the same history.
func walkRow(ctx context.Context, sys *spec.System, row model.Row, words string, most int, properties []string) (string, error) {
	props, err := sys.Select(properties...)
	if err != nil {
		return "", err
	}
	stack := func(kernel string) (reusecheck.Stack, error) {
		p, err := model.ParseOf(sys.Name, kernel)
		if err != nil {
			return nil, err
		}
		return p.Stack(sys.Name)
	}
	mended, err := stack(row.Healed)
	if err != nil {
		return "", err
	}
	lives, err := stack(row.Lives)
	if err != nil {
		return "", err
	}
	world, err := explore.ParseWorld(words)
	if err != nil {
		return "", err
	}
	control, judge := spec.NewMachine(sys, mended), explore.JudgeOf(sys, lives, props)
	start := time.Now()
	for n := 1; n <= most; n++ {
		w := &explore.Walk{System: sys, World: world, Sockets: n, Properties: props, Every: true, Workers: runtime.GOMAXPROCS(0), Memory: 4 << 30,
			Stack: func() (reusecheck.Stack, error) { return stack(row.Lives) }}
		h, property, err := first(ctx, w, judge, control)
		if err != nil {
			return "", err
		}
		if h != nil {
			return fmt.Sprintf("| %s | %s | `%s` | %d | %s | %d | %d | %.2f |", row.ID, row.Lives, words, n, property, length(h.Trace, world), h.States,
				time.Since(start).Seconds()), nil
		}
	}
	return "", nil
}

// length counts steps but for socket and namespace lines, and what a world begins with.
func length(t *reusecheck.Trace, w *spec.World) int {
	n := 0
	for _, st := range t.Steps[len(w.Base):] {
		if v := st.Op.Verb; v != reusecheck.VSocket && v != reusecheck.VNetns {
			n++
		}
	}
	return n
}
