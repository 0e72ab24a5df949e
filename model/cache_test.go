package model_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

func mustDo(t testing.TB, s rc.Stack, op rc.Op) rc.Result {
	t.Helper()
	r, err := s.Do(op)
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	return r
}

func TestStateAfterTheFirstBind(t *testing.T) {
	type state struct{ Reuse, Port int8 }
	tests := []struct {
		opts                rc.Opt
		old, since68, fixed state // up to 6.7, 6.8 to 6.18, with the fix
	}{
		{opts: 0, old: state{0, 0}, since68: state{0, 0}, fixed: state{0, 0}},
		{opts: rc.ReuseAddr, old: state{1, 0}, since68: state{0, 0}, fixed: state{1, 0}},
		{opts: rc.ReusePort, old: state{0, 1}, since68: state{0, 2}, fixed: state{0, 1}},
		{opts: rc.ReuseAddr | rc.ReusePort, old: state{1, 1}, since68: state{0, 2}, fixed: state{1, 1}},
	}
	kernels := map[string]int{"4.9": 0, "5.4": 0, "5.15": 0, "6.1": 0, "6.12": 1, "6.18": 1,
		"6.18+first-bind-fix": 2, "6.12+first-bind-fix": 2}
	for k, class := range kernels {
		for _, tt := range tests {
			for _, port := range []uint16{40000, 0} { // a port, and an automatic one
				s := model.MustParse(k).New()
				mustDo(t, s, rc.NewSocket(0, rc.TCP4, tt.opts))
				r := mustDo(t, s, rc.Bind(0, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)))
				got := state{r.After.FastReuse, r.After.FastReusePort}
				if want := [...]state{tt.old, tt.since68, tt.fixed}[class]; got != want {
					t.Errorf("%s, first bind with %q to port %d: cache %v, want %v", k, tt.opts, port, got, want)
				}
			}
		}
	}
}

func TestAConnectMadeBucketIsMinusOne(t *testing.T) {
	for _, g := range model.Generations() {
		s := model.MustParse(g.Name).New()
		l, err := rc.Parse("t", []byte("socket a tcp4\nbind a 127.0.0.1:40000\nlisten a\nsocket b tcp4\nconnect b 127.0.0.1:40000\n"))
		if err != nil {
			t.Fatal(err)
		}
		var r rc.Result
		for _, st := range l.Steps {
			r = mustDo(t, s, st.Op)
		}
		if r.Kind != rc.OK || r.After.FastReuse != -1 || r.After.FastReusePort != -1 {
			t.Errorf("%s: connect is answered %s with cache %+v, want -1/-1", g.Name, r.Answer, r.After)
		}
	}
}

// bindMany binds n sockets with one option to one port, on one address or on
// two in turn, and gives the owners visited.
func bindMany(t testing.TB, s *model.TCP, opt rc.Opt, alternate bool, n int) int {
	to := [2]netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:40000")}
	if alternate {
		to[1] = netip.MustParseAddrPort("127.0.0.2:40000")
	}
	visited := 0
	for i := range n {
		mustDo(t, s, rc.NewSocket(rc.ID(i), rc.TCP4, opt))
		r := mustDo(t, s, rc.Bind(rc.ID(i), to[i%2]))
		if r.Kind != rc.OK {
			t.Fatalf("bind %d: %s", i, r.Answer)
		}
		visited += r.Visited
	}
	return visited
}

func TestOwnersVisitedByTheFourRowsOfTheSeeds(t *testing.T) {
	const n = 4000
	half := n / 2
	rows := []struct {
		name      string
		opt       rc.Opt
		alternate bool
		before    int
	}{
		{"reuseaddr, same", rc.ReuseAddr, false, n * (n - 1) / 2},
		{"reuseaddr, alternate", rc.ReuseAddr, true, half * (half - 1)},
		{"reuseport, same", rc.ReusePort, false, 0},
		{"reuseport, alternate", rc.ReusePort, true, half * (half - 1)},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := map[string]int{}
			want := map[string]int{"6.1": 0, "6.12": row.before, "6.18": row.before, "6.18+first-bind-fix": 0}
			for k := range want {
				got[k] = bindMany(t, model.MustParse(k).New(), row.opt, row.alternate, n)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("owners visited (-want +got):\n%s", d)
			}
		})
	}
}

func TestAHundredThousandSocketsOnOnePort(t *testing.T) {
	const n = 100_000
	s := model.MustParse("6.18+first-bind-fix").New()
	if v := bindMany(t, s, rc.ReuseAddr, true, n); v != 0 {
		t.Errorf("%d owners visited, want none", v)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	for i := range n {
		mustDo(t, s, rc.Close(rc.ID(i*7919%n)))
	}
	if c := s.CacheOf(40000); c.Exists {
		t.Errorf("the bucket outlived its owners: %+v", c)
	}
}

func BenchmarkBind16000(b *testing.B) {
	for _, k := range []string{"6.18", "6.18+first-bind-fix"} {
		for _, row := range []struct {
			name string
			opt  rc.Opt
			alt  bool
		}{{"reuseaddr/same", rc.ReuseAddr, false}, {"reuseaddr/alternate", rc.ReuseAddr, true},
			{"reuseport/same", rc.ReusePort, false}, {"reuseport/alternate", rc.ReusePort, true}} {
			b.Run(fmt.Sprintf("%s/%s", k, row.name), func(b *testing.B) {
				s := model.MustParse(k).New()
				visited := 0
				for b.Loop() {
					if err := s.Reset(rc.Config{}); err != nil {
						b.Fatal(err)
					}
					visited = bindMany(b, s, row.opt, row.alt, 16000)
				}
				b.ReportMetric(float64(visited), "owners/op")
			})
		}
	}
}
