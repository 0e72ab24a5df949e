package live

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A namespace is one network namespace, held open by a descriptor and by
// nothing else: no thread stays in it, and no name in the file system leads to
// it, so that it cannot outlive the process.
type namespace struct {
	ns   int // the namespace itself
	home int // the one that the program runs in

	diag      *diag
	sockstat  int // the namespace's /proc/net/sockstat and sockstat6
	sockstat6 int

	device   [4]int // interface index by reusecheck.Dev, 0 for one that is not there
	noDevice error  // why d1 and d2 are not there
	noIPv6   error  // why fd00::1 and its like are not there

	settings []*setting // every one that was ever changed
	want     []reusecheck.Sysctl

	redirect *redirect // nil until a connection is to be redirected
	inject   *injector // nil until a datagram is to arrive
	client   uint32    // clients made for inherited connections
}

// onFreshThread runs f on a thread that ends with it, so that whatever f does
// to its thread is gone afterwards.
func onFreshThread(f func() error) error {
	done := make(chan error)
	start := func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The process's first thread would stay for good. While it is
			// locked here, the next goroutine gets another one.
			next := make(chan error)
			go func() { runtime.LockOSThread(); next <- f() }()
			err := <-next
			runtime.UnlockOSThread()
			done <- err
			return
		}
		done <- f()
	}
	go start()
	return <-done
}

// newNamespace makes a namespace and everything in it that a trace may expect: a
// child of the program's own, or of parent if there is one.
func newNamespace(parent *namespace) (n *namespace, err error) {
	n = &namespace{ns: -1, home: -1, sockstat: -1, sockstat6: -1}
	defer func() {
		if err != nil {
			n.close()
			n = nil
		}
	}()
	return n, onFreshThread(func() error { return n.make(parent) })
}

const ownNamespace = "/proc/thread-self/ns/net"

// make runs on a thread of its own and leaves it in the new namespace.
func (n *namespace) make(parent *namespace) (err error) {
	if err := n.unshare(parent); err != nil {
		return err
	}
	if err := n.canLeave(); err != nil {
		return err
	}
	if n.sockstat, err = unix.Open("/proc/thread-self/net/sockstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open the namespace's socket counters: %w", err)
	}
	if n.sockstat6, err = unix.Open("/proc/thread-self/net/sockstat6", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("open the namespace's IPv6 socket counters: %w", err)
	}
	if n.diag, err = newDiag(); err != nil {
		return err
	}
	return n.addDevices()
}

// canLeave goes home and comes back. A user namespace may give the right to make a
// network namespace and not that to go back to one which is not its own.
func (n *namespace) canLeave() error {
	if err := unix.Setns(n.home, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("go back from a new network namespace: %w", err)
	}
	if err := unix.Setns(n.ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter a new network namespace: %w", err)
	}
	return nil
}

// unshare puts the thread into a new, bare namespace.
func (n *namespace) unshare(parent *namespace) (err error) {
	if n.home, err = unix.Open(ownNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open %s: %w (mount /proc)", ownNamespace, err)
	}
	if parent != nil {
		if err := unix.Setns(parent.ns, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the parent of a network namespace: %w", err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare a network namespace: %w", err)
	}
	if n.ns, err = unix.Open(ownNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("open %s: %w", ownNamespace, err)
	}
	return differ(n.home, n.ns)
}

// differ is the safeguard of the package: the namespace of the traces must not
// be the one that the program was started in, nor the first process's.
func differ(home, ns int) error {
	var h, s, first unix.Stat_t
	if err := unix.Fstat(home, &h); err != nil {
		return err
	}
	if err := unix.Fstat(ns, &s); err != nil {
		return err
	}
	if h.Ino == s.Ino && h.Dev == s.Dev {
		return fmt.Errorf("the new network namespace is the program's own (inode %d): refusing to work in it", s.Ino)
	}
	// Without the right to look at process 1 its namespace cannot be entered either.
	if err := unix.Stat("/proc/1/ns/net", &first); err == nil && first.Ino == s.Ino && first.Dev == s.Dev {
		return fmt.Errorf("the new network namespace is process 1's (inode %d): refusing to work in it", s.Ino)
	}
	return nil
}

// The addresses that a trace finds on lo, and the one that clients of inherited
// connections come from.
var (
	localAddrs6 = []string{"fd00::1", "fd00::2"}
	clientAddr6 = "fd00::c1"
)

func (n *namespace) addDevices() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink in the new namespace: %w", err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	n.device[reusecheck.DevLo] = lo.Attrs().Index
	for _, a := range append([]string{clientAddr6}, localAddrs6...) {
		addr := &netlink.Addr{
			IPNet: &net.IPNet{IP: net.ParseIP(a), Mask: net.CIDRMask(128, 128)},
			Flags: unix.IFA_F_NODAD,
		}
		if err := h.AddrAdd(lo, addr); err != nil {
			n.noIPv6 = fmt.Errorf("%s cannot be added to lo: %w", a, err)
			break
		}
	}
	if n.noIPv6 == nil {
		for _, a := range append([]string{clientAddr6, "::1"}, localAddrs6...) {
			if err := awaitAddr6(a); err != nil {
				return err
			}
		}
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "d1"}, PeerName: "d2"}
	if err := h.LinkAdd(veth); err != nil {
		n.noDevice = fmt.Errorf("a veth pair cannot be made: %w (load the module veth)", err)
		return nil
	}
	for i, name := range []string{"d1", "d2"} {
		l, err := h.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		n.device[reusecheck.Dev1+reusecheck.Dev(i)] = l.Attrs().Index
	}
	return nil
}

// awaitAddr6 waits until an address that was just added can be reached. The
// kernel makes it usable a moment later, for bind first and for packets then.
func awaitAddr6(addr string) (err error) {
	for end := time.Now().Add(DefaultWait); ; pause() {
		if err = reachSelf6(netip.MustParseAddr(addr)); err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s on lo cannot be used: %w", addr, err)
		}
	}
}

// reachSelf6 sends a datagram from an address to itself.
func reachSelf6(addr netip.Addr) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet6{Addr: addr.As16()}); err != nil {
		return err
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, []byte{1}, 0, self); err != nil {
		return err
	}
	_, _, err = unix.Recvfrom(fd, make([]byte, 1), 0)
	return err
}

// pause lets the kernel get on between two looks at its state.
func pause() { time.Sleep(50 * time.Microsecond) }

// enter runs f with the thread in the namespace. Sockets belong to the
// namespace that they were made in, so nothing but their making needs it.
func (n *namespace) enter(f func() error) error {
	runtime.LockOSThread()
	if err := unix.Setns(n.ns, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter the trace's network namespace: %w", err)
	}
	err := f()
	if back := unix.Setns(n.home, unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that no other goroutine finds itself there.
		return fmt.Errorf("leave the trace's network namespace: %w", back)
	}
	runtime.UnlockOSThread()
	return err
}

func (n *namespace) close() {
	if n == nil {
		return
	}
	n.closeInside()
	for _, fd := range []int{n.ns, n.home} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	n.ns, n.home = -1, -1
}

// closeInside closes all that is of the namespace, so that only its own
// descriptor keeps it.
func (n *namespace) closeInside() {
	if n.redirect != nil {
		n.redirect.close()
		n.redirect = nil
	}
	if n.inject != nil {
		n.inject.close()
		n.inject = nil
	}
	if n.diag != nil {
		n.diag.close()
		n.diag = nil
	}
	for _, s := range n.settings {
		unix.Close(s.fd)
	}
	n.settings = nil
	for _, fd := range []int{n.sockstat, n.sockstat6} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	n.sockstat, n.sockstat6 = -1, -1
}

// isPermission says whether an error is the lack of a privilege.
func isPermission(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
}
