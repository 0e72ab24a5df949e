package live

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// A socket is one of the trace's.
type socket struct {
	id     reusecheck.ID
	ns     *namespace
	fd     int // -1 for a TIME_WAIT entry
	family reusecheck.Family
	opts   reusecheck.Opt // as the trace set them
	uid    uint32
	dev    reusecheck.Dev

	// port is the one held, 0 for none; locked when the trace named it. The
	// kernel does not tell: getsockname goes on showing a port that was lost.
	port      uint16
	locked    bool
	listening bool
	at        netip.AddrPort // where a listener listens
	only6     bool           // a listener's effective v6only
	group     int            // its reuseport group, 0 for none

	connected bool
	other     int  // the connection's nameless end; -1 without one, or when this socket is both ends
	ended     bool // the connection was shut down: a socket until a disconnect, but of no use
	queued    bool // its other end waits in a listener's queue, unaccepted
	queuedAt  uint16
	self      netip.AddrPort // where a connection with itself is, zero for another
	foreign   bool           // the nameless end is a client from outside of the trace

	// stillborn says that a shutdown failed because there was no connection. The
	// kernel remembers it all the same, and passes it on to what is accepted.
	stillborn bool

	wait *tuple // the TIME_WAIT entry in the socket's place
}

// probeUIDs says why this process cannot make sockets of several users, nil
// when it can.
func probeUIDs() error {
	if unix.Geteuid() != 0 {
		return &reusecheck.Unsupported{What: "uids", Why: "only root makes sockets of other users"}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const other = 1001 // setfsuid gives no error; asking again shows what it did
	unix.SetfsuidRetUid(other)
	got, _ := unix.SetfsuidRetUid(-1)
	unix.SetfsuidRetUid(0)
	if got != other {
		return &reusecheck.Unsupported{What: "uids", Why: "the user namespace maps no other user"}
	}
	return nil
}

// asUser runs f with the thread's file-system uid, which is what a socket made
// or accepted there belongs to.
func (r *runner) asUser(uid uint32, f func() error) error {
	if int(uid) == r.base {
		return f()
	}
	if r.uids != nil {
		return r.uids
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.SetfsuidRetUid(int(uid))
	defer unix.SetfsuidRetUid(r.base)
	return f()
}

var domains = map[reusecheck.Family]int{reusecheck.TCP4: unix.AF_INET, reusecheck.TCP6: unix.AF_INET6}

// socket makes a socket. An option that the kernel refuses is the answer, and
// the socket is not there then.
func (r *runner) socket(op reusecheck.Op) (reusecheck.Answer, error) {
	domain, ok := domains[op.Family]
	switch {
	case !ok:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: op.Family.String(),
			Why: "the running kernel is driven for tcp only"}
	case op.HasNet && r.system != reusecheck.TimeWaitExit:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "netns",
			Why: "a trace of this system has one network namespace on the running kernel"}
	case op.Sock < 0:
		return reusecheck.Answer{}, fmt.Errorf("socket %s: not a name that a trace can give", op.Sock)
	case r.get(op.Sock) != nil:
		return reusecheck.Answer{}, fmt.Errorf("socket %s is there already", op.Sock)
	}
	if op.HasNet {
		if r.ns = r.nets[op.Net]; r.ns == nil {
			return reusecheck.Fail(reusecheck.EBADF), nil
		}
	}
	s := &socket{family: op.Family, uid: op.UID, fd: -1, other: -1}
	err := r.ns.enter(func() error {
		return r.asUser(op.UID, func() (err error) {
			s.fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
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

// ofSocketCall is the error of a call that has nothing to do with the trace.
func ofSocketCall(what string, err error) error {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return &reusecheck.Unsupported{What: "so many sockets",
			Why: "the limit of open files is reached (raise ulimit -n)"}
	}
	if u := new(reusecheck.Unsupported); errors.As(err, &u) {
		return u
	}
	return fmt.Errorf("%s: %w", what, err)
}

// dress gives a new socket its options.
func (r *runner) dress(s *socket, op reusecheck.Op) error {
	for _, o := range reusecheck.OptNames {
		if op.Opts.Has(o.Opt) {
			if err := s.setOption(o.Opt, true); err != nil {
				return err
			}
		}
	}
	if op.Range != (reusecheck.PortRange{}) {
		const ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE, Linux 6.3
		v := int(op.Range.Lo) | int(op.Range.Hi)<<16
		err := unix.SetsockoptInt(s.fd, unix.SOL_IP, ipLocalPortRange, v)
		if err == unix.ENOPROTOOPT {
			return &reusecheck.Unsupported{What: "range", Why: "IP_LOCAL_PORT_RANGE came with Linux 6.3, this is " + Release()}
		}
		if err != nil {
			return err
		}
	}
	if op.CPU != reusecheck.NoCPU {
		if err := s.setProcessor(op.CPU); err != nil {
			return err
		}
	}
	if op.Dev != reusecheck.NoDev {
		return r.setDevice(s, op.Dev)
	}
	return nil
}

func (s *socket) setOption(o reusecheck.Opt, on bool) error {
	level, name := unix.SOL_SOCKET, 0
	switch o {
	case reusecheck.ReuseAddr:
		name = unix.SO_REUSEADDR
	case reusecheck.ReusePort:
		name = unix.SO_REUSEPORT
	case reusecheck.V6Only:
		level, name = unix.SOL_IPV6, unix.IPV6_V6ONLY
	case reusecheck.NoPort:
		level, name = unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT
	case reusecheck.Transparent:
		level, name = unix.SOL_IP, unix.IP_TRANSPARENT
	default:
		return fmt.Errorf("options %q: one at a time", o)
	}
	v := 0
	if on {
		v = 1
	}
	err := unix.SetsockoptInt(s.fd, level, name, v)
	if err == unix.EPERM && o == reusecheck.Transparent {
		return &reusecheck.Unsupported{What: "transparent", Why: "it takes the capability NET_ADMIN"}
	}
	if err == nil {
		s.opts &^= o
		if on {
			s.opts |= o
		}
	}
	return err
}

func (r *runner) setDevice(s *socket, dev reusecheck.Dev) error {
	name := ""
	if dev != reusecheck.NoDev {
		name = dev.String()
		if r.ns.noDevice != nil && dev != reusecheck.DevLo {
			return &reusecheck.Unsupported{What: "devices d1 and d2", Why: r.ns.noDevice.Error()}
		}
	}
	err := unix.SetsockoptString(s.fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, name)
	if err == unix.EPERM {
		return &reusecheck.Unsupported{What: "devices", Why: "SO_BINDTODEVICE takes the capability NET_RAW"}
	}
	if err == nil {
		s.dev = dev
	}
	return err
}

// set changes an option, the owner or the device of a socket.
func (r *runner) set(s *socket, op reusecheck.Op) (reusecheck.Answer, error) {
	var err error
	switch op.Field {
	case reusecheck.SetOpt:
		err = s.setOption(op.Opts, op.On)
	case reusecheck.SetDev:
		err = r.setDevice(s, op.Dev)
	case reusecheck.SetCPU:
		err = s.setProcessor(op.CPU)
	case reusecheck.SetUID:
		if r.uids != nil && int(op.UID) != r.base {
			return reusecheck.Answer{}, r.uids
		}
		if err = unix.Fchown(s.fd, int(op.UID), -1); err == nil {
			s.uid = op.UID
		}
	default:
		err = fmt.Errorf("set: nothing to set")
	}
	return answer(err)
}

// answer turns the error of a socket call into the step's answer. Whatever is
// not an error number ends the trace.
func answer(err error) (reusecheck.Answer, error) {
	if err == nil {
		return reusecheck.Success, nil
	}
	if e, ok := err.(unix.Errno); ok && e > 0 && e <= 255 {
		return reusecheck.Fail(reusecheck.Errno(e)), nil
	}
	return reusecheck.Answer{}, err
}

// kernelAddr is an address as the system calls of the socket's family take it.
// An IPv6 address stays one for an IPv4 socket: the kernel says what it thinks of it.
func kernelAddr(f reusecheck.Family, a netip.AddrPort) unix.Sockaddr {
	addr := reusecheck.Canonical(f, a.Addr())
	if addr.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: addr.As16()}
}

// addrPort is the inverse of kernelAddr.
func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func localAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("getsockname: %w", err)
	}
	return addrPort(sa), nil
}

func peerAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("getpeername: %w", err)
	}
	return addrPort(sa), nil
}

// abort closes a descriptor so that nothing of a connection stays.
func abort(fd int) {
	// It cannot fail on a socket, and a failure would show as a leftover at Reset.
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(fd)
}

// reset closes a socket, and the nameless end of its connection after it.
func (r *runner) reset(s *socket) {
	end := r.endOf(s)
	abort(s.fd)
	end()
}

// endOf ends what a socket that is about to leave its connection leaves: the
// nameless end; of a connection with itself, the TIME_WAIT entry that can stay.
func (r *runner) endOf(s *socket) func() {
	if !s.connected {
		return func() {}
	}
	other, self := s.other, s.self
	s.connected, s.other, s.self = false, -1, netip.AddrPort{}
	if other >= 0 {
		return func() { abort(other) }
	}
	t := r.tuple(s, self, self)
	return func() {
		// Mostly there is none. Asked to destroy one that is not there, the
		// kernel would destroy a listener of the port.
		e, found, err := r.ns.diag.find(t)
		if err == nil && found && e.state == stateTimeWait && !r.leftBehind(e.cookie) {
			t.cookie = e.cookie
			err = r.ns.diag.destroy(t)
		}
		r.dirty = r.dirty || err != nil
	}
}

// leftBehind reports whether a socket of the trace left the TIME_WAIT entry.
func (r *runner) leftBehind(cookie uint64) bool {
	for _, s := range r.socks {
		if s != nil && s.wait != nil && s.wait.cookie == cookie {
			return true
		}
	}
	return false
}
