package shrink_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
)

func parse(t testing.TB, text string) *rc.Trace {
	t.Helper()
	tr, err := rc.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// steps is what a trace does, without its headers.
func steps(t *rc.Trace) string {
	_, body, ok := strings.Cut(t.String(), "\n\n")
	if !ok {
		body = t.String()
	}
	return strings.TrimSpace(body)
}

// has builds a predicate from the ops of a trace.
func has(ok func(op *rc.Op) bool) func(*rc.Trace) bool {
	return func(t *rc.Trace) bool {
		for i := range t.Steps {
			if ok(&t.Steps[i].Op) {
				return true
			}
		}
		return false
	}
}

// inOrder holds when steps matching each of the verbs come one after another.
func inOrder(vs ...rc.Verb) func(*rc.Trace) bool {
	return func(t *rc.Trace) bool {
		i := 0
		for j := range t.Steps {
			if i < len(vs) && t.Steps[j].Op.Verb == vs[i] {
				i++
			}
		}
		return i == len(vs)
	}
}

// valid is fails, and sees to it that every candidate is a trace that could be
// written and read.
func valid(t testing.TB, fails func(*rc.Trace) bool) func(*rc.Trace) bool {
	return func(tr *rc.Trace) bool {
		t.Helper()
		if err := tr.Validate(); err != nil {
			t.Errorf("the predicate was asked about an invalid trace: %v\n%s", err, tr)
		}
		return fails(tr)
	}
}

func TestEachPredicateHasItsKnownMinimum(t *testing.T) {
	for _, c := range []struct {
		name, start, want string
		fails             func(*rc.Trace) bool
	}{
		{
			name:  "a predicate that always holds leaves nothing",
			fails: func(*rc.Trace) bool { return true },
			start: `
				ports 50000-50010
				sysctl net.ipv4.ip_autobind_reuse 1
				socket x tcp6 reuseaddr dev=d2
				bind x [::]:0 => ok 50003
				listen x`,
			want: "",
		},
		{
			name:  "any bind becomes the first address and port of the first socket",
			fails: has(func(op *rc.Op) bool { return op.Verb == rc.VBind }),
			start: `
				socket p tcp4 reuseaddr
				socket q tcp6 reuseport uid=1002 v6only dev=lo
				bind p 127.0.0.9:8080
				set q reuseport=off
				bind q [fd00::7]:9999 => EADDRNOTAVAIL`,
			want: `
				socket a tcp4
				bind a 127.0.0.1:40000`,
		},
		{
			name: "a bind that must be of an IPv6 socket is one of the simplest of these",
			fails: func(t *rc.Trace) bool {
				return has(func(op *rc.Op) bool {
					return op.Verb == rc.VBind && t.Steps[op.Sock].Op.Family == rc.TCP6 && op.Addr.Addr().Is6()
				})(t)
			},
			start: `
				socket q tcp6 reuseport uid=1002 v6only
				bind q [fd00::7]:9999`,
			want: `
				socket a tcp6
				bind a [::1]:40000`,
		},
		{
			name:  "close, timewait and expire hang together",
			fails: inOrder(rc.VTimeWait, rc.VExpire),
			start: `
				socket l tcp4 reuseaddr
				socket z tcp4
				bind l 0.0.0.0:7000
				listen l
				inherit l k 127.0.0.2
				inherit l m 127.0.0.2
				close m
				connect z 127.0.0.1:7000
				close l
				timewait k
				timewait z
				expire k
				expire z`,
			want: `
				socket a tcp4
				connect a 127.0.0.1:40000
				timewait a
				expire a`,
		},
		{
			name:  "a child stays with the inherit that makes it",
			fails: inOrder(rc.VInherit, rc.VInherit, rc.VShutdown),
			start: `
				socket l tcp4 reuseaddr
				bind l 0.0.0.0:7000
				listen l
				inherit l k 127.0.0.2:81
				inherit l m 127.0.0.2
				shutdown m
				close k`,
			want: `
				socket a tcp4
				inherit a b 127.0.0.1
				inherit a c 127.0.0.1
				shutdown a`,
		},
		{
			name: "what a step sets is set from the start where that is enough",
			fails: func(t *rc.Trace) bool {
				opts := map[rc.ID]rc.Opt{}
				for i := range t.Steps {
					switch op := &t.Steps[i].Op; {
					case op.Verb == rc.VSocket:
						opts[op.Sock] = op.Opts
					case op.Verb == rc.VSet && op.Field == rc.SetOpt && op.On:
						opts[op.Sock] |= op.Opts
					case op.Verb == rc.VListen && opts[op.Sock].Has(rc.ReusePort):
						return true
					}
				}
				return false
			},
			start: `
				socket w tcp4
				socket x tcp4
				set x reuseport=on
				bind x 127.0.0.1:40000
				listen x`,
			want: `
				socket a tcp4 reuseport
				listen a`,
		},
		{
			name: "the port range moves with the port that is in it",
			fails: func(t *rc.Trace) bool {
				return t.Config.Ports.Size() > 0 &&
					has(func(op *rc.Op) bool { return op.Verb == rc.VBind && t.Config.Ports.Lo == op.Addr.Port() })(t)
			},
			start: `
				ports 50007-50009
				socket a tcp4
				bind a 127.0.0.1:50007`,
			want: `
				socket a tcp4
				bind a 127.0.0.1:40000`,
		},
		{
			name:  "namespaces go with what is in them",
			fails: inOrder(rc.VNetns, rc.VExit),
			start: `
				system timewait
				netns n1
				netns n2
				socket s tcp4 netns=n2
				bind s 127.0.0.1:40000
				exit n1,n2`,
			want: `
				system timewait
				netns a
				exit a`,
		},
		{
			name: "independent steps stand in the order of their sockets",
			fails: func(t *rc.Trace) bool {
				bound, listens := map[rc.ID]bool{}, false
				for i := range t.Steps {
					switch op := &t.Steps[i].Op; op.Verb {
					case rc.VBind:
						bound[op.Sock] = true
					case rc.VListen:
						listens = listens || bound[op.Sock]
					}
				}
				return listens && len(bound) == 2
			},
			start: `
				socket x tcp4
				socket y tcp4
				bind x 127.0.0.1:40000
				bind y 127.0.0.1:40000
				listen y`,
			want: `
				socket a tcp4
				socket b tcp4
				bind a 127.0.0.1:40000
				listen a
				bind b 127.0.0.1:40000`,
		},
		{
			name: "sockets are created and named in the order of their first steps",
			fails: func(t *rc.Trace) bool {
				opts, last := map[rc.ID]rc.Opt{}, rc.Opt(0)
				for i := range t.Steps {
					switch op := &t.Steps[i].Op; op.Verb {
					case rc.VSocket:
						opts[op.Sock] = op.Opts
					case rc.VBind:
						if last == rc.ReusePort && opts[op.Sock] == rc.ReuseAddr {
							return true
						}
						last = opts[op.Sock]
					}
				}
				return false
			},
			start: `
				socket x tcp4 reuseaddr
				socket y tcp4 reuseport
				bind y 127.0.0.1:40000
				bind x 127.0.0.1:40000
				close y
				close x`,
			want: `
				socket a tcp4 reuseport
				socket b tcp4 reuseaddr
				bind a 127.0.0.1:40000
				bind b 127.0.0.1:40000`,
		},
		{
			name: "of two steps on one address only one keeps it",
			fails: func(t *rc.Trace) bool {
				return inOrder(rc.VBind, rc.VBind)(t) &&
					has(func(op *rc.Op) bool { return op.Addr.Addr() == netip.MustParseAddr("127.0.0.2") })(t)
			},
			start: `
				socket x tcp4
				bind x 127.0.0.2:40000
				bind x 127.0.0.2:40000`,
			want: `
				socket a tcp4
				bind a 127.0.0.1:40000
				bind a 127.0.0.2:40000`,
		},
		{
			name: "an address of an IPv6 socket is spelled as the socket stores it",
			fails: func(t *rc.Trace) bool {
				return has(func(op *rc.Op) bool {
					return op.Verb == rc.VBind && t.Steps[op.Sock].Op.Family == rc.TCP6 && op.Addr.Addr().Unmap().Is4()
				})(t)
			},
			start: `
				socket x tcp6
				bind x 127.0.0.1:40000`,
			want: `
				socket a tcp6
				bind a [::ffff:127.0.0.1]:40000`,
		},
		{
			name: "a trace three changes away is found by listing all small ones",
			fails: func(t *rc.Trace) bool {
				return diverges(t) && !has(func(op *rc.Op) bool { return op.Verb == rc.VSocket && !op.Opts.Has(rc.ReuseAddr) })(t)
			},
			start: `
				socket a tcp4 reuseaddr
				socket b tcp4 reuseaddr reuseport
				socket c tcp4 reuseaddr reuseport
				bind a 127.0.0.1:40000
				bind b 127.0.0.1:40000
				set a reuseaddr=off
				bind c 127.0.0.1:40000`,
			want: `
				socket a tcp4 reuseaddr reuseport
				socket b tcp4 reuseaddr reuseport
				bind a 127.0.0.1:40000
				set a reuseaddr=off
				set a reuseport=off
				bind b 127.0.0.1:40000`,
		},
		{
			name: "three sockets of three kinds on one address",
			fails: func(t *rc.Trace) bool {
				return diverges(t) && !inOrder(rc.VSet)(t)
			},
			start: `
				socket n tcp6 v6only
				socket x tcp4 reuseaddr uid=1001
				socket y tcp4 reuseaddr reuseport uid=1002
				socket z tcp4 reuseport uid=1002
				bind n [::1]:40001
				bind x 127.0.0.2:40001
				listen n
				bind y 127.0.0.2:40001
				bind z 127.0.0.2:40001
				close n`,
			want: `
				socket a tcp4 reuseaddr
				socket b tcp4 reuseaddr reuseport
				socket c tcp4 reuseport
				bind a 127.0.0.1:40000
				bind b 127.0.0.1:40000
				bind c 127.0.0.1:40000`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rep := shrink.Run(parse(t, c.start), valid(t, c.fails), shrink.Options{})
			if !rep.Reproduced || !rep.Minimal {
				t.Errorf("not minimal: %v", rep)
			}
			want := steps(parse(t, c.want))
			if d := cmp.Diff(want, steps(got)); d != "" {
				t.Errorf("minimum differs (-want +got):\n%s%v", d, rep)
			}
		})
	}
}

func TestATraceThatDoesNotFailComesBackAsItWas(t *testing.T) {
	in := parse(t, "socket z tcp4\nbind z 127.0.0.9:1 => ok\n")
	got, rep := shrink.Run(in, func(*rc.Trace) bool { return false }, shrink.Options{})
	if rep.Reproduced || rep.Tried != 1 {
		t.Errorf("report: %+v", rep)
	}
	if d := cmp.Diff(in.String(), got.String()); d != "" {
		t.Error(d)
	}
}

func TestStatedAnswersAreDroppedBeforeThePredicateSeesTheTrace(t *testing.T) {
	in := parse(t, "title    kept\nsource   here\nkernels  6.1-\n\nsocket a tcp4\nbind a 127.0.0.1:40000 => ok oracle EADDRINUSE\n")
	got, _ := shrink.Run(in, func(t *rc.Trace) bool { return !t.Diverges() && len(t.Steps) == 2 }, shrink.Options{})
	want := "title    kept\nsource   here\nkernels  6.1-\n\nsocket a tcp4\nbind a 127.0.0.1:40000\n"
	if d := cmp.Diff(parse(t, want).String(), got.String()); d != "" {
		t.Error(d)
	}
	if !in.Diverges() {
		t.Error("the caller's trace was changed")
	}
}

const long = `
	socket n tcp6 v6only
	socket x tcp4 reuseaddr uid=1001
	socket y tcp4 reuseaddr reuseport uid=1002
	socket z tcp4 reuseport uid=1002
	bind n [::1]:40001
	bind x 127.0.0.2:40001
	listen n
	bind y 127.0.0.2:40001
	bind z 127.0.0.2:40001
	close n
`

func TestTheBudgetEndsTheRunWithTheBestSoFar(t *testing.T) {
	calls := 0
	got, rep := shrink.Run(parse(t, long), func(t *rc.Trace) bool { calls++; return diverges(t) }, shrink.Options{MaxCandidates: 12})
	if calls != 12 || rep.Tried != 12 || !errors.Is(rep.Stopped, shrink.ErrBudget) || rep.Minimal {
		t.Errorf("%d calls; report %+v", calls, rep)
	}
	if !diverges(got) {
		t.Errorf("the best so far does not fail:\n%s", got)
	}
	if shrink.Compare(got, parse(t, long)) >= 0 {
		t.Error("nothing was gained in twelve candidates")
	}
}

func TestADoneContextEndsTheRunWithTheBestSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	got, rep := shrink.Run(parse(t, long), func(t *rc.Trace) bool {
		if calls++; calls == 5 {
			cancel()
		}
		return diverges(t)
	}, shrink.Options{Context: ctx})
	if calls != 5 || !errors.Is(rep.Stopped, context.Canceled) || rep.Minimal {
		t.Errorf("%d calls; report %+v", calls, rep)
	}
	if !diverges(got) {
		t.Errorf("the best so far does not fail:\n%s", got)
	}
	if _, rep = shrink.Run(parse(t, long), diverges, shrink.Options{Context: ctx}); strings.Contains(rep.String(), "does not fail") {
		t.Errorf("a run that tried nothing says of the trace:\n%s", rep)
	}
}

func TestTheReportAddsUp(t *testing.T) {
	calls := 0
	_, rep := shrink.Run(parse(t, long), func(t *rc.Trace) bool { calls++; return diverges(t) }, shrink.Options{})
	sum := shrink.Pass{}
	for _, p := range rep.Passes {
		sum.Tried += p.Tried
		sum.Cached += p.Cached
		sum.Kept += p.Kept
	}
	if sum.Tried != rep.Tried || sum.Cached != rep.Cached || sum.Kept != rep.Kept || rep.Tried != calls {
		t.Errorf("passes sum to %+v, the report says %+v, the predicate was called %d times", sum, rep, calls)
	}
	for _, want := range []string{"candidates tried", "drop", "pair"} {
		if !strings.Contains(rep.String(), want) {
			t.Errorf("the report does not mention %q:\n%s", want, rep)
		}
	}
}

func TestNoCandidateIsTriedTwice(t *testing.T) {
	seen := map[string]bool{}
	shrink.Run(parse(t, long), func(tr *rc.Trace) bool {
		if s := tr.String(); seen[s] {
			t.Errorf("tried twice:\n%s", s)
		} else {
			seen[s] = true
		}
		return diverges(tr)
	}, shrink.Options{})
}
