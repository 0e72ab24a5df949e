package spec_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// stackOf makes stacks of one system of a modelled kernel.
func stackOf(sys *spec.System, kernel string) func() (reusecheck.Stack, error) {
	p := model.MustParse(kernel)
	return func() (reusecheck.Stack, error) { return p.Stack(sys.Name) }
}

func without(t testing.TB, words ...string) *spec.World {
	w := spec.TCPWorld()
	if err := w.Without(words...); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestStructureHoldsOnEveryGeneration(t *testing.T) {
	for _, g := range model.Generations() {
		t.Run(g.Name, func(t *testing.T) {
			rapid.Check(t, spec.Histories(spec.TCP, spec.TCPWorld(), stackOf(spec.TCP, g.Name), spec.Structure))
		})
	}
}
