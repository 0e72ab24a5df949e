package live

import (
	"context"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

// TimeBinds opens n TCP sockets over IPv4 with some options, in a network
// namespace of their own, binds them to one port on the given addresses in turn,
// and gives the time that the bind calls took, of the thread's own processor
// time, so that a busy machine is not measured. All sockets stay open until the
// last one is bound. The error is an [*Unavailable] without a namespace, and a
// *[reusecheck.Unsupported] where so many descriptors are not allowed.
func TimeBinds(ctx context.Context, opts reusecheck.Opt, addrs []netip.Addr, port uint16, n int) (took time.Duration, err error) {
	if err := allowDescriptors(n); err != nil {
		return 0, err
	}
	ns, err := newNamespace(nil)
	if err != nil {
		return 0, cannotTime(err)
	}
	defer ns.close()
	fds := make([]int, 0, n)
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	to := make([]unix.RawSockaddrInet4, len(addrs))
	for i, a := range addrs {
		to[i] = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: bigEndian(port), Addr: a.As4()}
	}
	err = ns.enter(func() error {
		for range n {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return ofSocketCall("socket", err)
			}
			fds = append(fds, fd)
			for _, o := range []struct {
				opt  reusecheck.Opt
				name int
			}{{reusecheck.ReuseAddr, unix.SO_REUSEADDR}, {reusecheck.ReusePort, unix.SO_REUSEPORT}} {
				if opts.Has(o.opt) {
					if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.name, 1); err != nil {
						return err
					}
				}
			}
		}
		start, err := threadTime()
		if err != nil {
			return err
		}
		for i, fd := range fds {
			if i%256 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			// A raw call: what is measured is the kernel, not the scheduler.
			if _, _, e := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&to[i%len(to)])), unix.SizeofSockaddrInet4); e != 0 {
				return fmt.Errorf("bind of socket %d: %w", i+1, e)
			}
		}
		end, err := threadTime()
		took = end - start
		return err
	})
	return took, err
}

// cannotTime says why there is no namespace to time anything in. What is timed runs
// in this process, with no helper between, so that a user has to bring the
// namespaces along.
func cannotTime(err error) *Unavailable {
	return &Unavailable{What: "network namespace", Why: err.Error(),
		Do: "run as root, or in namespaces of your own (unshare --map-root-user --net)"}
}

// threadTime is the processor time that the thread has used, in the kernel too.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("read the thread's processor time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

func bigEndian(port uint16) uint16 {
	b := [2]byte{byte(port >> 8), byte(port)}
	return *(*uint16)(unsafe.Pointer(&b))
}

// allowDescriptors raises the limit of open files so that n sockets fit.
func allowDescriptors(n int) error {
	const others = 64 // files that the program has open besides
	need := uint64(n + others)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= need {
		return nil
	}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: need, Max: max(need, l.Max)}) == nil {
		return nil
	}
	if l.Max >= need && unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: need, Max: l.Max}) == nil {
		return nil
	}
	return &reusecheck.Unsupported{What: fmt.Sprintf("%d sockets at a time", n),
		Why: fmt.Sprintf("the limit of open files is %d and cannot be raised; at most %d sockets fit", l.Max, max(0, int(l.Max)-others))}
}
