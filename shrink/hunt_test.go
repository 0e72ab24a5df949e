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

// hunted gives a hunt's findings, and how many failures of the search one after
// the other would lead to.
func hunted(t *testing.T, workers int, kernel string) []string {
	p := model.MustParse(kernel)
	stack := func() (reusecheck.Stack, error) { return p.New(), nil }
	world := spec.TCPWorld()
	if err := world.Without("connect", "inherit", "v6"); err != nil {
		t.Fatal(err)
	}
	s := &spec.Search{System: spec.TCP, Stack: stack, World: world, Seed: 5, Checks: 300, Workers: workers}
	var found []string
	_, err := shrink.Hunt(context.Background(), s, &shrink.Finder{System: spec.TCP, Stack: stack}, func(n *shrink.Finding) bool {
		found = append(found, n.Title()+"\n"+n.Trace.String())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAHuntFindsTheSameWhateverTheNumberOfWorkers(t *testing.T) {
	one := hunted(t, 1, "6.18")
	if len(one) < 4 {
		t.Fatalf("%d findings are too few to compare", len(one))
	}
	for _, workers := range []int{2, 5} {
		if d := cmp.Diff(one, hunted(t, workers, "6.18")); d != "" {
			t.Errorf("%d workers: %s", workers, d)
		}
	}
}

func TestAHuntIsWhatFindMakesOfTheFailuresOneByOne(t *testing.T) {
	p := model.MustParse("6.18")
	stack := func() (reusecheck.Stack, error) { return p.New(), nil }
	world := spec.TCPWorld()
	if err := world.Without("connect", "inherit", "v6"); err != nil {
		t.Fatal(err)
	}
	s := &spec.Search{System: spec.TCP, Stack: stack, World: world, Seed: 5, Checks: 300, Workers: 1, PerFinding: 3}
	f := &shrink.Finder{System: spec.TCP, Stack: stack, Retries: 1}
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
	if d := cmp.Diff(want, hunted(t, 3, "6.18")); d != "" {
		t.Error(d)
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
