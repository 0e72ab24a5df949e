package shrink_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// silent is a stack that gives its answers without the evidence, as a kernel does.
type silent struct{ rc.Stack }

func (s silent) Do(op rc.Op) (rc.Result, error) {
	r, err := s.Stack.Do(op)
	return rc.Result{Answer: r.Answer}, err
}

// What the STRICT cache forgets is found without an oracle's verdict: the kernel
// under test, a model here, is only asked again.
func TestAKernelHeldToItselfShowsWhatItsCacheForgets(t *testing.T) {
	steps := func(kernel string) map[string]int {
		self := &spec.Self{System: spec.TCP, Kernel: silent{model.MustParse(kernel).New()}, Seed: 6, Checks: 1200}
		finder := &shrink.FlipFinder{Self: self}
		got := map[string]int{}
		_, err := self.Run(context.Background(), func(flip *spec.Flip) bool {
			n, err := finder.Find(context.Background(), flip)
			if err != nil {
				t.Fatal(err)
			}
			if n == nil {
				return true
			}
			if err := n.Flip.Control.Validate(); err != nil {
				t.Errorf("the control cannot be run: %v\n%s", err, n.Flip.Control)
			}
			// Where it is the cache that is wrong the trace says so, and its control is right.
			if sound := n.Violation.Property == spec.Sound.Name; sound && (!n.Flip.Trace.Diverges() || n.Flip.Control.Diverges()) {
				t.Errorf("which answer is wrong is not stated:\n%s\nbut\n%s", n.Flip.Trace, n.Flip.Control)
			}
			switch causes, tr := n.Violation.Tags.Causes(), n.Flip.Trace; causes {
			case "reuseaddr", "device", "v6only":
				got[causes] = len(tr.Steps) - len(tr.Names)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(map[string]int{"reuseaddr": 3, "device": 3, "v6only": 3}, steps("6.18")); diff != "" {
		t.Errorf("6.18 (-want +got):\n%s", diff)
	}
	if got := steps("6.18+exact-strict-match"); len(got) > 0 {
		t.Errorf("with a cache that compares everything there is nothing to forget: %v", got)
	}
}
