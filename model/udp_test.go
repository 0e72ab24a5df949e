package model_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// FuzzUDP runs a history on every generation and on profiles with bugs put back:
// nothing panics, the lists hold together after each step, a look-up without a
// hash gives what it says it could, and a copy taken half way answers like the
// original.
func FuzzUDP(f *testing.F) {
	profiles := []string{"4.19", "5.4", "6.12", "6.18", "6.18+udp-follow-tuple+udp-best-member+udp-fitting-choice",
		"6.18-udp-unhash-tuple-udp-rehash-tuple", "5.4-udp-connected-members", "6.18+udp-connect-halfway"}
	f.Add([]byte{}, uint8(0))
	for which := range profiles {
		f.Add(script(which), uint8(which))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		s := model.MustParse(profiles[int(which)%len(profiles)]).NewUDP()
		c := &choices{data}
		g := spec.UDP.NewGenerator(spec.UDPWorld())
		if err := s.Reset(g.Start(c)); err != nil {
			t.Fatal(err)
		}
		var twin rc.Stack
		var live []rc.Socket
		for i := 0; i < 64 && len(c.data) > 0; i++ {
			if i == 8 {
				twin = s.Clone()
			}
			live = live[:0]
			s.Sockets(func(x *rc.Socket) bool { live = append(live, *x); return true })
			op := g.Next(c, live)
			r, err := both(t, s, twin, op)
			if err != nil {
				return // one of the corners that the model leaves out
			}
			if l := r.Lookup; l != nil && (r.Kind == rc.Received) != slices.Contains(l.Could, r.Who) {
				t.Fatalf("%s is received by %s, which is said to be possible for %v only", op, r.Answer, l.Could)
			}
			if err := s.Check(); err != nil && !errors.As(err, new(rc.Faults)) {
				t.Fatalf("after %s: %v", op, err)
			}
		}
	})
}

func TestASystemThatAKernelIsNotModelledOfIsUnsupported(t *testing.T) {
	lacks := new(rc.Unsupported)
	for system, kernel := range map[rc.System]string{rc.TCP: "4.19", rc.UDP: "4.9", "sctp": "6.18"} {
		if s, err := model.MustParse(kernel).Stack(system); !errors.As(err, &lacks) {
			t.Errorf("%s of %s: stack %v, error %v", system, kernel, s, err)
		}
	}
	for _, system := range []rc.System{"", rc.TCP, rc.UDP} {
		if _, err := model.MustParse("6.18").Stack(system); err != nil {
			t.Error(err)
		}
	}
}

// udpAfter runs the steps of a UDP trace on a kernel and gives the stack.
func udpAfter(t *testing.T, kernel, text string) *model.UDP {
	t.Helper()
	tr := rc.MustParse("system udp\n\n" + text)
	u := model.MustParse(kernel).NewUDP()
	if err := u.Reset(tr.Config); err != nil {
		t.Fatal(err)
	}
	for _, st := range tr.Steps {
		got, err := u.DoAs(st.Op, st.Want)
		if err != nil {
			t.Fatal(err)
		}
		if !st.Want.Matches(got.Answer) {
			t.Fatalf("%s => %s on %s", st.Text(tr.Name), got.Text(tr.Name), kernel)
		}
	}
	return u
}

func TestWhatADatagramCosts(t *testing.T) {
	const three = "socket a udp4 reuseaddr\nsocket b udp4 reuseaddr\nsocket c udp4 reuseaddr\nbind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 0.0.0.0:40000\n"
	send := func(s string) rc.Op { return rc.MustParse("system udp\n\nsend " + s + "\n").Steps[0].Op }
	hit := send("127.0.0.1:9 -> 127.0.0.1:40000")
	for _, tt := range []struct {
		name, kernel, more string
		op                 rc.Op
		scored, compared   int
		table              rc.Table
		path               rc.Path
	}{
		{"the exact slot is scored", "6.18", "", hit, 2, 0, rc.TableSkipped, rc.PathScan},
		{"then the wildcard's", "6.18", "", send("127.0.0.1:9 -> 127.0.0.2:40000"), 1, 0, rc.TableSkipped, rc.PathScan},
		{"a hit scores none", "6.18", "connect a 127.0.0.1:9\n", hit, 0, 1, rc.TableHit, rc.PathFast},
		{"a miss scores all the same", "6.18", "connect a 127.0.0.1:8\n", hit, 2, 0, rc.TableMissed, rc.PathScan},
		{"without a table all are", "6.12", "connect a 127.0.0.1:9\n", hit, 2, 0, rc.TableNone, rc.PathScan},
		{"the whole port, up to ten", "4.19", "", hit, 3, 0, rc.TableNone, rc.PathScan},
		{"nobody on the port", "6.18", "", send("127.0.0.1:9 -> 127.0.0.1:40001"), 0, 0, rc.TableSkipped, rc.PathNone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := udpAfter(t, tt.kernel, three+tt.more).Do(tt.op)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{r.Visited, r.Lookup.Compared, r.Lookup.Table, r.Path}
			if d := cmp.Diff([]any{tt.scored, tt.compared, tt.table, tt.path}, got); d != "" {
				t.Errorf("scored, compared, table, path (-want +got):\n%s", d)
			}
		})
	}
}

func TestAGroupsChoiceIsAnyUnconnectedMember(t *testing.T) {
	const group = "socket a udp4 reuseport\nsocket b udp4 reuseport\nsocket c udp4 reuseport\n" +
		"bind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000\n"
	for who, ok := range map[string]bool{"a": true, "b": true, "c": false} {
		tr := rc.MustParse("system udp\n\n" + group + "connect c 127.0.0.1:8\nsend 127.0.0.1:9 -> 127.0.0.1:40000 => " + who + "\n")
		for _, kernel := range []string{"5.4", "6.12", "6.18"} {
			u := model.MustParse(kernel).NewUDP()
			var last rc.Result
			for _, st := range tr.Steps {
				var err error
				if last, err = u.DoAs(st.Op, st.Want); err != nil {
					t.Fatal(err)
				}
			}
			if did := tr.Steps[len(tr.Steps)-1].Want.Matches(last.Answer); did != ok {
				t.Errorf("%s: the choice is %s where %s was seen", kernel, last.Answer, who)
			}
			if d := cmp.Diff([]rc.ID{0, 1}, slices.Sorted(slices.Values(last.Lookup.Could))); d != "" {
				t.Errorf("%s: possible receivers (-want +got):\n%s", kernel, d)
			}
		}
	}
}

func TestBetweenEqualsTheLastToBindReceivesUnlessItStandsBehindOrAnotherHasBefore(t *testing.T) {
	const (
		pair  = "socket a %[1]s reuseaddr\nsocket b %[1]s reuseaddr %[2]s\nbind a %[3]s:40000 => ok\nbind b %[3]s:40000 => ok\n"
		stale = "connect %[1]s 127.0.0.1:8 => ok\nconnect %[1]s 127.0.0.1:9 => ok\n" // scored for, also where there is a table
	)
	four, six := fmt.Sprintf(pair, "udp4", "", "127.0.0.1"), fmt.Sprintf(pair, "udp6", "", "[::1]")
	for name, text := range map[string]string{
		"IPv4":                       four + "send 127.0.0.1:9 -> 127.0.0.1:40000 => b\n",
		"IPv6":                       six + "send [::1]:9 -> [::1]:40000 => b\n",
		"IPv6 with reuseport":        fmt.Sprintf(pair, "udp6", "reuseport", "[::1]") + "send [::1]:9 -> [::1]:40000 => a\n",
		"IPv4 with reuseport":        fmt.Sprintf(pair, "udp4", "reuseport", "127.0.0.1") + "send 127.0.0.1:9 -> 127.0.0.1:40000 => b\n",
		"connected":                  four + fmt.Sprintf(stale, "a") + fmt.Sprintf(stale, "b") + "send 127.0.0.1:9 -> 127.0.0.1:40000 => b\n",
		"a has received on this CPU": four + fmt.Sprintf(stale, "a") + "send 127.0.0.1:9 -> 127.0.0.1:40000 => a\n" + fmt.Sprintf(stale, "b") + "send 127.0.0.1:9 -> 127.0.0.1:40000 => a\n",
	} {
		for _, kernel := range []string{"5.4", "6.12", "6.18"} {
			t.Run(name+" on "+kernel, func(t *testing.T) { udpAfter(t, kernel, text) })
		}
	}
}
