package shrink_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func TestOneRefusalComesToOneTraceWhateverItWasSeenWith(t *testing.T) {
	const (
		shared = "socket a tcp4\nsocket b tcp4\nbind a 127.0.0.2:40000\nconnect b 127.0.0.1:40000"
		over6  = "socket a tcp6\nsocket b tcp4\nbind a [::]:40000\nconnect a [::1]:40000\nbind b 0.0.0.0:40000"
	)
	for _, c := range []struct{ name, start, want string }{
		{"a range of one port is simpler, whatever is bound where", "ports 40000-40001\nsocket a tcp4\nsocket b tcp4\nsocket c tcp4\n" +
			"bind a 127.0.0.1:40000\nbind b 127.0.0.2:40001\nconnect c 127.0.0.1:40000\n", shared},
		{"and another connection need not be there", "ports 40000-40001\nsocket a tcp4\nsocket b tcp4\nsocket c tcp4\n" +
			"bind a 127.0.0.2:40001\nlisten a\nconnect b 127.0.0.2:40001\nconnect c 127.0.0.2:40001\n", shared},
		{"a connection of a socket with itself is simpler than one that arrives", "socket a tcp6\nsocket b tcp4 reuseaddr\n" +
			"listen a\ninherit a c [::1]:40000\nbind b 0.0.0.0:40000\n", over6},
		{"also at the listener's port", "socket a tcp6 reuseaddr\nsocket b tcp4 reuseaddr\nbind a [::]:40000\n" +
			"listen a\ninherit a c [::1]\nset c reuseaddr=off\nclose a\nbind b 0.0.0.0:40000\n", over6},
	} {
		m := spec.NewMachine(spec.TCP, model.MustParse("6.18").New())
		tr := parse(t, c.start)
		v := violation(t, m, tr, "complete")
		got, _ := shrink.Run(tr, func(tr *rc.Trace) bool { return m.Shows(tr, v) >= 0 }, shrink.Options{MaxPairs: 2000})
		if d := cmp.Diff(c.want, steps(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}
