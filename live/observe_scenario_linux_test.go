package live

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

// A bench is a fresh network namespace in which a scenario opens sockets. It
// is no test's: scenarios run in guests too.
type bench struct {
	sockets []int // descriptors
}

// stop is how a bench's methods give up.
type stop struct{ error }

func (b *bench) socket(family int, opts reusecheck.Opt) int {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	b.must("socket", err)
	b.sockets = append(b.sockets, fd)
	if opts.Has(reusecheck.ReuseAddr) {
		b.must("SO_REUSEADDR", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	if opts.Has(reusecheck.ReusePort) {
		b.must("SO_REUSEPORT", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	}
	if opts.Has(reusecheck.V6Only) {
		b.must("IPV6_V6ONLY", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1))
	}
	return fd
}

// bind opens a socket and binds it.
func (b *bench) bind(opts reusecheck.Opt, addr string) int {
	a := netip.MustParseAddrPort(addr)
	family := unix.AF_INET
	if a.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd := b.socket(family, opts)
	b.must("bind "+addr, unix.Bind(fd, sockaddr(a)))
	return fd
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func (b *bench) must(what string, err error) {
	if err != nil {
		panic(stop{fmt.Errorf("%s: %w", what, err)})
	}
}

// A scenario opens sockets; want is what is observed of each, in the order of
// opening: on kernels before 6.8, from 6.8 on, and from 6.8 with the first bind
// repaired ("" where that changes nothing). The address bucket's own pair
// follows after a bar where there is one.
type scenario struct {
	name                   string
	open                   func(b *bench)
	before68, from68, pair string
}

const (
	ra = reusecheck.ReuseAddr
	rp = reusecheck.ReusePort
)

var scenarios = []scenario{{
	name:     "a plain first bind",
	open:     func(b *bench) { b.bind(0, "127.0.0.1:40000") },
	before68: "40000 0/0", from68: "40000 0/0", pair: "0/0",
}, {
	name:     "a reuseaddr first bind",
	open:     func(b *bench) { b.bind(ra, "127.0.0.1:40000") },
	before68: "40000 1/0", from68: "40000 0/0", pair: "0/0",
}, {
	name:     "a reuseport first bind",
	open:     func(b *bench) { b.bind(rp, "127.0.0.1:40000") },
	before68: "40000 0/1 uid 0 tcp4 127.0.0.1", from68: "40000 0/2 uid 0 tcp4 127.0.0.1", pair: "0/2",
}, {
	name:     "a first bind with both",
	open:     func(b *bench) { b.bind(ra|rp, "0.0.0.0:1024") },
	before68: "1024 1/1 uid 0 tcp4 0.0.0.0", from68: "1024 0/2 uid 0 tcp4 0.0.0.0", pair: "0/2",
}, {
	name: "two sockets of one port share its bucket, but not an address bucket",
	open: func(b *bench) {
		b.bind(rp, "127.0.0.1:40000")
		b.bind(0, "127.0.0.2:40000")
	},
	before68: "40000 0/0; 40000 0/0", from68: "40000 0/0; 40000 0/0", pair: "0/2; 0/0",
}, {
	name:     "an IPv6 wildcard",
	open:     func(b *bench) { b.bind(rp, "[::]:40000") },
	before68: "40000 0/1 uid 0 tcp6 ::", from68: "40000 0/2 uid 0 tcp6 ::", pair: "0/2",
}, {
	name:     "an IPv6 wildcard for IPv6 only",
	open:     func(b *bench) { b.bind(rp|reusecheck.V6Only, "[::]:40000") },
	before68: "40000 0/1 uid 0 tcp6 :: v6only", from68: "40000 0/2 uid 0 tcp6 :: v6only", pair: "0/2",
}, {
	name:     "a mapped address",
	open:     func(b *bench) { b.bind(rp, "[::ffff:127.0.0.1]:40000") },
	before68: "40000 0/1 uid 0 tcp6 ::ffff:127.0.0.1", from68: "40000 0/2 uid 0 tcp6 ::ffff:127.0.0.1", pair: "0/2",
}, {
	name:     "a socket without a port",
	open:     func(b *bench) { b.socket(unix.AF_INET, rp) },
	before68: "no bucket", from68: "no bucket", pair: "none",
}, {
	name: "a connect that picked its port",
	open: func(b *bench) {
		listener := b.bind(0, "127.0.0.1:40000")
		b.must("listen", unix.Listen(listener, 1))
		b.must("range", os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("50001 50001"), 0))
		client := b.socket(unix.AF_INET, 0)
		b.must("connect", unix.Connect(client, sockaddr(netip.MustParseAddrPort("127.0.0.1:40000"))))
	},
	before68: "40000 0/0; 50001 -1/-1", from68: "40000 0/0; 50001 -1/-1", pair: "0/0; -1/-1",
}}

// text is an observation in the words of a scenario.
func (x Observation) text() string {
	c := x.Cache
	if !c.Exists {
		return "no bucket"
	}
	s := fmt.Sprintf("%d %d/%d", x.Port, c.FastReuse, c.FastReusePort)
	if c.FastReusePort > 0 {
		s += fmt.Sprintf(" uid %d %v %v", c.UID, c.Family, c.Addr)
		if c.V6Only {
			s += " v6only"
		}
	}
	return s
}

func (x Observation) pairText() string {
	if !x.Pair.Exists {
		return "none"
	}
	return fmt.Sprintf("%d/%d", x.Pair.FastReuse, x.Pair.FastReusePort)
}

// seen is what one scenario showed.
type seen struct {
	Name   string `json:"name"`
	Caches string `json:"caches"`
	Pairs  string `json:"pairs"`
}

// run plays the scenario in a new namespace and observes every socket.
func (s *scenario) run(o *Observer) (out seen, err error) {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and with it
		// the namespace.
		runtime.LockOSThread()
		b := &bench{}
		defer func() {
			for _, fd := range b.sockets {
				unix.Close(fd)
			}
			p := recover()
			failed, _ := p.(stop)
			if p != nil && failed.error == nil {
				panic(p)
			}
			done <- failed.error
		}()
		b.must("unshare", unix.Unshare(unix.CLONE_NEWNET))
		b.must("lo", loopbackUp())
		s.open(b)
		out, err = s.observe(o, b.sockets)
		b.must("observe", err)
	}()
	if err := <-done; err != nil {
		return out, fmt.Errorf("%s: %w", s.name, err)
	}
	return out, nil
}

func (s *scenario) observe(o *Observer, sockets []int) (seen, error) {
	all, err := o.Read(nil)
	if err != nil {
		return seen{}, err
	}
	byFD := map[int]Observation{}
	for _, x := range all {
		byFD[x.FD] = x
	}
	var caches, pairs []string
	for _, fd := range sockets {
		x, ok := byFD[fd]
		if !ok {
			return seen{}, fmt.Errorf("descriptor %d was not observed, but %v", fd, all)
		}
		caches = append(caches, x.text())
		pairs = append(pairs, x.pairText())
	}
	return seen{s.name, strings.Join(caches, "; "), strings.Join(pairs, "; ")}, nil
}

// want is what the scenario shows on a kernel as released: one from 6.8 on with
// the first bind repaired shows what kernels before 6.8 do.
func (s *scenario) want(k KernelVersion, hasPair, repaired bool) seen {
	w := seen{Name: s.name, Caches: s.before68}
	if k.AtLeast(6, 8) && !repaired {
		w.Caches = s.from68
	}
	w.Pairs = s.pair
	switch {
	case !hasPair:
		w.Pairs = strings.Repeat("none; ", strings.Count(s.pair, ";")) + "none"
	case repaired:
		w.Pairs = "" // follows the caches; not stated
	}
	return w
}

// checkSeen compares what all scenarios showed with what the kernel is known for.
func checkSeen(t *testing.T, k KernelVersion, hasPair bool, got []seen) {
	t.Helper()
	// A kernel under test may have the repair: then all of its first binds do.
	repaired := false
	for _, g := range got {
		repaired = repaired || g.Name == "a reuseaddr first bind" && strings.HasPrefix(g.Caches, "40000 1/") && k.AtLeast(6, 8)
	}
	if repaired && !k.AtLeast(6, 19) {
		t.Errorf("kernel %v remembers a first bind, which no kernel from 6.8 to 6.18 does", k)
	}
	var want []seen
	for i, s := range scenarios {
		w := s.want(k, hasPair, repaired)
		if w.Pairs == "" && i < len(got) {
			w.Pairs = got[i].Pairs
		}
		want = append(want, w)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kernel %v: -want +got\n%s", k, d)
	}
}
