package shrink_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// hunting is a search of 6.18 with several findings.
func hunting(t *testing.T, workers int) *spec.Search {
	p := model.MustParse("6.18")
	world := spec.TCPWorld()
	if err := world.Without("connect", "inherit", "v6"); err != nil {
		t.Fatal(err)
	}
	return &spec.Search{System: spec.TCP, World: world, Seed: 5, Checks: 150, Workers: workers,
		Stack: func() (reusecheck.Stack, error) { return p.New(), nil }}
}

// hunted gives a hunt's findings.
func hunted(t *testing.T, workers int) []string {
	s := hunting(t, workers)
	var found []string
	_, err := shrink.Hunt(context.Background(), s, &shrink.Finder{System: spec.TCP, Stack: s.Stack}, func(n *shrink.Finding) bool {
		found = append(found, n.Title()+"\n"+n.Trace.String())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAHuntIsWhatFindMakesOfTheFailuresOneByOneWhateverTheNumberOfWorkers(t *testing.T) {
	s := hunting(t, 1)
	s.PerFinding = 3
	f := &shrink.Finder{System: spec.TCP, Stack: s.Stack, Retries: 1}
	var want []string
	if _, err := s.Run(context.Background(), func(fail spec.Failure) bool {
		n, err := f.Find(context.Background(), fail)
		if err != nil {
			t.Fatal(err)
		}
		if n != nil {
			want = append(want, n.Title()+"\n"+n.Trace.String())
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(want) < 4 {
		t.Fatalf("%d findings are too few to compare", len(want))
	}
	for _, workers := range []int{1, 2, 5} {
		if d := cmp.Diff(want, hunted(t, workers)); d != "" {
			t.Errorf("%d workers: %s", workers, d)
		}
	}
}

func TestAHuntStopsWhenItIsToldTo(t *testing.T) {
	p := model.MustParse("6.18")
	stack := func() (reusecheck.Stack, error) { return p.New(), nil }
	n := 0
	s := &spec.Search{System: spec.TCP, Stack: stack, Seed: 5, Workers: 3} // without an end of its own
	_, err := shrink.Hunt(context.Background(), s, &shrink.Finder{System: spec.TCP, Stack: stack}, func(*shrink.Finding) bool {
		n++
		return n < 2
	})
	if err != nil || n != 2 {
		t.Errorf("%d findings were given, not 2: %v", n, err)
	}
}
