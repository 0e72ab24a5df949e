package live

import (
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// A connection that nobody accepts stays in its listener's queue. The kernel
// hands out the oldest first and takes none back, so no other connection of
// that port can be accepted meanwhile.

func behindAnother() error {
	return &reusecheck.Unsupported{What: "a connection behind one that nobody accepted", Why: "accepting it takes the other one first"}
}

func unaccepted() error {
	return &reusecheck.Unsupported{What: "an end of a connection that nobody accepted", Why: "its other end cannot be closed"}
}

// waits reports whether a connection waits in the queue of one of a port's listeners.
func (r *runner) waits(port uint16) bool {
	for _, s := range r.socks {
		if r.here(s) && s.queued && s.queuedAt == port {
			return true
		}
	}
	return false
}

// awaitQueued waits until a listener has the connection in its queue.
func (r *runner) awaitQueued(netip.AddrPort) error {
	var fds []unix.PollFd
	for _, s := range r.socks {
		if r.here(s) && s.listening {
			fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	n, err := poll(fds, min(r.options.wait(), answerWait))
	if err == nil && n == 0 {
		return r.stuck("a connection that nobody takes", "none of %d listeners had it in its queue", len(fds))
	}
	return err
}

// leaveQueue takes a connection out of the queue that it waits in, once its
// opener has reset it: closed, it owns no port, but stands before the next one.
func (r *runner) leaveQueue(s *socket) {
	if !s.queued {
		return
	}
	s.queued = false
	for _, l := range r.socks {
		if !r.here(l) || !l.listening || l.port != s.queuedAt {
			continue
		}
		if fd, _, err := unix.Accept4(l.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err == nil {
			abort(fd)
		}
	}
}

// stops follows a socket that has left what it did: a listener's queue goes with it.
func (r *runner) stops(s *socket) error {
	listened, port := s.listening, s.port
	s.release()
	if listened {
		return r.endQueue(port)
	}
	return nil
}

// endQueue follows the resets that a listener sends which stops: to the openers
// of the connections in its queue. Which they are, their own state tells.
func (r *runner) endQueue(port uint16) error {
	for _, s := range r.socks {
		if !r.here(s) || !s.queued || s.queuedAt != port {
			continue
		}
		closed, err := r.closedSoon(s.fd)
		if err != nil {
			return err
		}
		if closed { // else another listener of the port has it
			s.queued, s.ended = false, true
			s.release()
		}
	}
	return nil
}

// closedSoon reports whether a reset closes a socket, for which on loopback it
// takes no time at all.
func (r *runner) closedSoon(fd int) (bool, error) {
	const stateClose = 7
	for end := time.Now().Add(50 * time.Millisecond); ; pause() {
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		if err != nil || info.State == stateClose || time.Now().After(end) {
			return err == nil && info.State == stateClose, err
		}
	}
}
