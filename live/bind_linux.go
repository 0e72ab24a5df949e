package live

import (
	"fmt"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// backlog is more connections than any trace leaves waiting: each is accepted at once.
const backlog = 128

// bind binds a socket; the port is in the answer when the kernel picked it.
func (r *runner) bind(s *socket, op reusecheck.Op) (reusecheck.Answer, error) {
	r.hold(op.Addr.Port())
	if err := unix.Bind(s.fd, kernelAddr(s.family, op.Addr)); err != nil {
		return answer(err)
	}
	if port := op.Addr.Port(); port != 0 {
		s.port, s.locked = port, true
		return reusecheck.Success, nil
	}
	return r.picked(s)
}

// listen makes a socket listen; one without a port gets one.
func (r *runner) listen(s *socket) (reusecheck.Answer, error) {
	if err := unix.Listen(s.fd, backlog); err != nil {
		if err == unix.EINVAL && s.port == 0 && !s.ended {
			// Linux 6.18 refuses a socket that has once sent a SYN after it
			// gave it a port, and leaves it the port.
			if _, err := r.picked(s); err != nil {
				return reusecheck.Answer{}, err
			}
		}
		return answer(err)
	}
	if s.listening { // only the backlog changed
		return reusecheck.Success, nil
	}
	if err := r.enterGroup(s); err != nil {
		return reusecheck.Answer{}, err
	}
	s.listening = true
	if s.port != 0 {
		return reusecheck.Success, nil
	}
	return r.picked(s)
}

// enterGroup takes note of the reuseport group that a new listener is in: that
// of a listener like it, which is in one from then on if it was not, or its own.
// What is changed later does not move it.
func (r *runner) enterGroup(s *socket) error {
	s.group = 0
	at, err := localAddr(s.fd)
	if err != nil {
		return err
	}
	s.at = at
	if s.family.Is6() {
		// The effective flag: a bind to a specific IPv6 address sets it too.
		only, err := unix.GetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		if err != nil {
			return fmt.Errorf("IPV6_V6ONLY of a listener: %w", err)
		}
		s.only6 = only != 0
	}
	if !s.opts.Has(reusecheck.ReusePort) {
		return nil
	}
	r.groups++
	s.group = r.groups
	for _, o := range r.socks {
		if r.here(o) && o.listening && o.opts.Has(reusecheck.ReusePort) && o.at == at &&
			o.family == s.family && o.uid == s.uid && o.dev == s.dev &&
			o.only6 == s.only6 {
			if o.group == 0 {
				o.group = s.group
			}
			s.group = o.group
		}
	}
	return nil
}

// picked takes note of the port that the kernel gave to a socket that had none,
// and answers with it. A no-port bind leaves none.
func (r *runner) picked(s *socket) (reusecheck.Answer, error) {
	a, err := localAddr(s.fd)
	if err != nil {
		return reusecheck.Answer{}, err
	}
	s.port = a.Port()
	r.hold(s.port)
	return reusecheck.Picked(s.port), nil
}

// release takes note that a socket came to be closed: without a port that the
// trace named, it holds none any more.
func (s *socket) release() {
	s.listening, s.group = false, 0
	if !s.locked {
		s.port = 0
	}
}
