package live

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// TimeNamespaces makes n network namespaces with so many TIME_WAIT sockets in each,
// lets go of all of them, and gives the times that the making and the teardown
// took. How many batches the kernel makes of them is chance. Namespaces that
// others on the machine leave meanwhile are counted and waited for as well. The
// error is an [*Unavailable] where namespaces cannot be made, and a
// [*reusecheck.Unsupported] where their end cannot be seen.
func TimeNamespaces(ctx context.Context, n, each int) (Teardown, error) {
	if err := allowDescriptors(2*n + 2*each); err != nil {
		return Teardown{}, err
	}
	c := newWalkCounter()
	defer c.close()
	t := &teardown{ctx: ctx, each: each}
	defer t.close()
	if err := onFreshThread(func() error { return t.make(n) }); err != nil {
		if isPermission(err) {
			return t.Teardown, cannotTime(err)
		}
		return t.Teardown, err
	}
	before, err := c.all()
	if err != nil {
		return t.Teardown, err
	}
	start := time.Now()
	for _, ns := range t.namespaces {
		ns.close()
	}
	for _, s := range t.signs {
		if gone, err := s.await(ctx); err != nil {
			return t.Teardown, err
		} else if !gone {
			return t.Teardown, fmt.Errorf("a network namespace was not torn down within %s", teardownWait)
		}
	}
	t.Gone = time.Since(start)
	after, err := c.all()
	t.Counted = c.counts()
	t.Batches, t.Walks = int(after.Batches-before.Batches), int(after.Walks-before.Walks)
	return t.Teardown, err
}

// teardown is a round of TimeNamespaces.
type teardown struct {
	Teardown
	ctx        context.Context
	each       int
	namespaces []*namespace
	signs      []*sign
}

func (t *teardown) close() {
	for _, ns := range t.namespaces {
		ns.close()
	}
	closeSigns(t.signs)
}

// make runs on a thread of its own.
func (t *teardown) make(n int) error {
	for range n {
		if t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		ns := &namespace{ns: -1, home: -1, sockstat: -1, sockstat6: -1}
		t.namespaces = append(t.namespaces, ns)
		start := time.Now()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare a network namespace: %w", err)
		}
		t.Made += time.Since(start)
		var err error
		if ns.ns, err = unix.Open(ownNamespace, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open %s: %w", ownNamespace, err)
		}
		s, err := openSign()
		if err != nil {
			return err
		}
		t.signs = append(t.signs, s)
		if err := ns.leaveTimeWaits(t.each); err != nil {
			return fmt.Errorf("leave TIME_WAIT sockets: %w", err)
		}
	}
	return nil
}

// leaveTimeWaits leaves so many TIME_WAIT sockets in the namespace, which the thread
// is in.
func (n *namespace) leaveTimeWaits(count int) (err error) {
	if count == 0 {
		return nil
	}
	if n.sockstat, err = unix.Open("/proc/thread-self/net/sockstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	defer n.closeInside()
	if err := loopbackUp(); err != nil {
		return err
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	here := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(l, here); err != nil {
		return err
	}
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	to, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	for range count {
		if err := leaveTimeWait(l, to); err != nil {
			return err
		}
	}
	for end := time.Now().Add(DefaultWait); ; pause() {
		got, err := n.timeWaits()
		if err != nil || got == count {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d are there, not %d", got, count)
		}
	}
}

func leaveTimeWait(l int, to unix.Sockaddr) error {
	c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(c, to); err != nil { // loopback answers at once
		unix.Close(c)
		return err
	}
	s, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	unix.Close(c)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	// Closed before it knows that the other end is, it would stay in TIME_WAIT too.
	if n, err := poll([]unix.PollFd{{Fd: int32(s), Events: unix.POLLRDHUP}}, DefaultWait); err != nil || n == 0 {
		return fmt.Errorf("the end of a connection did not arrive within %s: %v", DefaultWait, err)
	}
	return nil
}
