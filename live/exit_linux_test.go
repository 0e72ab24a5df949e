package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

// waitingPair leaves a TIME_WAIT socket of an IPv6 and of an IPv4 connection in the
// namespaces m and n, which have the IDs 0 and 1.
const waitingPair = `system timewait

netns m
netns n
socket k tcp6 netns=m
socket l tcp4 netns=n
bind k [::]:40000 => ok
bind l 127.0.0.1:40000 => ok
listen k => ok
listen l => ok
inherit k a [::1] => ok
inherit l b 127.0.0.1 => ok
timewait a => ok
timewait b => ok
`

const firstNet, secondNet, inFirst, inSecond = 0, 1, 4, 5

// exits plays waitingPair, lets f meddle, and tears the first namespace down.
func exits(t *testing.T, f func(r *runner)) (*Stack, reusecheck.Result) {
	t.Helper()
	s := open(t, Options{})
	r := runnerOf(t, s)
	need(t, featureError(s, "namespace exit"))
	run(t, s, script(t, waitingPair))
	f(r)
	got, err := s.Do(reusecheck.Exit(firstNet))
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != reusecheck.Exited || !got.HasWaiting {
		t.Fatalf("the exit is answered %+v", got)
	}
	return s, got
}

func featureError(s *Stack, name string) error {
	for _, f := range s.Features() {
		if f.Name == name && !f.OK {
			return &reusecheck.Unsupported{What: f.Name, Why: f.Why}
		}
	}
	return nil
}

func TestAnExitEndsItsOwnNamespaceAndShowsWhatWaitsInOthers(t *testing.T) {
	s, got := exits(t, func(*runner) {})
	if d := cmp.Diff([]reusecheck.ID{inSecond}, got.Waiting); d != "" {
		t.Errorf("in TIME_WAIT after it (-want +got):\n%s", d)
	}
	for _, op := range []reusecheck.Op{reusecheck.Expire(inFirst), reusecheck.Listen(2), reusecheck.Exit(firstNet), reusecheck.Exit(firstNet, secondNet)} {
		if got, err := s.Do(op); err != nil || got.Answer != reusecheck.Fail(reusecheck.EBADF) {
			t.Errorf("%s is answered %s, %v", op, got.Answer, err)
		}
	}
	if got, err := s.Do(reusecheck.Exit(secondNet)); err != nil || got.Kind != reusecheck.Exited || len(got.Waiting) > 0 {
		t.Errorf("the other exit is answered %+v, %v", got, err)
	}
}

func TestATimeWaitSocketThatWentWithAnotherNamespaceIsMissed(t *testing.T) {
	_, got := exits(t, func(r *runner) {
		s := r.get(inSecond)
		if err := s.ns.diag.destroy(*s.wait); err != nil {
			t.Fatal(err)
		}
	})
	if len(got.Waiting) > 0 {
		t.Errorf("what is gone is shown: %v", got.Waiting)
	}
}

func TestANamespaceIsTornDownOnlyWhenNothingHoldsIt(t *testing.T) {
	r := runnerOf(t, open(t, Options{}))
	n, err := newNamespace(r.own)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	var fd int
	if err := n.enter(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s, err := n.sign()
	need(t, err)
	defer s.close()
	n.close()
	// It is still there after the whole teardown of another one.
	if err := r.occupy(); err != nil {
		t.Fatal(err)
	}
	if gone, err := s.gone(); gone || err != nil {
		t.Errorf("a namespace with a socket in it is gone: %t, %v", gone, err)
	}
	unix.Close(fd)
	if gone, err := s.await(t.Context()); !gone || err != nil {
		t.Errorf("a namespace that nothing holds is not gone: %v", err)
	}
}

func TestTheTeardownOfNamespacesIsTimed(t *testing.T) {
	got, err := TimeNamespaces(t.Context(), 3, 2)
	if _, ok := err.(*Unavailable); ok {
		need(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.Made <= 0 || got.Gone < time.Millisecond {
		t.Errorf("%+v: a teardown waits for readers, which takes milliseconds", got)
	}
	if got.Counted && (got.Batches < 1 || got.Walks < 1) {
		t.Errorf("%+v: something was counted, but nothing is", got)
	}
}
