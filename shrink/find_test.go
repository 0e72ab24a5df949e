package shrink_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func TestAFindingIsToldUpToTheStepThatShowsItWithThatStepsOwnViolation(t *testing.T) {
	const slip = "title  a slip\nsource here\n\nsocket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr reuseport\nsocket c tcp4 reuseport\n" +
		"bind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000\n"
	m := spec.NewMachine(spec.TCP, model.MustParse("6.18").New())
	own := violation(t, m, parse(t, slip), spec.Sound.Name)
	wider := own
	wider.Tags |= 1 << 63
	if !own.Same(wider) || own == wider {
		t.Fatalf("%v is no wider than %v", wider, own)
	}
	n, err := shrink.Tell(m, parse(t, slip+"listen c\n"), wider)
	if err != nil {
		t.Fatal(err)
	}
	if n.Violation != own || n.Sentence == "" {
		t.Errorf("%v is told as %v: %q", own, n.Violation, n.Sentence)
	}
	want := "title    a slip\nsource   here\n\nsocket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr reuseport\nsocket c tcp4 reuseport\n" +
		"bind a 127.0.0.1:40000 => ok\nbind b 127.0.0.1:40000 => ok\nbind c 127.0.0.1:40000 => ok oracle EADDRINUSE\n"
	if d := cmp.Diff(want, n.Trace.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
