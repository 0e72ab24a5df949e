package spec_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reusecheck/reusecheck/spec"
)

func TestWhatAUDPHistoryShowsDependsOnTheKernel(t *testing.T) {
	const (
		again = "socket a udp4\nbind a 127.0.0.1:40000\nconnect a 127.0.0.1:9\nconnect a 127.0.0.1:10\nsend 127.0.0.1:10 -> 127.0.0.1:40000\n"
		left  = "socket a udp4\nbind a 127.0.0.1:40000\nconnect a 127.0.0.1:9\ndisconnect a\nsend 127.0.0.1:9 -> 127.0.0.1:40000\n"
		group = "socket a udp4 reuseport\nsocket b udp4 reuseport\nbind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\n" +
			"connect b 127.0.0.1:9\ndisconnect b\nsend 127.0.0.1:8 -> 127.0.0.1:40000\n"
		order = "socket a udp4 reuseaddr\nsocket b udp4 reuseaddr\nbind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\n" +
			"connect b 127.0.0.1:9\nconnect a 127.0.0.1:9\nsend 127.0.0.1:9 -> 127.0.0.1:40000\n"
		first = "socket a udp4 reuseaddr\nsocket b udp4 reuseaddr reuseport\nsocket c udp4 reuseport\n" +
			"bind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000\n"
	)
	stale := []string{
		"connect a 127.0.0.1:10: structure: connect: in the 4-tuple table under another 4-tuple",
		"send 127.0.0.1:10 -> 127.0.0.1:40000: precise: a connected socket is scored for, past the 4-tuple table",
	}
	for _, tt := range []struct {
		name, kernel, trace string
		want                []string
	}{
		{"an entry stays under the old peer", "6.18", again, stale},
		{"unless it follows", "6.18+udp-follow-tuple", again, nil},
		{"without a table there is none", "6.12", again, nil},
		{"a disconnect leaves the entry of a named address", "6.18", left, []string{
			"disconnect a: structure: disconnect: in the 4-tuple table and not connected",
			"send 127.0.0.1:9 -> 127.0.0.1:40000: precise: the 4-tuple table is searched where no connected socket has the address"}},
		{"and the group of the socket is left for good", "6.18", group, []string{
			"disconnect b: structure: disconnect: in the 4-tuple table and not connected",
			"send 127.0.0.1:8 -> 127.0.0.1:40000: lookup: a member of the reuseport group gets nothing",
			"send 127.0.0.1:8 -> 127.0.0.1:40000: precise: the 4-tuple table is searched where no connected socket has the address"}},
		{"which 6.12 does not do", "6.12", group, nil},
		{"the table has the last to connect", "6.18", order, []string{
			"send 127.0.0.1:9 -> 127.0.0.1:40000: lookup: the 4-tuple table prefers another than the scores do"}},
		{"the first candidate decides", "5.4", first, []string{"bind c 127.0.0.1:40000: complete: bind granted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, shown(t, spec.UDP, tt.kernel, tt.trace)); d != "" {
				t.Errorf("on %s (-want +shown):\n%s", tt.kernel, d)
			}
		})
	}
}

func TestAWildcardBinderSlipsPastMoreThanTenOwnersUntilItIsMended(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		b.WriteString("socket s" + string(rune('a'+i)) + " udp4\n")
	}
	for i := range 11 {
		b.WriteString("bind s" + string(rune('a'+i)) + " 127.0.0." + string("123456789"[i%9]) + map[bool]string{true: "0"}[i > 8] + ":40000\n")
	}
	b.WriteString("bind sl 0.0.0.0:40000\n")
	want := []string{"bind sl 0.0.0.0:40000: sound: bind granted by fast"}
	if d := cmp.Diff(want, shown(t, spec.UDP, "6.18-udp-wildcard-bind", b.String())); d != "" {
		t.Errorf("without the repair (-want +shown):\n%s", d)
	}
	if got := shown(t, spec.UDP, "6.18", b.String()); got != nil {
		t.Errorf("with it: %q", got)
	}
}

func TestATableThatFollowsItsSocketsKeepsItsStructure(t *testing.T) {
	w := spec.UDPWorld()
	rapid.Check(t, spec.Histories(spec.UDP, w, stackOf(spec.UDP, "6.18+udp-follow-tuple"), spec.TableStructure))
}

func TestStructureHoldsOnEveryKernelWithoutATable(t *testing.T) {
	for _, k := range []string{"4.19+udp-rehash-on-disconnect", "5.4", "6.12"} {
		t.Run(k, func(t *testing.T) {
			rapid.Check(t, spec.Histories(spec.UDP, spec.UDPWorld(), stackOf(spec.UDP, k), spec.TableStructure, spec.PreciseTable))
		})
	}
}

// FuzzUDPHistories is the random state machine as a native fuzz target.
func FuzzUDPHistories(f *testing.F) {
	stubborn(f)
	f.Fuzz(rapid.MakeFuzz(spec.Histories(spec.UDP, spec.UDPWorld(), stackOf(spec.UDP, "6.12"), spec.TableStructure)))
}

// stubborn adds inputs that ask for the same action again and again.
func stubborn(f *testing.F) {
	for b := range 256 {
		same := bytes.Repeat([]byte{byte(b)}, 8192)
		f.Add(slices.Concat(same[:24], []byte{0, 1, 0, 0}, same))
	}
}
