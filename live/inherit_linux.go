package live

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// inheritTries bounds how often a connection is made anew because another
// member of the named listener's reuseport group got it.
const inheritTries = 200

// inherit lets a connection arrive for a listener and accepts it as its user.
func (r *runner) inherit(l *socket, op reusecheck.Op) (reusecheck.Answer, error) {
	if r.get(op.Child) != nil || op.Child < 0 {
		return reusecheck.Answer{}, fmt.Errorf("inherit: socket %s is there already", op.Child)
	}
	to := op.Addr
	if to.Port() == 0 {
		to = netip.AddrPortFrom(to.Addr(), l.port)
	}
	r.hold(to.Port())
	if r.waits(l.port) {
		return reusecheck.Answer{}, behindAnother()
	}
	if to.Port() != l.port || l.port == 0 {
		if !l.listening || away(l.dev) { // its answer to the client would not come back
			return reusecheck.Fail(reusecheck.ECONNREFUSED), nil
		}
		done, err := r.redirectTo(l)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		defer done()
	}
	tries := inheritTries
	if op.CPU != reusecheck.NoCPU {
		tries = processorTries
	}
	for try := 0; ; try++ {
		client, err := r.client(to, op.CPU)
		if err != nil {
			return answer(err)
		}
		from, err := localAddr(client)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		by, fd, err := r.accept(from)
		if err != nil {
			abort(client)
			return reusecheck.Answer{}, err
		}
		if by == l {
			r.put(op.Child, &socket{
				fd: fd, family: l.family, opts: l.opts, uid: l.uid, dev: l.dev, port: to.Port(),
				connected: true, other: client, foreign: true,
			})
			return reusecheck.Success, nil
		}
		abort(client)
		abort(fd)
		// A group hands connections out by a hash of the client's address, so
		// the named member gets one of many, unless the group is not asked:
		// its first member may have lost reuseport since.
		if by.group == 0 || by.group != l.group || try == tries {
			return reusecheck.Answer{Kind: reusecheck.Received, Who: by.id}, nil
		}
	}
}

// client opens a connection from an address and a port that the trace does not
// use, on a processor if one is given. A refusal by the kernel is a unix.Errno.
func (r *runner) client(to netip.AddrPort, on reusecheck.CPU) (fd int, err error) {
	addr := to.Addr().Unmap()
	domain := unix.AF_INET6
	if addr.Is4() {
		domain = unix.AF_INET
	}
	err = r.ns.enter(func() (err error) {
		fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, ofSocketCall("socket", err)
	}
	if err := r.bindClient(fd, addr.Is4()); err != nil {
		unix.Close(fd)
		return -1, err
	}
	family := reusecheck.TCP6
	if addr.Is4() {
		family = reusecheck.TCP4
	}
	err = onProcessor(on, func() error { return r.open(fd, kernelAddr(family, netip.AddrPortFrom(addr, to.Port()))) })
	if err != nil {
		abort(fd)
		return -1, err
	}
	return fd, nil
}

// The ports of clients: below those that programs and automatic ranges use.
const (
	firstClientPort = 512
	lastClientPort  = 1023
)

// bindClient gives a client its address and port. No two clients of a
// namespace have the same pair within the next half a million of IPv4, or
// five hundred of IPv6.
func (r *runner) bindClient(fd int, is4 bool) error {
	for range 2 * (lastClientPort - firstClientPort + 1) {
		r.ns.client++
		n := r.ns.client
		port := uint16(firstClientPort + n%(lastClientPort-firstClientPort+1))
		if r.auto.Contains(port) || r.named(port) {
			continue
		}
		var sa unix.Sockaddr
		if is4 {
			sa = &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 64 | byte(n>>16)&63, byte(n >> 8), byte(n)}}
		} else {
			sa = &unix.SockaddrInet6{Port: int(port), Addr: netip.MustParseAddr(clientAddr6).As16()}
		}
		if err := unix.Bind(fd, sa); err != unix.EADDRINUSE {
			if err != nil {
				return fmt.Errorf("bind the client of an inherited connection: %w", err)
			}
			return nil
		}
	}
	return errors.New("no port is left for the client of an inherited connection")
}

func (r *runner) named(port uint16) bool {
	for _, p := range r.ports {
		if p == port {
			return true
		}
	}
	return false
}
