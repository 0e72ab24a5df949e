package shrink_test

import (
	"testing"

	"github.com/reusecheck/reusecheck/shrink"
)

func TestTheOrderIsTheDocumentedOne(t *testing.T) {
	const one = "socket a tcp4\nbind a 127.0.0.1:40000\n"
	for _, c := range []struct{ point, simpler, than string }{
		{"1 settings: ports", one + "listen a", "ports 40000-40000\nsocket a tcp4\nlisten a"},
		{"1 settings: sysctl", one + "listen a", "sysctl net.ipv4.ip_autobind_reuse 1\n" + one},
		{"2 steps", one, one + "listen a"},
		{"2 steps before sockets", "socket a tcp4\nsocket b tcp4\n" + one[14:], one + "listen a"},
		{"3 sockets", one + "listen a", one + "socket b tcp4\nlisten b"},
		{"3 sockets before attributes", "socket a tcp6 reuseaddr reuseport v6only uid=5 dev=d1\nbind a [::]:1", "socket a tcp4\nsocket b tcp4\nbind a 127.0.0.1:40000"},
		{"4 attributes", "socket a tcp4 transparent\nlisten a", "socket a tcp4 reuseaddr reuseport\nlisten a"},
		{"4 attributes before families", "socket a tcp6\nlisten a", "socket a tcp4 reuseaddr\nlisten a"},
		{"5 families", "socket a tcp4\nbind a 127.0.0.9:9", "socket a tcp6\nbind a [::1]:40000"},
		{"5 families before verbs", "socket a tcp4\nconnect a 127.0.0.1:40000", "socket a tcp6\nbind a [::1]:40000"},
		{"6 verbs: bind, listen", "socket a tcp4\nbind a 127.0.0.9:9", "socket a tcp4\nlisten a"},
		{"6 verbs: listen, connect", "socket a tcp4\nlisten a", "socket a tcp4\nconnect a 127.0.0.1:40000"},
		{"6 verbs: close, shutdown", "socket a tcp4\nclose a", "socket a tcp4\nshutdown a"},
		{"6 verbs before kinds", "socket a tcp4 transparent\nlisten a", "socket a tcp4 reuseaddr\nclose a"},
		{"7 kinds: reuseaddr, reuseport", "socket a tcp4 reuseaddr\nlisten a", "socket a tcp4 reuseport\nlisten a"},
		{"7 kinds: reuseport, v6only", "socket a tcp6 reuseport\nlisten a", "socket a tcp6 v6only\nlisten a"},
		{"7 kinds: uid, dev", "socket a tcp4 uid=77\nlisten a", "socket a tcp4 dev=d1\nlisten a"},
		{"7 kinds of sets", "socket a tcp4\nset a reuseport=on", "socket a tcp4\nset a uid=0"},
		{"7 kinds before addresses", "socket a tcp4 reuseaddr\nbind a 127.0.0.9:9", "socket a tcp4 reuseport\nbind a 127.0.0.1:40000"},
		{"8 addresses", one, "socket a tcp4\nbind a 127.0.0.2:40000"},
		{"8 addresses: any after specific", "socket a tcp4\nbind a 127.0.0.2:40000", "socket a tcp4\nbind a 0.0.0.0:40000"},
		{"8 addresses: mapped last", "socket a tcp6\nbind a [::]:40000", "socket a tcp6\nbind a [::ffff:127.0.0.1]:40000"},
		{"8 addresses before ports", "socket a tcp4\nbind a 127.0.0.1:9", "socket a tcp4\nbind a 127.0.0.2:40000"},
		{"9 ports", one, "socket a tcp4\nbind a 127.0.0.1:40001"},
		{"9 ports: automatic after named", "socket a tcp4\nbind a 127.0.0.1:40002", "socket a tcp4\nbind a 127.0.0.1:0"},
		{"9 ports: the listener's own first", "socket a tcp4\ninherit a b 127.0.0.1", "socket a tcp4\ninherit a b 127.0.0.1:40000"},
		{"9 ports before users", "socket a tcp4 uid=9\nbind a 127.0.0.1:40000", "socket a tcp4 uid=1001\nbind a 127.0.0.1:40001"},
		{"10 users", "socket a tcp4 uid=1001\nlisten a", "socket a tcp4 uid=1002\nlisten a"},
		{"10 users before devices", "socket a tcp4 uid=1001 dev=lo\nlisten a", "socket a tcp4 uid=1002 dev=d1\nlisten a"},
		{"11 devices", "socket a tcp4 dev=d1\nlisten a", "socket a tcp4 dev=d2\nlisten a"},
		{"11 devices: lo last", "socket a tcp4 dev=d2\nlisten a", "socket a tcp4 dev=lo\nlisten a"},
		{"12 a before b", "socket a tcp4\nsocket b tcp4\nlisten a\nclose a\nlisten b", "socket a tcp4\nsocket b tcp4\nlisten a\nlisten b\nclose a"},
		{"12 a simpler than b", "socket a tcp4\nsocket b tcp4 reuseaddr\nlisten a\nlisten b", "socket a tcp4 reuseaddr\nsocket b tcp4\nlisten a\nlisten b"},
		{"12 users where their sum is one", "socket a tcp4\nsocket b tcp4 uid=1001\nlisten a\nlisten b", "socket a tcp4 uid=1001\nsocket b tcp4\nlisten a\nlisten b"},
		{"12 devices where their sum is one", "socket a tcp4\nsocket b tcp4 dev=d1\nlisten a\nlisten b", "socket a tcp4 dev=d1\nsocket b tcp4\nlisten a\nlisten b"},
		{"12 users that are not listed", "socket a tcp4 uid=7\nlisten a", "socket a tcp4 uid=9\nlisten a"},
		{"12 addresses where their sum is one", "socket a tcp4\nsocket b tcp4\nbind a 127.0.0.1:40000\nbind b 127.0.0.2:40000", "socket a tcp4\nsocket b tcp4\nbind a 127.0.0.2:40000\nbind b 127.0.0.1:40000"},
		{"12 where it is sent to, then from where", "system udp\nsocket a udp4\nsend 127.0.0.2:40000 -> 127.0.0.1:40000", "system udp\nsocket a udp4\nsend 127.0.0.1:40000 -> 127.0.0.2:40000"},
		{"12 from where it is sent", "system udp\nsocket a udp4\nsend 127.0.0.1:40000 -> 127.0.0.1:40000\nsend 127.0.0.2:40000 -> 127.0.0.1:40000", "system udp\nsocket a udp4\nsend 127.0.0.2:40000 -> 127.0.0.1:40000\nsend 127.0.0.1:40000 -> 127.0.0.1:40000"},
		{"12 off before on", "socket a tcp4\nset a reuseaddr=off", "socket a tcp4\nset a reuseaddr=on"},
	} {
		if got := shrink.Compare(parse(t, c.simpler), parse(t, c.than)); got >= 0 {
			t.Errorf("%s: compares %d:\n%s\nis to be simpler than\n%s", c.point, got, c.simpler, c.than)
		}
	}
}
