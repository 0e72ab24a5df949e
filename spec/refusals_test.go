package spec_test

import (
	"slices"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

func TestAWrongRefusalIsNamedByWhatIsTakenForAConflict(t *testing.T) {
	const over6 = "socket a tcp6\nbind a [::]:40000\nconnect a [::1]:40000\n"
	for _, c := range []struct{ name, system, kernel, text, want string }{
		{"whichever option the owner is held against by", "tcp", "6.18",
			over6 + "socket b tcp4 reuseaddr\nbind b 0.0.0.0:40000", "complete: bind refused (IPv6 connection)"},
		{"and whatever the request is", "tcp", "6.18",
			"ports 40000-40000\nsocket a tcp6\nsocket b tcp4\nconnect a [::1]:40000\nlisten b", "complete: listen without a port refused (IPv6 connection)"},
		{"not every owner of an IPv6 address is connected", "tcp", "6.18",
			"ports 40000-40000\nsocket a tcp6 no-port\nsocket b tcp4\nbind a [::1]:0\nset a v6only=off\nlisten a\nlisten b",
			"complete: listen without a port refused (change after bind)"},
		{"a connection that gets to a listener which another device let in", "tcp", "6.18",
			"socket a tcp4 dev=lo\nsocket b tcp4 reuseport dev=d1\nbind a 127.0.0.1:40000\nlisten a\nbind b 127.0.0.1:40000\nlisten b\nset b dev=none\ninherit b c 127.0.0.1",
			"complete: inherit granted (change after bind)"},
		{"as one that holds its port", "tcp", "6.18",
			"socket a tcp4\nsocket b tcp6\nbind a 0.0.0.0:40000\nlisten b\ninherit b c [::1]:40000\nlisten a", "complete: listen refused (IPv6 connection)"},
		{"an owner elsewhere in the range has no part in it", "tcp", "6.18",
			"ports 40000-40001\nsocket a tcp4\nsocket b tcp6\nsocket c tcp4\nbind a 127.0.0.1:40001\nconnect b [::1]:40000\nbind c 0.0.0.0:0",
			"complete: bind refused (IPv6 connection)"},
		{"a datagram socket too", "udp", "6.18",
			"socket a udp6\nsocket b udp4\nbind a [::]:40000\nconnect a [::1]:40000\nbind b 0.0.0.0:40000", "complete: bind refused (IPv6 connection)"},
		{"a v6only owner", "tcp", "6.12-mapped-past-v6only",
			"socket a tcp6 v6only\nsocket b tcp6\nbind a [::]:40000\nbind b [::ffff:127.0.0.1]:40000", "complete: bind refused (v6only)"},
		{"a connection that waits is taken for another user's", "tcp", "6.18-unaccepted-child-user",
			"socket l tcp6 reuseport uid=1001\nsocket c tcp6\nsocket d tcp4\nsocket b tcp6 reuseport uid=1001\nbind l [::1]:40000\nlisten l\n" +
				"connect c [::1]:40000 unaccepted\nbind d 127.0.0.1:40000\nbind b [::1]:40000", "complete: bind refused (user)"},
		{"nothing is said of a request over IPv6", "tcp", "6.18-timewait-reuseport",
			"socket a tcp6 reuseport\nsocket d tcp4\nsocket b tcp6 reuseport\nbind a [::1]:40000\nconnect a [::1]:40000\ntimewait a\n" +
				"bind d 127.0.0.1:40000\nbind b [::1]:40000", "complete: bind refused"},
		{"a port to connect from that somebody bound", "tcp", "6.18",
			"ports 40000-40000\nsocket a tcp4\nsocket b tcp4\nbind a 127.0.0.2:40000\nconnect b 127.0.0.1:9", "complete: connect refused (explicit bind)"},
		{"the port that is to be had decides, not the first that is not", "tcp", "6.18",
			"ports 40000-40001\nsocket a tcp4\nsocket b tcp4\nsocket c tcp4\nbind a 127.0.0.2:40001\nlisten a\nconnect b 127.0.0.2:40001\nconnect c 127.0.0.2:40001",
			"complete: connect refused (explicit bind)"},
		{"a port that somebody had bound is another matter", "tcp", "6.12",
			"ports 40000-40000\nsocket a tcp4\nsocket b tcp4\nsocket c tcp4\nsocket l tcp4\nbind l 127.0.0.1:40001\nlisten l\n" +
				"connect b 127.0.0.1:40001\nset b reuseaddr=on\nset a reuseaddr=on\nbind a 127.0.0.1:40000\nclose a\nconnect c 127.0.0.1:40000",
			"complete: connect refused among connections only"},
	} {
		sys := spec.TCP
		if c.system == "udp" {
			sys = spec.UDP
		}
		if got := titles(t, sys, c.kernel, c.text); !slices.Contains(got, c.want) {
			t.Errorf("%s: want %q in %q", c.name, c.want, got)
		}
	}
}

// titles are the violations that a trace shows, with their causes.
func titles(t *testing.T, sys *spec.System, kernel, text string) (got []string) {
	t.Helper()
	tr, err := rc.Parse("test", []byte("system "+string(sys.Name)+"\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stackOf(sys, kernel)()
	if err != nil {
		t.Fatal(err)
	}
	err = spec.NewMachine(sys, s).Replay(tr, func(_ int, _ *spec.Observation, found []spec.Violation) bool {
		for _, v := range found {
			title := v.Property + ": " + v.Kind
			if c := v.Tags.Causes(); c != "" {
				title += " (" + c + ")"
			}
			got = append(got, title)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
