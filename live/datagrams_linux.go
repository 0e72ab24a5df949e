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

// TimeDatagrams opens UDP sockets over IPv4 at one address and port of a network
// namespace of their own: one without a peer, or as many as are to be connected,
// each to a peer of its own. It gives the time that n datagrams take to arrive,
// from the peers in turn, on one processor. No socket has room for more than a
// few, so that nearly all end behind the look-up. The error is an [*Unavailable]
// without a namespace.
func TimeDatagrams(ctx context.Context, connected, n int) (took time.Duration, err error) {
	if err := allowDescriptors(connected + 1); err != nil {
		return 0, err
	}
	ns, err := newNamespace(nil)
	if err != nil {
		return 0, cannotTime(err)
	}
	defer ns.close()
	in, err := ns.injector()
	if err != nil {
		return 0, err
	}
	server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 40000)
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	err = ns.enter(func() error {
		for i := range max(1, connected) {
			fd, err := receiver(server)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if connected > 0 {
				if err := unix.Connect(fd, kernelAddr(reusecheck.UDP4, timedPeer(i))); err != nil {
					return fmt.Errorf("connect socket %d: %w", i+1, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	packets := make([][]byte, max(1, connected))
	for i := range packets {
		packets[i] = datagram(timedPeer(i), server, 1)
	}
	err = onCPU(in.cpu, func() error {
		const room = 8 // datagrams that fill a socket for certain
		if _, err := in.timed(ctx, packets, room*len(packets)); err != nil {
			return err
		}
		took, err = in.timed(ctx, packets, n)
		return err
	})
	return took, err
}

func timedPeer(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(1024+i%30000))
}

// receiver is a socket that shares the server's port and has next to no room.
func receiver(server netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, ofSocketCall("socket", err)
	}
	for _, name := range []int{unix.SO_REUSEADDR, unix.SO_RCVBUF} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, name, 1); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	if err := unix.Bind(fd, kernelAddr(reusecheck.UDP4, server)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("bind a receiver: %w", err)
	}
	return fd, nil
}

// timed sends n packets in turn.
func (in *injector) timed(ctx context.Context, packets [][]byte, n int) (time.Duration, error) {
	to := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	start := time.Now()
	for i := range n {
		if i%256 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		p := packets[i%len(packets)]
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(in.raw4), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), 0,
			uintptr(unsafe.Pointer(&to)), unix.SizeofSockaddrInet4)
		if e != 0 {
			return 0, fmt.Errorf("send a datagram: %w", e)
		}
	}
	return time.Since(start), nil
}
