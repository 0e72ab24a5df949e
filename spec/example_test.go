package spec_test

import (
	"fmt"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// generous is somebody's own stack: it grants everything.
type generous struct{}

func (generous) Reset(rc.Config) error { return nil }

func (generous) Do(rc.Op) (rc.Result, error) { return rc.Result{Answer: rc.Success}, nil }

// A stack of your own is held to the properties by one call in its test.
func ExampleCheck() {
	TestMyStack := func(t *testing.T) {
		spec.Check(t, spec.TCP, func() (rc.Stack, error) { return generous{}, nil }, spec.Sound)
	}
	_ = TestMyStack // run by go test, as func TestMyStack in your _test.go
}

// One history, judged step by step.
func ExampleMachine() {
	t := rc.MustParse(`
socket a tcp4
socket b tcp4
bind a 127.0.0.1:40000
bind b 0.0.0.0:40000
`)
	m := spec.NewMachine(spec.TCP, generous{})
	err := m.Replay(t, func(_ int, o *spec.Observation, found []spec.Violation) bool {
		for _, v := range found {
			fmt.Println(v.Property+":", spec.Sentence(o, v))
		}
		return true
	})
	fmt.Println(err)
	// Output:
	// sound: "bind b 0.0.0.0:40000" is granted although a (tcp4 127.0.0.1:40000, no option) stands against it: the binder has neither reuseaddr nor reuseport. The stack does not say how it came to that.
	// <nil>
}

// A modelled kernel is a stack like any other.
func ExampleCheck_model() {
	TestMyKernel := func(t *testing.T) {
		kernel := model.MustParse("6.18+first-bind-fix")
		spec.Check(t, spec.TCP, func() (rc.Stack, error) { return kernel.New(), nil }, spec.Structure)
	}
	_ = TestMyKernel
}
