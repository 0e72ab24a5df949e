package explain_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/explain"
	"github.com/reusecheck/reusecheck/model"
)

func TestSocketsBecomeATraceInTheOrderGiven(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"tcp4 0.0.0.0:80 reuseaddr listen; tcp4 127.0.0.1:80 reuseaddr",
			"socket a tcp4 reuseaddr; bind a 0.0.0.0:80; listen a; socket b tcp4 reuseaddr; bind b 127.0.0.1:80"},
		{" tcp6 v6only listen connect [::1]:9 [::]:1 ;; close a;",
			"socket a tcp6 v6only; bind a [::]:1; listen a; connect a [::1]:9; close a"},
		{"udp4 uid=7 dev=lo; send 127.0.0.1:9 -> 127.0.0.1:1", "socket a udp4 uid=7 dev=lo; send 127.0.0.1:9 -> 127.0.0.1:1"},
		{"tcp4 192.168.0.7:1; tcp4 10.0.0.1:1; tcp6 [::ffff:192.168.0.7]:1; tcp6 [2001:db8::1]:1",
			"socket a tcp4; bind a 127.1.0.1:1; socket b tcp4; bind b 127.1.0.2:1; socket c tcp6; bind c [::ffff:127.1.0.1]:1; " +
				"socket d tcp6; bind d [fd00::1]:1"},
	} {
		tr, _, err := explain.Sockets(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		var steps []string
		for _, s := range tr.Steps {
			steps = append(steps, s.Text(tr.Name))
		}
		if d := cmp.Diff(c.want, strings.Join(steps, "; ")); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, d)
		}
	}
}

func TestAnErrorInSocketsNamesThePlaceTheExpectationAndTheNearestWord(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"tcp4 0.0.0.0:80 reusaddr", `--sockets:1:17: unknown word "reusaddr"; did you mean reuseaddr?`},
		{"tpc4 0.0.0.0:80", `--sockets:1:1: unknown family or step "tpc4"; did you mean tcp4?`},
		{"tcp4 0.0.0.0:80; clse a", `--sockets:1:18: unknown family or step "clse"; did you mean close?`},
		{"tcp4 1.2.3.4", `--sockets:1:13: the port of 1.2.3.4 is missing`},
		{"tcp4 0.0.0.0:80 listen; tcp4 0.0.0.0:99999", `--sockets:1:38: "99999" is not a port`},
		{"tcp4 0.0.0.0:80 uid=x", `--sockets:1:21: "x" is not a uid`},
		{"tcp4 0.0.0.0:80 dev=eth0", `--sockets:1:21: unknown device "eth0"`},
		{"tcp4 0.0.0.0:80 0.0.0.0:81", `--sockets:1:17: a second address`},
		{"tcp4 0.0.0.0:80 connect", `--sockets:1:24: the address to connect to is missing`},
		{"tcp4 0.0.0.0:80; udp4 0.0.0.0:80", `--sockets:1:18: a udp socket among tcp sockets`},
		{"tcp4 0.0.0.0:80\nlisten;\n tcp4 x", `--sockets:3:7: unknown word "x"`},
		{"tcp4 0.0.0.0:80\ntcp4 0.0.0.0:80", `--sockets:2:1: the socket before tcp4 has no end`},
		{"close b", `--sockets:1:7: b is not defined`},
		{"tcp4 0.0.0.0:80 reuseaddr reuseaddr", `--sockets:1:27: reuseaddr is given twice`},
		{"", `--sockets:1:1: no socket is given`},
		{" ; ", `--sockets:1:1: no socket is given`},
	} {
		_, _, err := explain.Sockets(c.text)
		var pe *rc.ParseError
		if !errors.As(err, &pe) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// FuzzSockets reads arbitrary texts: what is read is a trace, and what is not is
// refused at a place of the text.
func FuzzSockets(f *testing.F) {
	f.Add("tcp4 0.0.0.0:80 reuseaddr listen; tcp4 127.0.0.1:80 reuseaddr")
	f.Add("udp6 [::]:53 dev=lo; send [::1]:9 -> [::1]:53")
	f.Add("tcp6 [2001:db8::1]:1 connect 10.0.0.1:2; timewait a; é")
	f.Fuzz(func(t *testing.T, text string) {
		tr, _, err := explain.Sockets(text)
		var pe *rc.ParseError
		switch {
		case err == nil:
			if err := tr.Validate(); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if len(tr.Steps) < 12 {
				explain.Tell(context.Background(), tr, model.MustParse("6.18"))
			}
		case !errors.As(err, &pe), pe.Line < 1, pe.Line > 1+strings.Count(text, "\n"), pe.Column < 1, pe.Column > len(text)+1:
			t.Fatalf("%q: %v", text, err)
		}
	})
}
