package live

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// connect opens a connection. The listener's end is accepted at once.
func (r *runner) connect(s *socket, op reusecheck.Op) (reusecheck.Answer, error) {
	r.hold(op.Addr.Port())
	if r.waits(op.Addr.Port()) {
		return reusecheck.Answer{}, behindAnother()
	}
	if err := r.open(s.fd, kernelAddr(s.family, op.Addr)); err != nil {
		switch err {
		case unix.EADDRNOTAVAIL, unix.ECONNREFUSED, unix.ECONNRESET, unix.ETIMEDOUT, unix.EINVAL:
			s.release() // the attempt was taken up, and closed the socket
		case unix.ECONNABORTED:
			return reusecheck.Answer{}, r.stuck("a connection with itself that is over at once",
				"a shutdown before it is remembered, and leaves a TIME_WAIT entry without a name")
		}
		if err == unix.ECONNREFUSED && r.cut(op.Addr.Port()) {
			return reusecheck.Answer{}, r.twins()
		}
		return answer(err)
	}
	local, err := localAddr(s.fd)
	if err != nil {
		return reusecheck.Answer{}, err
	}
	peer, err := peerAddr(s.fd)
	if err != nil {
		return reusecheck.Answer{}, err
	}
	if r.cut(op.Addr.Port()) {
		return reusecheck.Answer{}, r.twins()
	}
	s.connected, s.other = true, -1
	switch {
	case local == peer: // the socket is connected to itself, and nothing waits for anybody
		s.self = local
	case op.Unaccepted:
		if err := r.awaitQueued(local); err != nil {
			return reusecheck.Answer{}, err
		}
		s.queued, s.queuedAt = true, op.Addr.Port()
	default:
		if _, s.other, err = r.accept(local); err != nil {
			return reusecheck.Answer{}, err
		}
	}
	if s.port != 0 {
		return reusecheck.Success, nil
	}
	s.port = local.Port()
	r.hold(s.port)
	return reusecheck.Picked(s.port), nil
}

func (r *runner) twins() error {
	return r.stuck("two connections with one 4-tuple", "the SYN of the second, on another device, ended the first one's other end")
}

// cut reports whether a connection to a port has lost an end that the trace
// has not ended.
func (r *runner) cut(port uint16) bool {
	const established = 1
	for _, s := range r.socks {
		if !r.here(s) || !s.connected || s.ended || s.other < 0 || s.foreign {
			continue
		}
		if local, err := localAddr(s.other); err != nil || local.Port() != port {
			continue
		}
		if info, err := unix.GetsockoptTCPInfo(s.other, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && info.State != established {
			return true
		}
	}
	return false
}

// answerWait is shorter than the second after which a SYN is sent again. On
// loopback each is answered at once, unless the kernel sent it nowhere: an IPv6
// socket that has connected over IPv4 does not find the way back, and a
// connection whose 4-tuple is in use on another device meets that one.
const answerWait = 700 * time.Millisecond

// open connects a descriptor and collects the result, which a second connect
// gives: a socket whose result is not collected stays in the middle.
func (r *runner) open(fd int, sa unix.Sockaddr) error {
	err := unix.Connect(fd, sa)
	if err != unix.EINPROGRESS {
		return err
	}
	wait := min(r.options.wait(), answerWait)
	for end := time.Now().Add(wait); ; {
		if err = unix.Connect(fd, sa); err != unix.EALREADY {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return r.stuck("a connection that nobody answers", "the kernel sent a SYN and had neither an answer nor a reset within %s", wait)
		}
		if _, err := poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, left); err != nil {
			return fmt.Errorf("poll the connection: %w", err)
		}
	}
}

// poll waits for one of the descriptors, at most for the time given.
func poll(fds []unix.PollFd, wait time.Duration) (int, error) {
	for {
		n, err := unix.Poll(fds, int(max(wait, 0).Milliseconds())+1)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// stuck is the error of a step that the kernel leaves in the middle: what the
// trace means by it does not come about. The namespace is not used again.
func (r *runner) stuck(what, why string, args ...any) error {
	r.dirty = true
	return &reusecheck.Unsupported{What: what, Why: fmt.Sprintf(why, args...)}
}

// accept takes the connection from one end, from whichever listener has it, as
// that listener's user.
func (r *runner) accept(end netip.AddrPort) (by *socket, fd int, err error) {
	var listeners []*socket
	var fds []unix.PollFd
	for _, s := range r.socks {
		// What waits in a queue is not for now, and its listener takes no other.
		if r.here(s) && s.listening && !r.waits(s.port) {
			listeners = append(listeners, s)
			fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	wait := min(r.options.wait(), answerWait)
	for until := time.Now().Add(wait); ; {
		if _, err := poll(fds, time.Until(until)); err != nil {
			return nil, -1, fmt.Errorf("poll the listeners: %w", err)
		}
		for i := range fds {
			if fds[i].Revents&unix.POLLIN == 0 {
				continue
			}
			fd, from, err := r.acceptFrom(listeners[i])
			if err != nil {
				return nil, -1, ofSocketCall("accept", err)
			}
			if from == bare(end) && listeners[i].stillborn {
				abort(fd)
				return nil, -1, r.stuck("a connection to a socket that was shut down before it listened", "its accepted end is shut down from the start")
			}
			if from == bare(end) {
				return listeners[i], fd, nil
			}
			abort(fd) // of a connection that its client gave up
		}
		if time.Now().After(until) {
			return nil, -1, r.stuck("a connection that nobody takes", "none of %d listeners had it within %s", len(fds), wait)
		}
	}
}

// acceptFrom takes a connection from one listener.
func (r *runner) acceptFrom(l *socket) (fd int, from netip.AddrPort, err error) {
	var sa unix.Sockaddr
	err = r.asUser(l.uid, func() (err error) {
		fd, sa, err = unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err
	})
	return fd, bare(addrPort(sa)), err
}

// bare gives both ends of a connection the same form, whatever their families.
func bare(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// shutdown shuts a socket down for reading and writing: a listener stops
// listening, a connection ends at both ends.
func (r *runner) shutdown(s *socket) (reusecheck.Answer, error) {
	if s.queued {
		return reusecheck.Answer{}, unaccepted()
	}
	connected, self := s.connected, s.self.IsValid()
	end := r.endOf(s)
	if dev := s.dev; connected && away(dev) {
		// What ends a connection comes over lo: for that moment a socket on another
		// device is taken off it, which no cache and no other step sees.
		if err := r.setDevice(s, reusecheck.NoDev); err != nil {
			return reusecheck.Answer{}, err
		}
		defer func() { _ = r.setDevice(s, dev) }() // it was there a moment ago
	}
	if err := unix.Shutdown(s.fd, unix.SHUT_RDWR); err != nil {
		s.stillborn = s.stillborn || err == unix.ENOTCONN
		end()
		return answer(err)
	}
	if connected {
		s.ended = true
		if err := r.awaitEnd(s, self, end); err != nil {
			return reusecheck.Answer{}, err
		}
	}
	return reusecheck.Success, r.stops(s)
}

// awaitEnd waits for the end of a connection that was shut down: the other end
// resets it, or the socket's own FIN comes back and leaves a TIME_WAIT entry.
func (r *runner) awaitEnd(s *socket, self bool, end func()) error {
	if self {
		defer end()
	} else {
		end()
	}
	return r.awaitClosed(s.fd)
}

// awaitClosed waits until the other end's reset has closed a socket.
func (r *runner) awaitClosed(fd int) error {
	const stateClose = 7
	for end := time.Now().Add(r.options.wait()); ; pause() {
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		if err != nil {
			return fmt.Errorf("read the connection's state: %w", err)
		}
		if info.State == stateClose {
			return nil
		}
		if time.Now().After(end) {
			return r.stuck("a shutdown of a connection that does not end", "what ends it at the other end did not come back within %s", r.options.wait())
		}
	}
}

// disconnect connects a socket to AF_UNSPEC.
func (r *runner) disconnect(s *socket) (reusecheck.Answer, error) {
	closes := s.connected || s.listening // an idle socket keeps its port
	end := r.endOf(s)
	err := disconnectCall(s.fd)
	end()
	if err != nil {
		return answer(err)
	}
	s.ended, s.stillborn = false, false
	r.leaveQueue(s)
	if closes {
		return reusecheck.Success, r.stops(s)
	}
	return reusecheck.Success, nil
}
