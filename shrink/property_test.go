package shrink_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
)

var seeds = flag.Int("seeds", 12, "how many failing histories the canonical minima are measured over")

// failing is a random history that the toy gets wrong.
func failing(seed uint64, without ...rc.Verb) *rc.Trace {
	for r := rand.New(rand.NewPCG(seed, 1)); ; {
		if t := randomTrace(r, 60, without...); diverges(t) {
			return t
		}
	}
}

func TestTheSameFindingFromDifferentHistoriesIsTheSameTrace(t *testing.T) {
	// The toy's cache forgets reuseaddr and it forgets the device: two
	// findings, neither of which can be turned into the other bit by bit.
	known := map[string]string{
		"reuseaddr": "socket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr reuseport\nsocket c tcp4 reuseport\n",
		"device":    "socket a tcp4 dev=d1\nsocket b tcp4 reuseport dev=d2\nsocket c tcp4 reuseport\n",
	}
	const binds = "bind a 127.0.0.1:40000\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000"
	found, missed := map[string]int{}, map[string]int{}
	for seed := range *seeds {
		got, _ := shrink.Run(failing(uint64(seed), rc.VSet), diverges, shrink.Options{})
		name := ""
		for n, sockets := range known {
			if steps(got) == sockets+binds {
				name = n
			}
		}
		if found[name]++; name == "" {
			missed[steps(got)]++
		}
	}
	for _, n := range slices.Sorted(maps.Keys(known)) {
		if found[n] == 0 {
			t.Errorf("no history led to the finding %q", n)
		}
		t.Logf("%s: %d of %d histories", n, found[n], *seeds)
	}
	for text, n := range missed {
		t.Errorf("%d of %d histories ended elsewhere:\n%s", n, *seeds, text)
	}
}

func TestTheResultFailsIsNoLessSimpleAndShrinksToItself(t *testing.T) {
	for seed := range uint64(*seeds / 3) {
		in := failing(seed)
		before := in.String()
		got, rep := shrink.Run(in, valid(t, diverges), shrink.Options{})
		switch {
		case !rep.Reproduced || !rep.Minimal:
			t.Fatalf("seed %d: not minimal: %v", seed, rep)
		case !diverges(got):
			t.Fatalf("seed %d: the result does not fail:\n%s", seed, got)
		case shrink.Compare(got, in) > 0:
			t.Fatalf("seed %d: the result is less simple:\n%s", seed, got)
		case in.String() != before:
			t.Fatalf("seed %d: the trace that was given has changed", seed)
		}
		for id, name := range got.Names {
			if name != rc.ID(id).String() {
				t.Fatalf("seed %d: socket %d is called %s:\n%s", seed, id, name, got)
			}
		}
		again, _ := shrink.Run(got, diverges, shrink.Options{})
		if d := cmp.Diff(got.String(), again.String()); d != "" {
			t.Fatalf("seed %d: shrinking again changes it (-once +twice):\n%s", seed, d)
		}
	}
}

func TestTheSameRunGivesTheSameResultAndReport(t *testing.T) {
	for seed := range uint64(2) {
		in := failing(seed)
		a, ra := shrink.Run(in, diverges, shrink.Options{})
		b, rb := shrink.Run(in, diverges, shrink.Options{})
		if d := cmp.Diff(a.String(), b.String()); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(ra, rb); d != "" {
			t.Error(d)
		}
	}
}

// TestTheResultIsOneMinimal asks by brute force, with no code of the package,
// whether a step, a socket or an attribute can be left out or a value replaced
// by an earlier one.
func TestTheResultIsOneMinimal(t *testing.T) {
	for seed := range uint64(8) {
		got, _ := shrink.Run(failing(seed), diverges, shrink.Options{})
		smaller(got, func(c *rc.Trace) {
			if c.Validate() == nil && diverges(c) {
				t.Errorf("seed %d: a simpler trace fails too:\n%s\nthe result was\n%s", seed, c, got)
			}
		})
	}
}

func smaller(t *rc.Trace, try func(*rc.Trace)) {
	edit := func(i int, f func(*rc.Op)) {
		c := t.Clone()
		f(&c.Steps[i].Op)
		try(c)
	}
	for i := range t.Steps {
		op := t.Steps[i].Op
		id, defines := op.Defines()
		c := t.Clone()
		c.Steps = slices.DeleteFunc(c.Steps, func(s rc.Step) bool {
			return defines && (s.Op.Sock == id || s.Op.Child == id && s.Op.Verb == rc.VInherit)
		})
		if !defines {
			c.Steps = slices.Delete(c.Steps, i, i+1)
		} else {
			c.Names = slices.Delete(c.Names, int(id), int(id)+1)
			for j := range c.Steps {
				if o := &c.Steps[j].Op; o.Sock > id {
					o.Sock--
				}
				if o := &c.Steps[j].Op; o.Child > id {
					o.Child--
				}
			}
		}
		try(c)
		switch op.Verb {
		case rc.VSocket:
			for _, o := range rc.OptNames {
				if op.Opts.Has(o.Opt) {
					edit(i, func(op *rc.Op) { op.Opts &^= o.Opt })
				}
			}
			if op.Opts.Has(rc.ReusePort) && !op.Opts.Has(rc.ReuseAddr) {
				edit(i, func(op *rc.Op) { op.Opts ^= rc.ReuseAddr | rc.ReusePort })
			}
			fallthrough
		case rc.VSet:
			for _, uid := range []uint32{0, 1001, 1002} {
				if uid < op.UID {
					edit(i, func(op *rc.Op) { op.UID = uid })
				}
			}
			for _, dev := range []rc.Dev{rc.NoDev, rc.Dev1, rc.Dev2} {
				if op.Dev != rc.NoDev && (dev < op.Dev || op.Dev == rc.DevLo) && dev != op.Dev {
					edit(i, func(op *rc.Op) { op.Dev = dev })
				}
			}
		case rc.VBind, rc.VConnect, rc.VInherit:
			for _, a := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"} {
				if was := op.Addr.Addr(); was.String() == a {
					break
				} else if to := netip.MustParseAddr(a); to.Is4() == was.Is4() {
					edit(i, func(op *rc.Op) { op.Addr = netip.AddrPortFrom(to, op.Addr.Port()) })
				}
			}
		}
	}
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) *rc.Trace {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, label), 2))
			return randomTrace(r, 1+r.IntN(6))
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		ab, ba := shrink.Compare(a, b), shrink.Compare(b, a)
		if ab != -ba || (ab == 0) != (a.String() == b.String()) || shrink.Compare(a, a) != 0 {
			rt.Fatalf("compares %d and %d:\n%s\n%s", ab, ba, a, b)
		}
		if ab <= 0 && shrink.Compare(b, c) <= 0 && shrink.Compare(a, c) > 0 {
			rt.Fatalf("not transitive:\n%s\n%s\n%s", a, b, c)
		}
	})
}

// FuzzRun gives a trace written by anybody to the shrinker, with a predicate
// that no trace was made for.
func FuzzRun(f *testing.F) {
	f.Add([]byte(long), uint64(1))
	f.Add([]byte("ports 1-3\nsocket a tcp4\nbind a 127.0.0.1:0 => ok 2\nlisten a\ninherit a b 127.0.0.1\nshutdown b\nclose b"), uint64(7))
	f.Add([]byte("system udp\nsocket a udp4 range=3-4\nsend 127.0.0.1:1 -> 127.0.0.2:2 dev=lo => none\nset a uid=7"), uint64(3))
	f.Add([]byte("system timewait\nnetns n\nnetns m\nsocket a tcp4 netns=n\nexit m,n => ok walks=1 left=0"), uint64(5))
	f.Fuzz(func(t *testing.T, text []byte, salt uint64) {
		in, err := rc.Parse("fuzz", text)
		if err != nil || len(in.Steps) > 30 {
			t.Skip()
		}
		// Holds for the verbs that the salt picks, all of them at least once
		// as often as in the whole trace.
		count := func(tr *rc.Trace) map[rc.Verb]int {
			m := map[rc.Verb]int{}
			for i := range tr.Steps {
				if v := tr.Steps[i].Op.Verb; salt>>v&1 == 1 {
					m[v]++
				}
			}
			return m
		}
		want := count(in)
		fails := func(tr *rc.Trace) bool {
			got := count(tr)
			for v, n := range want {
				if got[v] < min(n, 2) {
					return false
				}
			}
			return true
		}
		got, rep := shrink.Run(in, valid(t, fails), shrink.Options{MaxCandidates: 2000, MaxPairs: 2000})
		if !rep.Reproduced || !fails(got) {
			t.Fatalf("%v\n%s", rep, got)
		}
		if back, err := rc.Parse("again", []byte(got.String())); err != nil || back.String() != got.String() {
			t.Fatalf("the result cannot be read back: %v\n%s", err, got)
		}
	})
}
