package shrink_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// exits calls yield for every exit with what its namespaces have: the number of
// namespaces that have TIME_WAIT sockets, and that of the batch.
func exits(t *rc.Trace, yield func(waiting, batch, step int) bool) bool {
	in, left := map[rc.ID]rc.ID{}, map[rc.ID]bool{}
	for i := range t.Steps {
		switch op := &t.Steps[i].Op; op.Verb {
		case rc.VSocket:
			if in[op.Sock] = rc.NoID; op.HasNet {
				in[op.Sock] = op.Net
			}
		case rc.VInherit:
			in[op.Child] = in[op.Sock]
		case rc.VTimeWait:
			left[op.Sock] = true
		case rc.VExpire:
			delete(left, op.Sock)
		case rc.VExit:
			waiting := 0
			for _, net := range op.Batch {
				for s := range left {
					if in[s] == net {
						waiting++
						break
					}
				}
			}
			if yield(waiting, len(op.Batch), i) {
				return true
			}
		}
	}
	return false
}

func TestNamespacesHaveTheirKnownMinima(t *testing.T) {
	const long = `
		sysctl net.ipv4.tcp_child_ehash_entries 64
		netns p
		netns q
		netns r
		socket home tcp6
		bind home [::]:40001
		socket x tcp6 netns=q
		bind x [::]:40000
		listen x
		socket y tcp4 netns=r
		bind y 127.0.0.1:40000
		listen y
		inherit y yc 127.0.0.1
		timewait yc
		expire yc
		inherit x xa 127.0.0.1
		inherit x xb [::1]
		timewait xb
		inherit y yd 127.0.0.1
		timewait yd
		exit p
		timewait xa
		close x
		exit q,r
		netns s
		socket z tcp4 netns=s
		bind z 127.0.0.1:40000
		exit s`
	for _, c := range []struct {
		name, want string
		fails      func(*rc.Trace) bool
	}{
		{
			name: "an exit alone needs one namespace and no socket",
			want: "netns a\nexit a",
			fails: func(t *rc.Trace) bool {
				return exits(t, func(_, _, _ int) bool { return true })
			},
		},
		{
			name: "an exit of two is one of two",
			want: "netns a\nnetns b\nexit a,b",
			fails: func(t *rc.Trace) bool {
				return exits(t, func(_, batch, _ int) bool { return batch > 1 })
			},
		},
		{
			name: "an exit with something to purge has one socket, in its one namespace",
			want: "netns a\nsocket b tcp4 netns=a\nconnect b 127.0.0.1:40000\ntimewait b\nexit a",
			fails: func(t *rc.Trace) bool {
				return exits(t, func(waiting, _, _ int) bool { return waiting > 0 })
			},
		},
		{
			name: "one of a batch keeps the other",
			want: "netns a\nnetns b\nsocket c tcp4 netns=a\nconnect c 127.0.0.1:40000\ntimewait c\nexit a,b",
			fails: func(t *rc.Trace) bool {
				return exits(t, func(waiting, batch, _ int) bool { return waiting > 0 && batch == 2 })
			},
		},
		{
			name: "a namespace that is made after an exit stays behind it",
			want: "netns a\nexit a\nnetns b\nsocket c tcp4 netns=b\nbind c 127.0.0.1:40000",
			fails: func(t *rc.Trace) bool {
				return exits(t, func(_, _, at int) bool {
					born := map[rc.ID]bool{}
					for i := range t.Steps[at:] {
						switch op := &t.Steps[at+i].Op; {
						case op.Verb == rc.VNetns:
							born[op.Sock] = true
						case op.Verb == rc.VSocket && op.HasNet && born[op.Net]:
							born[op.Sock] = true
						case op.Verb == rc.VBind && born[op.Sock]:
							return true
						}
					}
					return false
				})
			},
		},
		{
			name: "what happens in a namespace happens in the trace's own",
			want: "socket a tcp4\nconnect a 127.0.0.1:40000\ntimewait a",
			fails: func(t *rc.Trace) bool {
				return inOrder(rc.VTimeWait)(t)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rep := shrink.Run(parse(t, "system timewait\n"+long), valid(t, c.fails), shrink.Options{})
			if d := cmp.Diff(c.want, steps(got)); d != "" || !rep.Minimal {
				t.Errorf("minimal: %t (-want +got):\n%s", rep.Minimal, d)
			}
			again, rep := shrink.Run(got, valid(t, c.fails), shrink.Options{})
			if d := cmp.Diff(got.String(), again.String()); d != "" || !rep.Minimal {
				t.Errorf("the result does not shrink to itself:\n%s", d)
			}
		})
	}
}

func TestANamespaceThatIsMadeLastIsKept(t *testing.T) {
	start := "system timewait\nnetns p\nsocket x tcp4\nnetns q\nsocket y tcp4 netns=q\nbind y 127.0.0.1:40001\nexit p\nnetns r\n"
	reborn := func(t *rc.Trace) bool { return inOrder(rc.VBind, rc.VExit, rc.VNetns)(t) }
	got, _ := shrink.Run(parse(t, start), valid(t, reborn), shrink.Options{})
	want := "socket a tcp4\nnetns b\nbind a 127.0.0.1:40000\nexit b\nnetns c"
	if d := cmp.Diff(want, steps(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRandomHistoriesOfAFlawedPurgeShrinkToOneTraceAFinding(t *testing.T) {
	const kernel = "6.18+tw-one-family"
	p, err := model.ParseOf(rc.TimeWaitExit, kernel)
	if err != nil {
		t.Fatal(err)
	}
	stack := func() (rc.Stack, error) { return p.Stack(rc.TimeWaitExit) }
	f := &shrink.Finder{System: spec.TimeWait, Stack: stack}
	traces, starts := map[spec.Violation]string{}, 0
	s := &spec.Search{System: spec.TimeWait, Stack: stack, Checks: 800, Workers: 1, PerFinding: 2}
	_, err = s.Run(context.Background(), func(fail spec.Failure) bool {
		n, err := f.Shrink(context.Background(), fail.Trace, fail.Violation)
		if err != nil || !n.Report.Minimal {
			t.Fatalf("%v, %v", err, n.Report)
		}
		starts++
		if first := traces[n.Violation]; first != "" && first != n.Trace.String() {
			t.Errorf("%s ends in\n%s\nand in\n%s", n.Title(), first, n.Trace)
		}
		traces[n.Violation] = n.Trace.String()
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(traces) < 6 || starts < 3*len(traces)/2 {
		t.Errorf("%d findings from %d starts are too few to compare", len(traces), starts)
	}
}

// made counts the namespaces that exit together, the sockets in them that bind,
// and those in other made namespaces that do.
func made(t *rc.Trace) (batch, inside, outside int) {
	in, binds := map[rc.ID]rc.ID{}, []rc.ID{}
	for i := range t.Steps {
		switch op := &t.Steps[i].Op; op.Verb {
		case rc.VSocket:
			if op.HasNet {
				in[op.Sock] = op.Net
			}
		case rc.VBind:
			if !slices.Contains(binds, op.Sock) {
				binds = append(binds, op.Sock)
			}
		case rc.VExit:
			batch = len(op.Batch)
			for _, s := range binds {
				net, ok := in[s]
				switch {
				case !ok:
				case slices.Contains(op.Batch, net):
					inside++
				default:
					outside++
				}
			}
			return batch, inside, outside
		}
	}
	return 0, 0, 0
}

func TestNamespacesAreMergedAndLeaveTheirBatch(t *testing.T) {
	const two = "system timewait\nnetns p\nnetns q\nsocket x tcp4 netns=p\nbind x 127.0.0.1:40000\nsocket y tcp4 netns=q\nbind y 127.0.0.1:40000\nexit p,q\n"
	for _, c := range []struct {
		name, start, want string
		fails             func(*rc.Trace) bool
	}{
		{
			"two sockets of a batch can be in one namespace", two,
			"netns a\nsocket b tcp4 netns=a\nsocket c tcp4 netns=a\nbind b 127.0.0.1:40000\nbind c 127.0.0.1:40000\nexit a",
			func(t *rc.Trace) bool {
				_, inside, _ := made(t)
				return inside > 1
			},
		},
		{
			"a namespace that need not exit does not", two,
			"netns a\nnetns b\nsocket c tcp4 netns=a\nsocket d tcp4 netns=b\nbind c 127.0.0.1:40000\nbind d 127.0.0.1:40000\nexit a",
			func(t *rc.Trace) bool {
				nets := map[rc.ID]bool{}
				for i := range t.Steps {
					if op := &t.Steps[i].Op; op.HasNet {
						nets[op.Net] = true
					}
				}
				_, inside, outside := made(t)
				return inside+outside > 1 && len(nets) > 1
			},
		},
		{
			"two exits become one", "system timewait\nnetns p\nnetns q\nexit q\nexit p\n", "netns a\nnetns b\nexit a,b",
			func(t *rc.Trace) bool {
				exited := 0
				for i := range t.Steps {
					exited += len(t.Steps[i].Op.Batch)
				}
				return exited > 1
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rep := shrink.Run(parse(t, c.start), valid(t, c.fails), shrink.Options{})
			if d := cmp.Diff(c.want, steps(got)); d != "" || !rep.Minimal {
				t.Errorf("minimal: %t (-want +got):\n%s", rep.Minimal, d)
			}
		})
	}
}
