package oracle_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// after follows a trace and gives the oracle.
func after(t *testing.T, text string) (*oracle.UDP, *reusecheck.Trace) {
	t.Helper()
	tr := reusecheck.MustParse("system udp\n\n" + text)
	u := oracle.NewUDP()
	u.Reset(tr.Config)
	for _, s := range tr.Steps {
		u.Follow(s.Op, s.Want)
	}
	return u, tr
}

func TestOnlyPureMembersShareADatagram(t *testing.T) {
	for name, tt := range map[string]struct {
		change  string
		allowed []string
		shared  []string
	}{
		"nothing changed":                    {"", []string{"a", "b"}, []string{"a", "b"}},
		"connected and disconnected":         {"connect b 127.0.0.1:9 => ok\ndisconnect b => ok\n", []string{"a", "b"}, []string{"a", "b"}},
		"connected elsewhere":                {"connect b 127.0.0.1:9 => ok\n", []string{"a"}, []string{"a"}},
		"given to another user":              {"set b uid=1001 => ok\n", []string{"a", "b"}, nil},
		"without the option":                 {"set b reuseport=off => ok\n", []string{"a", "b"}, nil},
		"on the device that it arrives on":   {"set b dev=lo => ok\n", []string{"b"}, nil},
		"a third that shares by no group":    {"socket c udp4 reuseaddr\nbind c 127.0.0.1:40000 => ok\n", []string{"a", "b", "c"}, nil},
		"a third that got the option late":   {"socket c udp4\nbind c 127.0.0.1:40000 => ok\nset c reuseport=on => ok\n", []string{"a", "b", "c"}, nil},
		"a third, bound late, of their kind": {"socket c udp4 reuseport\nbind c 127.0.0.1:40000 => ok\n", []string{"a", "b", "c"}, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			u, tr := after(t, "socket a udp4 reuseport\nsocket b udp4 reuseport\nbind a 127.0.0.1:40000 => ok\nbind b 127.0.0.1:40000 => ok\n"+tt.change)
			send := reusecheck.MustParse("system udp\n\nsend 127.0.0.1:8 -> 127.0.0.1:40000\n").Steps[0].Op
			v := u.Judge(send, reusecheck.Answer{Kind: reusecheck.Received, Who: 0})
			names := func(ids []reusecheck.ID) (s []string) {
				for _, id := range ids {
					s = append(s, tr.Name(id))
				}
				slices.Sort(s)
				return s
			}
			if d := cmp.Diff(tt.allowed, names(v.Allowed)); d != "" {
				t.Errorf("allowed (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.shared, names(v.Shared)); d != "" {
				t.Errorf("shared (-want +got):\n%s", d)
			}
		})
	}
}

func TestACopyOfTheUDPOracleGoesItsOwnWay(t *testing.T) {
	u, _ := after(t, "socket a udp4\nsocket b udp4\nbind a 127.0.0.1:40000 => ok\n")
	c := oracle.NewUDP()
	c.CopyFrom(u)
	c.Follow(reusecheck.Close(0), reusecheck.Success)
	bind := reusecheck.Bind(1, reusecheck.MustParse("system udp\n\nsocket a udp4\nbind a 127.0.0.1:40000\n").Steps[1].Op.Addr)
	if v := u.Judge(bind, inUse); !v.Agrees {
		t.Errorf("the original forgot a: %+v", v)
	}
	if v := c.Judge(bind, inUse); v.Agrees {
		t.Errorf("the copy still has a: %+v", v)
	}
}
