package live

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// script is a trace without a name.
func script(t testing.TB, text string) *reusecheck.Trace {
	t.Helper()
	tr, err := reusecheck.Parse("script", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func runnerOf(t testing.TB, s *Stack) *runner {
	t.Helper()
	r, ok := s.engine.(*runner)
	if !ok {
		t.Skip("without privileges the namespace is another process's")
	}
	return r
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func TestTracesRunInANamespaceOfTheirOwnAndTheThreadComesBack(t *testing.T) {
	r := runnerOf(t, open(t, Options{}))
	home := inode(t, ownNamespace)
	err := r.ns.enter(func() error {
		if in := inode(t, ownNamespace); in == home {
			t.Errorf("the namespace of the traces is the program's own, inode %d", in)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if in := inode(t, ownNamespace); in != home {
		t.Errorf("the thread is in namespace %d afterwards, want %d", in, home)
	}
}

func TestTheNamespaceOfTheProgramIsRefused(t *testing.T) {
	r := runnerOf(t, open(t, Options{}))
	if err := differ(r.ns.home, r.ns.home); err == nil {
		t.Error("the program's own namespace was taken for another")
	}
	if err := differ(r.ns.home, r.ns.ns); err != nil {
		t.Error(err)
	}
}

// foreign puts a socket into the namespace that the stack knows nothing of.
func foreign(t testing.TB, r *runner, use func(fd int) error) {
	t.Helper()
	err := r.ns.enter(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		t.Cleanup(func() { unix.Close(fd) })
		return use(fd)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestANamespaceThatIsNotEmptyIsNotUsedAgain(t *testing.T) {
	at := func(port int) *unix.SockaddrInet4 {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 5}}
	}
	for name, use := range map[string]func(fd int) error{
		"a listener on another port":              func(fd int) error { return unix.Listen(fd, 1) },
		"an owner of a port used":                 func(fd int) error { return unix.Bind(fd, at(40000)) },
		"an owner of a port that nobody was told": func(fd int) error { return unix.Bind(fd, at(50003)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Wait: 20 * time.Millisecond})
			r := runnerOf(t, s)
			foreign(t, r, use)
			run(t, s, script(t, "ports 50000-50003\nsocket a tcp4\nbind a 127.0.0.1:40000 => ok\n"))
			if err := s.Reset(reusecheck.Config{}); err != nil {
				t.Fatal(err)
			}
			if n := s.Namespaces(); n != 2 {
				t.Errorf("%d namespaces were made, want 2", n)
			}
		})
	}
}

func TestATraceThatWasLeftInTheMiddleDoesNotShowInTheNext(t *testing.T) {
	s := open(t, Options{})
	left := script(t, `ports 40000-40001
socket l tcp6
socket a tcp4
socket b tcp6 reuseport
listen l
connect a 127.0.0.1:40000
connect a 127.0.0.1:40001
inherit l c [::1] => ok
inherit l d 127.0.0.1 => ok
timewait c => ok
`)
	next := script(t, `socket x tcp6
socket y tcp6
bind x [::]:40000 => ok
bind y [::]:40001 => ok
`)
	for range 20 {
		run(t, s, left)
		run(t, s, next)
	}
	if n := s.Namespaces(); n != 1 {
		t.Errorf("%d namespaces were made, want 1", n)
	}
}

func TestSettingsAreGivenBack(t *testing.T) {
	s := open(t, Options{})
	const steps = `ports 40000-40000
socket a tcp4 reuseaddr
socket b tcp4 reuseaddr
bind a 127.0.0.1:0 => ok 40000
`
	for range 2 {
		run(t, s, script(t, "sysctl net.ipv4.ip_autobind_reuse 1\n"+steps+"bind b 127.0.0.1:0 => ok 40000\n"))
		run(t, s, script(t, steps+"bind b 127.0.0.1:0 => EADDRINUSE\n"))
	}
	run(t, s, script(t, "sysctl net/ipv4/ip_local_reserved_ports 40000\n"+
		"ports 40000-40001\nsocket a tcp4\nbind a 127.0.0.1:0 => ok 40001\n"))
	run(t, s, script(t, "ports 40000-40000\nsocket a tcp4\nbind a 127.0.0.1:0 => ok 40000\n")) // the list was empty
	if n := s.Namespaces(); n != 1 {
		t.Errorf("%d namespaces were made, want 1", n)
	}
}

func TestWhatCannotBeDoneIsSaidByName(t *testing.T) {
	s := open(t, Options{})
	at := netip.MustParseAddrPort("127.0.0.1:40000")
	for _, tt := range []struct {
		cfg  reusecheck.Config
		op   reusecheck.Op
		what string
	}{
		{cfg: reusecheck.Config{Sysctl: []reusecheck.Sysctl{{Name: "kernel.hostname", Value: "x"}}}, what: "sysctl kernel.hostname"},
		{cfg: reusecheck.Config{Sysctl: []reusecheck.Sysctl{{Name: "net.ipv4.no_such_thing", Value: "1"}}}, what: "sysctl net.ipv4.no_such_thing"},
		{cfg: reusecheck.Config{Sysctl: []reusecheck.Sysctl{{Name: "net.ipv4...tcp_mem", Value: "1"}}}, what: "sysctl net.ipv4...tcp_mem"},
		{op: reusecheck.Send(at, at, 0), what: "send"},
		{op: reusecheck.NewNetns(0), what: "netns"},
		{op: reusecheck.NewSocket(0, reusecheck.UDP4, 0), what: "udp4"},
	} {
		err := s.Reset(tt.cfg)
		if err == nil {
			_, err = s.Do(tt.op)
		}
		u := new(reusecheck.Unsupported)
		if !errors.As(err, &u) || u.What != tt.what {
			t.Errorf("%v: want one of what is unsupported, %q", err, tt.what)
		}
	}
	run(t, s, script(t, "socket a tcp4\nbind a 127.0.0.1:40000 => ok\n"))
}

func TestAStepThatTheKernelLeavesInTheMiddleEndsItsTraceOnly(t *testing.T) {
	for _, tt := range []struct{ what, steps string }{
		{"a TIME_WAIT socket on d1 or d2", `socket l tcp4
bind l 127.0.0.1:40000 => ok
listen l => ok
inherit l c 127.0.0.1 => ok
set c dev=d1 => ok
timewait c
`},
		{"a connection to a socket that was shut down before it listened", `socket l tcp4
socket c tcp4
bind l 127.0.0.1:40000 => ok
shutdown l => ENOTCONN
listen l => ok
connect c 127.0.0.1:40000
`},
		{"two connections with one 4-tuple", `ports 40000-40001
socket l tcp4
socket b tcp4 dev=lo
socket c tcp4
bind l 127.0.0.1:40001 => ok
listen l => ok
connect b 127.0.0.1:40001 => ok 40000
connect c 127.0.0.1:40001 unaccepted
`},
		{"the end of a TIME_WAIT socket beside a connection with its 4-tuple", `ports 40000-40001
socket l tcp4
socket b tcp4 dev=lo
socket c tcp4
bind l 127.0.0.1:40001 => ok
listen l => ok
connect b 127.0.0.1:40001 => ok 40000
timewait b => ok
connect c 127.0.0.1:40001 => ok 40000
expire b
`},
		{"a connection that nobody answers", `socket a tcp6
connect a [::ffff:127.0.0.1]:9 => ECONNREFUSED
connect a [::1]:9
`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := open(t, Options{Wait: 50 * time.Millisecond})
			tr := script(t, tt.steps)
			last := len(tr.Steps) - 1
			stem := *tr
			stem.Steps = tr.Steps[:last]
			run(t, s, &stem)
			_, err := s.Do(tr.Steps[last].Op)
			if !lacks(err, tt.what) {
				t.Errorf("the last step's error is %v", err)
			}
			run(t, s, script(t, "socket x tcp6\nbind x [::]:40000 => ok\n"))
		})
	}
}

func TestEachMemberOfAReuseportGroupGetsItsConnections(t *testing.T) {
	s := open(t, Options{})
	text := ""
	for _, l := range []string{"a", "b", "c", "d"} {
		text += "socket " + l + " tcp4 reuseport uid=1001\nbind " + l + " 0.0.0.0:40000 => ok\nlisten " + l + " => ok\n"
	}
	for _, l := range []string{"a", "b", "c", "d"} {
		for _, i := range []string{"1", "2", "3", "4"} {
			text += "inherit " + l + " " + l + i + " 127.0.0.1 => ok\n"
		}
	}
	run(t, s, script(t, text))
}

func TestStepsOnASocketThatIsNotThereFail(t *testing.T) {
	s := open(t, Options{})
	need(t, s.Reset(reusecheck.Config{}))
	at := netip.MustParseAddrPort("127.0.0.1:40000")
	for _, op := range []reusecheck.Op{
		reusecheck.Bind(3, at), reusecheck.Listen(3), reusecheck.Connect(3, at), reusecheck.Inherit(3, 4, at),
		reusecheck.SetOption(3, reusecheck.ReuseAddr, true), reusecheck.Shutdown(3), reusecheck.Disconnect(3),
		reusecheck.Close(3), reusecheck.LeaveTimeWait(3), reusecheck.Expire(3), reusecheck.Close(-4), reusecheck.Close(reusecheck.NoID),
	} {
		got, err := s.Do(op)
		if err != nil {
			t.Errorf("%s: %v", op.Verb, err)
		}
		if d := cmp.Diff(reusecheck.Fail(reusecheck.EBADF), got.Answer); d != "" {
			t.Errorf("%s: %s", op.Verb, d)
		}
	}
}

func TestATimeWaitSocketTakesNoStepButItsEnd(t *testing.T) {
	s := open(t, Options{})
	run(t, s, script(t, `socket l tcp4
bind l 127.0.0.1:40000 => ok
listen l => ok
inherit l c 127.0.0.1 => ok
timewait c => ok
`))
	at := netip.MustParseAddrPort("127.0.0.1:40001")
	for _, tt := range []struct {
		op   reusecheck.Op
		want reusecheck.Answer
	}{
		{reusecheck.Expire(0), reusecheck.Fail(reusecheck.EINVAL)}, // it is none
		{reusecheck.Bind(1, at), reusecheck.Fail(reusecheck.EBADF)},
		{reusecheck.Inherit(1, 2, at), reusecheck.Fail(reusecheck.EBADF)},
		{reusecheck.LeaveTimeWait(1), reusecheck.Fail(reusecheck.EBADF)},
		{reusecheck.Expire(1), reusecheck.Success},
		{reusecheck.Expire(1), reusecheck.Fail(reusecheck.EBADF)},
		{reusecheck.LeaveTimeWait(0), reusecheck.Fail(reusecheck.ENOTCONN)},
		{reusecheck.Close(0), reusecheck.Success},
		{reusecheck.Close(0), reusecheck.Fail(reusecheck.EBADF)},
	} {
		got, err := s.Do(tt.op)
		if err != nil || got.Answer != tt.want {
			t.Errorf("%s: %v, %v: want %v", tt.op.Text(reusecheck.ID.String), got.Answer, err, tt.want)
		}
	}
}

func TestADescriptorIsGivenForEverySocketThatHasOne(t *testing.T) {
	s := open(t, Options{})
	runnerOf(t, s)
	run(t, s, script(t, `socket l tcp4
socket a tcp4
bind l 127.0.0.1:40000 => ok
listen l => ok
connect a 127.0.0.1:40000
inherit l c 127.0.0.1 => ok
inherit l d 127.0.0.1 => ok
timewait d => ok
`))
	for id, want := range map[reusecheck.ID]bool{
		0: true, 1: true, 2: true, 3: false, 4: false,
		reusecheck.ID(1).OtherEnd(): true,
		reusecheck.ID(0).OtherEnd(): false, // a listener has none
		reusecheck.ID(2).OtherEnd(): false, // the client is not of the trace
		reusecheck.NoID:             false,
	} {
		fd, ok := s.Descriptor(id)
		if ok != want {
			t.Errorf("%s: a descriptor is given: %v, want %v", id, ok, want)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); ok && err != nil {
			t.Errorf("%s: descriptor %d: %v", id, fd, err)
		}
	}
}

func TestAllFeaturesAreHereOrHaveAReason(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Features() {
		t.Log(f)
		names[f.Name] = true
		if !f.OK {
			if f.Why == "" {
				t.Errorf("%s is missing without a reason", f.Name)
			}
			need(t, &reusecheck.Unsupported{What: f.Name, Why: f.Why})
		}
	}
	for _, want := range []string{"network namespace", "uids", "veth", "processors", "socket destroy", "socket lookup"} {
		if !names[want] {
			t.Errorf("nothing is said of %s", want)
		}
	}
}

func TestAClosedStackSaysSo(t *testing.T) {
	s, err := Open(Options{})
	need(t, err)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Reset(reusecheck.Config{}); err == nil {
		t.Error("a closed stack was reset")
	}
	if _, err := s.Do(reusecheck.Listen(0)); err == nil {
		t.Error("a closed stack did a step")
	}
}

func TestTheSocketCountersOfANamespaceAreThoseOfItsTables(t *testing.T) {
	for text, want := range map[string]int{
		"sockets: used 9\nTCP: inuse 0 orphan 5 tw 0 alloc 7 mem 3\nUDP: inuse 4\n": 0,
		"TCP: inuse 2 orphan 0 tw 3 alloc 1 mem 0\n":                                5,
		"TCP6: inuse 1\nUDP6: inuse 4\nRAW6: inuse 1\n":                             1,
		"TCP: inuse what tw 0\n":                                                    1,
	} {
		if got := countersOf(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
