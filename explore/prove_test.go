package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// small is what the proofs of the tests do without, so that they are quick.
const smallProof = "no-set,no-redirect,no-shutdown,no-connect,no-inherit,no-timewait,no-auto,no-v6,no-uid"

func assume(t *testing.T, words string) Assumption {
	t.Helper()
	a, err := ParseAssumptions(strings.Split(words, ","))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func prover(t *testing.T, kernel string) *Prover {
	t.Helper()
	p, err := NewProver(model.MustParse(kernel))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fixed is the prover of the kernel that most tests are about, with what it has
// learnt so far.
var fixed = sync.OnceValue(func() *Prover {
	p, err := NewProver(model.MustParse("6.18+first-bind-fix"))
	if err != nil {
		panic(err)
	}
	return p
})

func TestEveryVerdictIsWhatTheHistoriesShow(t *testing.T) {
	provers := map[string]*Prover{"6.18+first-bind-fix": fixed()} // they keep the rules from one proof to the next
	for _, c := range []struct {
		kernel, assume string
		prop           *spec.Property
		proved         bool
	}{
		{"6.18", smallProof, spec.Sound, false}, // L1, L3
		{"6.18", smallProof + ",no-dev,no-reuseaddr", spec.Sound, true},
		{"6.18+first-bind-fix", smallProof, spec.Sound, false},
		{"6.18", smallProof, spec.Precise, false},
		{"6.18+first-bind-fix", smallProof, spec.Precise, true},
		{"6.18", "no-set,no-redirect,no-dev,no-uid,no-connect", spec.Complete, false},               // a child of ::
		{"6.18+first-bind-fix", "no-set,no-redirect,no-dev,no-uid,no-connect", spec.Precise, false}, // it cannot listen
		// A TIME_WAIT socket has lost its reuseport, which the oracle remembers.
		{"4.9", "no-set,no-reuseaddr,no-dev,no-uid,no-v6", spec.Sound, true},
	} {
		if provers[c.kernel] == nil {
			provers[c.kernel] = prover(t, c.kernel)
		}
		p := provers[c.kernel]
		d := p.Prove(c.prop, assume(t, c.assume))
		if d.Proved != c.proved {
			t.Errorf("%s on %s assuming %s: proved is %v: %s", c.prop.Name, c.kernel, c.assume, d.Proved, d.Pair)
			continue
		}
		if d.Proved {
			continue
		}
		if err := p.Concrete(context.Background(), &d, c.prop, 3); err != nil {
			t.Fatal(err)
		}
		if d.Trace == nil || d.Failure.Violation.Property != c.prop.Name {
			t.Errorf("%s on %s: no history shows that %s", c.prop.Name, c.kernel, d.Pair)
			continue
		}
		for _, step := range d.Trace.Trace.Steps {
			act := action{fresh: step.Op.Verb == rc.VSocket, create: step.Op, op: step.Op}
			if broken := act.needs() & feature(d.Assume); broken != 0 {
				t.Errorf("%s on %s assumes %s:\n%s", c.prop.Name, c.kernel, Assumption(broken), d.Trace.Trace)
			}
		}
	}
}

func TestASearchThatWasCutDoesNotSayThatThereIsNoHistory(t *testing.T) {
	p := *fixed() // its memory is this test's own
	d := p.Prove(spec.Sound, assume(t, smallProof))
	p.Memory = 1 // bytes
	if err := p.Concrete(t.Context(), &d, spec.Sound, 3); err != nil || d.Trace != nil || !d.Cut {
		t.Errorf("%v; a history in a byte: %v; cut is %v", err, d.Trace != nil, d.Cut)
	}
	p.Memory = 0
	if err := p.Concrete(t.Context(), &d, spec.Sound, 3); err != nil || d.Trace == nil || d.Cut {
		t.Errorf("%v; a history: %v; cut is %v", err, d.Trace != nil, d.Cut)
	}
}

// TestAPropertyThatNeverFailsFirstIsShownBehindTheFaultThatDoes is about 6.1, where
// a v4-mapped address slips past the wildcard: the cache then says what is not so.
func TestAPropertyThatNeverFailsFirstIsShownBehindTheFaultThatDoes(t *testing.T) {
	p := prover(t, "6.1+exact-strict-match")
	const none = "no-set,no-redirect,no-dev,no-uid,no-connect,no-inherit,no-timewait,no-auto,no-shutdown"
	d, err := p.Settle(t.Context(), spec.Sound, assume(t, none), 3)
	if err != nil || d.Proved || !d.NeverFirst || d.Trace == nil {
		t.Fatalf("proved is %v, first is never %v, %v: %v", d.Proved, d.NeverFirst, d.Trace, err)
	}
	var wrong []rc.Path
	err = spec.NewMachine(spec.TCP, p.Kernel.New()).Replay(d.Trace.Trace, func(_ int, o *spec.Observation, _ []spec.Violation) bool {
		if !o.Verdict.Agrees {
			wrong = append(wrong, o.Got.Path)
		}
		return true
	})
	if err != nil || len(wrong) != 2 || wrong[0] == rc.PathFast || wrong[1] != rc.PathFast {
		t.Errorf("the wrong grants are by %v: %v\n%s", wrong, err, d.Trace.Trace)
	}
	if d, err = p.Settle(t.Context(), spec.Sound, assume(t, none+",no-mapped"), 3); err != nil || !d.Proved {
		t.Errorf("without v4-mapped addresses %s is not proved: %s: %v", d.Property, d.Pair, err)
	}
	p = prover(t, "6.18")
	if d, err = p.Settle(t.Context(), spec.Sound, assume(t, smallProof), 3); err != nil || d.NeverFirst || d.Trace == nil {
		t.Errorf("6.18 fails first: %v, %v: %v", d.NeverFirst, d.Trace, err)
	}
}

// TestTheInvariantHoldsWhatExplorationReaches compares the abstraction with every
// reachable bucket of small worlds: each owner beside its cache is a pair of it. An
// exploration ends at a wrong grant, so it is compared with what none leads to.
func TestTheInvariantHoldsWhatExplorationReaches(t *testing.T) {
	p := fixed()
	for _, c := range []struct {
		assume, world  string
		sockets, least int
	}{
		{smallProof, "v4 dev=2", 3, 1000},
		{"no-set,no-redirect,no-dev,no-uid,no-v6", "tcp4 addr=0.0.0.0,127.0.0.1 listen connect inherit timewait close shutdown disconnect ports=2", 2, 1000},
		{"no-set,no-dev,no-v6", "tcp4 addr=0.0.0.0,127.0.0.1 reuseport uid=2 listen inherit other-port close ports=2", 2, 1000},
	} {
		v := p.closure(assume(t, c.assume), true)
		s := search(t, p.Kernel.String(), c.world, c.sockets, spec.Sound)
		s.Unreduced = true
		r := finish(t, s)
		missing := map[string]int{}
		at := r.ws[0].step
		visit(r, func(st *model.State) {
			// The same in the world of the proof, which has other numbers.
			var in model.State
			if err := errors.Join(at.codec.Load(at.base, p.Kernel, st), p.t.step.codec.Pack(at.base, &in)); err != nil {
				t.Fatal(err)
			}
			for i := range st.Socks {
				if st.Socks[i] != 0 && in.Socks[i] != 0 {
					in.Socks[i] |= p.t.seenOf(in.Socks[i], &at.kinds.of(st.Socks[i]).seen)
				}
				if st.Ends[i] != 0 && in.Ends[i] != 0 {
					in.Ends[i] |= p.t.seenOf(in.Ends[i], &at.kinds.of(st.Ends[i]).seen)
				}
			}
			if w, lacks := v.lacks(&in); lacks {
				missing[fmt.Sprintf("%s beside %+v", p.t.sock(w), p.t.step.codec.Cache(in.Ports[0]))]++
			}
		})
		if len(missing) > 0 || r.store.states() < int64(c.least) {
			t.Errorf("%s, assuming %s: of %d states some are not in the invariant: %v", c.world, c.assume, r.store.states(), missing)
		}
	}
}

// TestZ3ChecksACertificateAndRejectsASpoiledOne leaves one pair out of the
// invariant, which makes it one that a step leads out of.
func TestZ3ChecksACertificateAndRejectsASpoiledOne(t *testing.T) {
	z3, err := exec.LookPath("z3")
	if err != nil {
		t.Skip("z3 is not installed; it is Debian's package z3")
	}
	p := prover(t, "6.18+stand-in-strict-match")
	a := assume(t, smallProof+",no-dev,no-listen,no-reuseaddr")
	check := func(spoil func(int, int) bool) string {
		var b bytes.Buffer
		if err := p.certificate(&b, a, spoil); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(z3, "-in")
		cmd.Stdin = &b
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	if got := check(nil); got != "unsat unsat unsat" {
		t.Errorf("z3 says %q of the certificate", got)
	}
	v := p.invariant(a)
	n := 0
	for c := range v.sets {
		w := v.sets[c].first(v.sets[c])
		if w < 0 {
			continue
		}
		if n++; n%3 != 1 {
			continue // the first ends one obligation, the next another
		}
		if got := check(func(i, j int) bool { return i == c && j == w }); !strings.Contains(got, "sat ") || got == "unsat unsat unsat" {
			t.Errorf("z3 says %q of a certificate without cache %d, owner %d", got, c, w)
		}
	}
	if got := check(func(int, int) bool { return true }); !strings.HasPrefix(got, "sat") {
		t.Errorf("z3 says %q of an empty invariant", got)
	}
}
