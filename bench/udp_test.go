package bench_test

import (
	"context"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/model"
)

func deliver(t *testing.T, kernel string, connected bool, peers, n int) bench.Datagrams {
	t.Helper()
	s, err := model.MustParse(kernel).Stack(reusecheck.UDP)
	if err != nil {
		t.Fatal(err)
	}
	d, err := bench.Deliver(context.Background(), s, connected, peers, n)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheSocketsScoredForADatagramAreThoseOfTheSeriesTable(t *testing.T) {
	want := map[string][2]int{"a": {1, 0}, "b": {1, 0}, "c": {bench.Peers, 0}, "d": {0, 1}}
	for _, c := range bench.Cases {
		kernel := "6.12"
		if c.Table {
			kernel = "6.18"
		}
		d := deliver(t, kernel, c.Connected, bench.Peers, 1000)
		if got := [2]int{d.Scored, d.Compared}; got != want[c.Name] || d.Scored != d.Least {
			t.Errorf("case %s: %d to %d sockets scored, %d entries compared; want %v", c.Name, d.Least, d.Scored, d.Compared, want[c.Name])
		}
	}
}

func TestWithTheTableADatagramCostsTheSameForAnyNumberOfConnectedSockets(t *testing.T) {
	for _, peers := range []int{100, 20_000} {
		if d := deliver(t, "6.18", true, peers, 500); d.Scored != 0 || d.Compared != 1 {
			t.Errorf("%d connected sockets: %d scored, %d compared", peers, d.Scored, d.Compared)
		}
	}
}

// interrupting is a stack that is interrupted at its first datagram.
type interrupting struct {
	reusecheck.Stack
	interrupt func()
	datagrams int
}

func (s *interrupting) Do(op reusecheck.Op) (reusecheck.Result, error) {
	if op.Verb == reusecheck.VSend {
		s.datagrams++
		s.interrupt()
	}
	return s.Stack.Do(op)
}

func TestAnInterruptWaitsForFewDatagramsWhereEachIsDear(t *testing.T) {
	model, err := model.MustParse("6.18").Stack(reusecheck.UDP)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(context.Background())
	s := &interrupting{Stack: model, interrupt: interrupt}
	_, err = bench.Deliver(ctx, s, true, 10_000, 10_000)
	if err != context.Canceled || s.datagrams > 10 {
		t.Errorf("%d datagrams after the interrupt: %v", s.datagrams, err)
	}
}
