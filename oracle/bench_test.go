package oracle_test

import (
	"net/netip"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

var home = netip.MustParseAddrPort("127.0.0.1:40000")

// routine is a history of ten sockets on one port that ends where it began.
func routine() (ops []reusecheck.Op, answers []reusecheck.Answer) {
	do := func(op reusecheck.Op, a reusecheck.Answer) {
		ops, answers = append(ops, op), append(answers, a)
	}
	for id := range reusecheck.ID(9) {
		do(reusecheck.NewSocket(id, reusecheck.TCP4, reusecheck.ReusePort), reusecheck.Success)
		do(reusecheck.Bind(id, home), reusecheck.Success)
		do(reusecheck.Listen(id), reusecheck.Success)
	}
	do(reusecheck.NewSocket(9, reusecheck.TCP6, reusecheck.ReusePort), reusecheck.Success)
	do(reusecheck.Connect(9, netip.MustParseAddrPort("[::ffff:127.0.0.1]:40000")), reusecheck.Picked(50000))
	do(reusecheck.Inherit(3, 10, netip.MustParseAddrPort("127.0.0.1:0")), reusecheck.Success)
	do(reusecheck.SetOption(10, reusecheck.ReuseAddr, true), reusecheck.Success)
	do(reusecheck.LeaveTimeWait(10), reusecheck.Success)
	do(reusecheck.Expire(10), reusecheck.Success)
	for id := range reusecheck.ID(10) {
		do(reusecheck.Close(id), reusecheck.Success)
	}
	return ops, answers
}

func TestJudgingAndFollowingAllocateNothing(t *testing.T) {
	o := oracle.New()
	ops, answers := routine()
	play := func() {
		o.Reset(reusecheck.Config{})
		for i, op := range ops {
			if v := o.Judge(op, answers[i]); !v.Agrees || v.Open != "" {
				t.Fatalf("%v: wants %v, open %q", op, v.Want, v.Open)
			}
			o.Follow(op, answers[i])
		}
	}
	play()
	if n := testing.AllocsPerRun(10, play); n != 0 {
		t.Errorf("%v allocations in %d steps", n, len(ops))
	}
}

// crowd binds n reuseport sockets to one port; their IDs start at 0.
func crowd(n int) *oracle.TCP {
	o := oracle.New()
	for id := range reusecheck.ID(n) {
		o.Follow(reusecheck.NewSocket(id, reusecheck.TCP4, reusecheck.ReusePort), reusecheck.Success)
		o.Follow(reusecheck.Bind(id, home), reusecheck.Success)
	}
	return o
}

func TestAHundredThousandOwnersOfOnePortAreAllLookedAtAndGoOneByOne(t *testing.T) {
	const n = 100_000
	o := crowd(n)
	o.Follow(reusecheck.NewSocket(n, reusecheck.TCP4, 0), reusecheck.Success)
	if v := o.Judge(reusecheck.Bind(n, home), inUse); len(v.Conflicts) != n || !v.Agrees {
		t.Errorf("%d conflicts, agrees %v", len(v.Conflicts), v.Agrees)
	}
	for i := range reusecheck.ID(n) {
		o.Follow(reusecheck.Close((i*7919)%n), reusecheck.Success) // 7919 and n have no factor in common
	}
	if v := o.Judge(reusecheck.Bind(n, home), reusecheck.Success); !v.Agrees {
		t.Errorf("conflicts after the last has left: %v", v.Conflicts)
	}
}

func BenchmarkStep(b *testing.B) {
	o := oracle.New()
	ops, answers := routine()
	for b.Loop() {
		o.Reset(reusecheck.Config{})
		for i, op := range ops {
			o.Judge(op, answers[i])
			o.Follow(op, answers[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ops)), "ns/step")
}

func BenchmarkVisit(b *testing.B) {
	const n = 16_000
	o := crowd(n)
	o.Follow(reusecheck.NewSocket(n, reusecheck.TCP4, reusecheck.ReusePort), reusecheck.Success)
	op := reusecheck.Bind(n, home)
	for b.Loop() {
		o.Judge(op, reusecheck.Success)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/owner")
}

func BenchmarkCopyFrom(b *testing.B) {
	o, twin := crowd(10), oracle.New()
	for b.Loop() {
		twin.CopyFrom(o)
	}
}
