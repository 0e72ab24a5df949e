package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func TestWhatWasShrunkUntilAnInterruptIsCountedAndNothingElse(t *testing.T) {
	stack, err := stacks(spec.TimeWait, "6.18")
	if err != nil {
		t.Fatal(err)
	}
	finder := &shrink.Finder{System: spec.TimeWait, Stack: stack}
	known, err := finder.FromTrace(t.Context(), reusecheck.MustParse("system timewait\nnetns a\nexit a\n"), spec.TimeWait.Properties)
	if err != nil {
		t.Fatal(err)
	}
	c := &Convergence{Finding: known, Others: map[string]int{}}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	const enough = 5
	told := 0
	err = converge(ctx, spec.TimeWait, stack, []*Convergence{c}, 1000, 1_000_000, func(done, of int) {
		if told = done; done == enough {
			interrupt()
		}
		if of != 1000 {
			t.Errorf("%d are to be shrunk", of)
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	// Every one that comes to its end does so in the same trace.
	if told < enough || told > 100 || c.Started != told || c.Reached != told {
		t.Errorf("%d were told of, %d counted, %d of them ended in the known trace", told, c.Started, c.Reached)
	}
}
