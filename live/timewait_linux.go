package live

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// timewait closes a connected socket first and its other end then, and waits
// until the TIME_WAIT entry stands in its place and the other end is gone.
func (r *runner) timewait(s *socket) (reusecheck.Answer, error) {
	if !s.connected {
		return reusecheck.Fail(reusecheck.ENOTCONN), nil
	}
	if s.queued {
		return reusecheck.Answer{}, unaccepted()
	}
	if away(s.dev) {
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "a TIME_WAIT socket on d1 or d2",
			Why: "the connection would have to end over that device, and it leads nowhere"}
	}
	t, err := r.tupleOf(s)
	if err != nil {
		return reusecheck.Answer{}, err
	}
	unix.Close(s.fd)
	if s.other >= 0 {
		unix.Close(s.other)
	}
	s.fd, s.other, s.connected = -1, -1, false
	s.wait = &t
	back := t
	back.local, back.peer = t.peer, t.local
	wait := min(r.options.wait(), answerWait)
	for end := time.Now().Add(wait); ; pause() {
		e, found, err := r.ns.diag.find(t)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		o, busy, err := r.ns.diag.find(back)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		switch {
		case found && e.state == stateTimeWait && (!busy || t.local == t.peer):
			s.wait.cookie = e.cookie
			return reusecheck.Success, nil
		case !found && busy && o.state == stateTimeWait:
			// A shutdown before listen or connect is remembered, and closes
			// the connection as soon as it is there.
			return reusecheck.Answer{}, r.stuck("a TIME_WAIT socket at the end that closes last",
				"the kernel had closed the other end of the connection before")
		}
		if time.Now().After(end) {
			return reusecheck.Answer{}, r.stuck("a TIME_WAIT socket of a connection that does not end",
				"%s has no TIME_WAIT entry after %s", t.local, wait)
		}
	}
}

// tupleOf is a connected socket's name for sock_diag.
func (r *runner) tupleOf(s *socket) (tuple, error) {
	local, err := localAddr(s.fd)
	if err != nil {
		return tuple{}, err
	}
	peer, err := peerAddr(s.fd)
	if err != nil {
		return tuple{}, err
	}
	return r.tuple(s, local, peer), nil
}

func (r *runner) tuple(s *socket, local, peer netip.AddrPort) tuple {
	family := uint8(unix.AF_INET)
	if s.family.Is6() {
		family = unix.AF_INET6
	}
	// Asked for on lo, sockets without a device are found as well.
	return tuple{family: family, device: uint32(r.ns.device[reusecheck.DevLo]), cookie: noCookie, local: local, peer: peer}
}

// away says whether a socket bound to the device is out of loopback's reach.
func away(d reusecheck.Dev) bool { return d != reusecheck.NoDev && d != reusecheck.DevLo }

// expire ends a TIME_WAIT entry by sock_diag's destroy request. The entry is
// named by its cookie, so that a connection that took its place is not hit.
func (r *runner) expire(s *socket, id reusecheck.ID) (reusecheck.Answer, error) {
	if s.wait == nil {
		return reusecheck.Fail(reusecheck.EINVAL), nil
	}
	switch err := r.ns.diag.destroy(*s.wait); err {
	case nil:
		r.forget(id)
		return reusecheck.Success, nil
	case unix.ENOENT, unix.ESTALE: // a connection took its place, or stands in front of it
		stands, err := r.ns.diag.stands(*s.wait)
		if err != nil {
			return reusecheck.Answer{}, err
		}
		if stands {
			return reusecheck.Answer{}, r.stuck("the end of a TIME_WAIT socket beside a connection with its 4-tuple",
				"a socket without a device has the 4-tuple too, and the kernel finds that one when asked for the other")
		}
		r.forget(id)
		return reusecheck.Fail(reusecheck.EBADF), nil
	case unix.EOPNOTSUPP, unix.EPERM:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "the end of a TIME_WAIT socket",
			Why: "sock_diag does not destroy sockets here (CONFIG_INET_DIAG_DESTROY): " + err.Error()}
	default:
		return reusecheck.Answer{}, fmt.Errorf("expire: %w", err)
	}
}
