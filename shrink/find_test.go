package shrink_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
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

func TestAPortThatTheStackPicksOfItselfIsLeftOpen(t *testing.T) {
	for _, c := range []struct {
		system         *spec.System
		property       *spec.Property
		history, holds string
	}{
		{spec.UDP, spec.TableStructure, "system udp\nports 40000-40003\nsocket a udp4\nconnect a 127.0.0.1:40000\nconnect a 127.0.0.1:40001\n",
			"connect a 127.0.0.1:40000 => ok\n"},
		{spec.TCP, spec.Complete, "ports 40000-40000\nsocket a tcp6\nsocket b tcp4\nconnect a [::1]:40000\nlisten b\n",
			"connect a [::1]:40000 => ok 40000\n"}, // of a range that the trace gives
	} {
		stack := func() (rc.Stack, error) { return model.MustParse("6.18").Stack(c.system.Name) }
		s, err := stack()
		if err != nil {
			t.Fatal(err)
		}
		tr := parse(t, c.history)
		f := &shrink.Finder{System: c.system, Stack: stack}
		n, err := f.Shrink(context.Background(), tr, violation(t, spec.NewMachine(c.system, s), tr, c.property.Name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(n.Trace.String(), c.holds) {
			t.Errorf("want %sin\n%s", c.holds, n.Trace)
		}
	}
}
