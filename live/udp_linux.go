package live

import (
	"fmt"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// doUDP performs one operation of a UDP trace.
func (r *runner) doUDP(op reusecheck.Op) (reusecheck.Answer, error) {
	if op.CPU != reusecheck.NoCPU && firstCPU() != 0 {
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "datagrams on processor " + op.CPU.String(),
			Why: "those whose step names no processor should arrive on processor 0, where the program cannot run"}
	}
	switch op.Verb {
	case reusecheck.VSocket:
		return r.udpSocket(op)
	case reusecheck.VSend:
		return r.send(op)
	}
	s := r.get(op.Sock)
	if s == nil {
		return reusecheck.Fail(reusecheck.EBADF), nil
	}
	switch op.Verb {
	case reusecheck.VBind:
		return r.bind(s, op)
	case reusecheck.VConnect:
		return r.udpConnect(s, op)
	case reusecheck.VListen:
		return answer(unix.Listen(s.fd, backlog))
	case reusecheck.VShutdown:
		return answer(unix.Shutdown(s.fd, unix.SHUT_RDWR))
	case reusecheck.VSet:
		return r.set(s, op)
	case reusecheck.VDisconnect:
		return r.udpDisconnect(s)
	case reusecheck.VClose:
		unix.Close(s.fd)
		r.forget(op.Sock)
		return reusecheck.Success, nil
	}
	return reusecheck.Answer{}, &reusecheck.Unsupported{What: op.Verb.String(), Why: "it is not a step of system udp"}
}

var udpDomains = map[reusecheck.Family]int{reusecheck.UDP4: unix.AF_INET, reusecheck.UDP6: unix.AF_INET6}

func (r *runner) udpSocket(op reusecheck.Op) (reusecheck.Answer, error) {
	domain, ok := udpDomains[op.Family]
	switch {
	case !ok || op.HasNet:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: op.Family.String() + " sockets of other namespaces",
			Why: "a udp trace on the running kernel has one network namespace"}
	case op.Sock < 0 || r.get(op.Sock) != nil:
		return reusecheck.Answer{}, fmt.Errorf("socket %s: not a name that a trace can give now", op.Sock)
	}
	s := &socket{family: op.Family, uid: op.UID, fd: -1, other: -1}
	err := r.ns.enter(func() error {
		return r.asUser(op.UID, func() (err error) {
			s.fd, err = unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			return err
		})
	})
	if err != nil {
		return reusecheck.Answer{}, ofSocketCall("socket", err)
	}
	if err := r.dress(s, op); err != nil {
		unix.Close(s.fd)
		return answer(err)
	}
	r.put(op.Sock, s)
	return reusecheck.Success, nil
}

// udpConnect sets the peer. The kernel gives a socket without a port one first,
// and leaves it the port whatever comes of the rest.
func (r *runner) udpConnect(s *socket, op reusecheck.Op) (reusecheck.Answer, error) {
	failed := unix.Connect(s.fd, kernelAddr(s.family, op.Addr))
	got := reusecheck.Success
	if s.port == 0 {
		picked, err := r.picked(s)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		got = picked
	}
	if failed != nil {
		return answer(failed)
	}
	return got, nil
}

// udpDisconnect takes the peer away, the device with it, and the port unless the
// trace named it.
func (r *runner) udpDisconnect(s *socket) (reusecheck.Answer, error) {
	if err := disconnectCall(s.fd); err != nil {
		return answer(err)
	}
	s.dev = reusecheck.NoDev
	if !s.locked {
		s.port = 0
	}
	return reusecheck.Success, nil
}
