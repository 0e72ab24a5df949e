package live

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

// needObserver loads an Observer or skips, except where continuous integration
// runs as root: there nothing may be skipped.
func needObserver(t testing.TB) *Observer {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: an iterator and a network namespace")
	}
	o, err := NewObserver()
	var no *reusecheck.Unsupported
	switch {
	case errors.As(err, &no) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func TestTheKernelsCachesAreSeenAsItsGenerationLeavesThem(t *testing.T) {
	o := needObserver(t)
	k, err := RunningKernel()
	if err != nil {
		t.Fatal(err)
	}
	var got []seen
	for i := range scenarios {
		s, err := scenarios[i].run(o)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	checkSeen(t, k, o.HasPair(), got)
}

func TestAReadFitsAnyNumberOfSockets(t *testing.T) {
	o := needObserver(t)
	const n = 700 // their records fill several of the kernel's buffers
	s := scenario{name: "many", open: func(b *bench) {
		for i := range n {
			b.bind(ra, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(1024+i)).String())
		}
	}}
	got, err := s.run(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(got.Caches, "; ") {
		if !strings.HasPrefix(text, fmt.Sprintf("%d ", 1024+i)) {
			t.Fatalf("socket %d of %d is seen as %q", i, n, text)
		}
	}
}

func TestAReadSeesTheProcesssOwnTCPSocketsAndNoOthers(t *testing.T) {
	o := needObserver(t)
	// A second process holds sockets of the same kinds until its input ends.
	other := exec.Command("/proc/self/exe")
	other.Env = []string{othersMark + "=1"}
	hold, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer hold.Close()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	own, err := openAllKinds()
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()

	// Once as it is; once as on kernels that cannot be told which task to visit,
	// where the program alone has to skip the others.
	check := func(name string, o *Observer) {
		obs, err := o.Read(make([]Observation, 0, 64))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, x := range obs {
			if protocol, err := unix.GetsockoptInt(x.FD, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
				t.Errorf("%s: descriptor %d is observed, but is no TCP socket of this process: protocol %d, %v", name, x.FD, protocol, err)
			}
			for _, fd := range own.tcp {
				if x.FD == fd {
					found++
				}
			}
		}
		if found != len(own.tcp) {
			t.Errorf("%s: %d of %d sockets were observed, each once: %v", name, found, len(own.tcp), obs)
		}
	}
	check("own files", o)
	all, err := linkFiles(o.program.FD(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(all)
	check("all files", &Observer{layout: o.layout, program: o.program, link: all})
}

const othersMark = "REUSECHECK_TEST_OTHERS"

func init() {
	if os.Getenv(othersMark) == "" {
		return
	}
	if _, err := openAllKinds(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.WriteString(".")
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// kinds are sockets of every kind that an iterator over files comes across.
type kinds struct{ all, tcp []int }

func (k *kinds) close() {
	for _, fd := range k.all {
		unix.Close(fd)
	}
}

// openAllKinds opens fewer TCP sockets than others, and none of them bound, so
// that it is fit for the program's own namespace.
func openAllKinds() (*kinds, error) {
	k := &kinds{}
	for _, kind := range [][2]int{
		{unix.AF_INET, unix.SOCK_DGRAM}, {unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_INET6, unix.SOCK_STREAM},
		{unix.AF_UNIX, unix.SOCK_STREAM}, {unix.AF_UNIX, unix.SOCK_DGRAM}, {unix.AF_INET6, unix.SOCK_DGRAM},
		{unix.AF_INET, unix.SOCK_STREAM}, {unix.AF_NETLINK, unix.SOCK_RAW},
	} {
		fd, err := unix.Socket(kind[0], kind[1]|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("socket %v: %w", kind, err)
		}
		k.all = append(k.all, fd)
		if kind[1] == unix.SOCK_STREAM && kind[0] != unix.AF_UNIX {
			k.tcp = append(k.tcp, fd)
		}
	}
	return k, nil
}

func TestTheIteratorVisitsThisProcessOnly(t *testing.T) {
	o := needObserver(t)
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", o.link))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "task_type") {
		t.Skip("this kernel's iterators cannot be told a task (before 6.1)")
	}
	if want := fmt.Sprintf("tid:\t%d\n", os.Getpid()); !strings.Contains(string(b), want) {
		t.Errorf("%q is not in\n%s", want, b)
	}
}

const unprivilegedMark = "REUSECHECK_TEST_UNPRIVILEGED"

func init() {
	if os.Getenv(unprivilegedMark) == "" {
		return
	}
	_, err := NewObserver()
	var no *reusecheck.Unsupported
	fmt.Printf("unsupported=%v: %v", errors.As(err, &no), err)
	os.Exit(0)
}

func TestWithoutPrivilegesAnObserverSaysWhatItNeeds(t *testing.T) {
	needObserver(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{unprivilegedMark + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"unsupported=true", "cannot be tested here", "CAP_BPF"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in: %s", part, out)
		}
	}
}

func TestAClosedObserverSaysSo(t *testing.T) {
	o := needObserver(t)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if obs, err := o.Read(nil); err == nil {
		t.Errorf("a closed observer gives %v", obs)
	}
}

func BenchmarkObserve(b *testing.B) {
	o := needObserver(b)
	for _, n := range []int{3, 300} {
		b.Run(fmt.Sprintf("sockets=%d", n), func(b *testing.B) {
			s := scenario{name: "many", open: func(w *bench) {
				for i := range n {
					w.bind(ra, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(1024+i)).String())
				}
				var obs []Observation
				var err error
				b.ResetTimer()
				for range b.N {
					if obs, err = o.Read(obs); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
			}}
			if _, err := s.run(o); err != nil {
				b.Fatal(err)
			}
		})
	}
}
