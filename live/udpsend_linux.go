package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// An injector lets datagrams arrive in a namespace, on its loopback if nothing
// else is said. It writes whole packets to raw sockets, so that it holds no UDP
// port of its own and can name any source.
type injector struct {
	raw4, raw6 int
	door       *doorway // nil until one is to arrive on d1 or d2
	// marks receives a packet sent after each datagram: the loopback delivers in
	// order, so that the datagram has arrived, or never will, when it is there.
	marks int
	last  uint64 // the number of the last datagram
	cpu   int    // the processor that sends, and so receives, unless a step names one
}

// markProtocol is one of the IP protocol numbers kept for experiments (RFC 3692).
const markProtocol = 253

func (n *namespace) injector() (*injector, error) {
	if n.inject != nil {
		return n.inject, nil
	}
	in := &injector{raw4: -1, raw6: -1, marks: -1, cpu: firstCPU()}
	const kind = unix.SOCK_RAW | unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	err := n.enter(func() (err error) {
		if in.raw4, err = unix.Socket(unix.AF_INET, kind, unix.IPPROTO_RAW); err != nil {
			return err
		}
		if in.raw6, err = unix.Socket(unix.AF_INET6, kind, unix.IPPROTO_RAW); err != nil && n.noIPv6 == nil {
			return err
		}
		in.marks, err = unix.Socket(unix.AF_INET, kind, markProtocol)
		return err
	})
	if err != nil {
		in.close()
		if isPermission(err) {
			return nil, &reusecheck.Unsupported{What: "datagrams", Why: "raw sockets take the capability NET_RAW"}
		}
		return nil, ofSocketCall("raw socket", err)
	}
	n.inject = in
	return in, nil
}

func (in *injector) close() {
	for _, fd := range []int{in.raw4, in.raw6, in.marks} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if in.door != nil {
		in.door.close()
	}
}

// firstCPU is a processor that this process may run on.
func firstCPU() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for c := range 1024 {
			if set.IsSet(c) {
				return c
			}
		}
	}
	return 0
}

// onCPU runs f on one processor if it can be: a socket that asked for it, or that
// received there before, scores more there, and the loopback's order holds on one
// processor only.
func onCPU(cpu int, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var was, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &was); err != nil {
		return f()
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return f()
	}
	err := f()
	if back := unix.SchedSetaffinity(0, &was); back != nil && err == nil {
		return fmt.Errorf("give the thread its processors back: %w", back)
	}
	return err
}

// send lets a datagram arrive and finds the socket that has it.
func (r *runner) send(op reusecheck.Op) (reusecheck.Answer, error) {
	from, to := unmap(op.From), unmap(op.Addr)
	switch {
	case isVeth(op.Dev) && (from.Addr() == netip.IPv6Loopback() || to.Addr() == netip.IPv6Loopback()):
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "datagrams of ::1 on " + op.Dev.String(), Why: "the kernel takes that address on the loopback only"}
	case from.Addr().Is4() != to.Addr().Is4() || !isOwn(from.Addr()) || !isOwn(to.Addr()) || from.Port() == 0 || to.Port() == 0:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: "a datagram from " + op.From.String() + " to " + op.Addr.String(),
			Why: "both ends must be addresses of the loopback, of one family"}
	}
	in, err := r.ns.injector()
	if err != nil {
		return reusecheck.Answer{}, err
	}
	shut := func() error { return nil }
	if isVeth(op.Dev) {
		if shut, err = r.ns.open(in, op.Dev); err != nil {
			return reusecheck.Answer{}, err
		}
	}
	in.last++
	deliver := func() error { return in.deliver(from, to, op.Dev, r.options.wait()) }
	if op.CPU == reusecheck.NoCPU {
		err = onCPU(in.cpu, deliver)
	} else {
		err = onProcessor(op.CPU, deliver)
	}
	if err := errors.Join(err, shut()); err != nil {
		return reusecheck.Answer{}, err
	}
	who := reusecheck.NoID
	for _, s := range r.socks {
		if s == nil || !in.has(s.fd) {
			continue
		}
		if who != reusecheck.NoID {
			return reusecheck.Answer{}, fmt.Errorf("%s and %s both received one datagram", who, s.id)
		}
		who = s.id
	}
	if who == reusecheck.NoID {
		return reusecheck.Answer{Kind: reusecheck.Nobody}, nil
	}
	return reusecheck.Answer{Kind: reusecheck.Received, Who: who}, nil
}

func isVeth(d reusecheck.Dev) bool { return d == reusecheck.Dev1 || d == reusecheck.Dev2 }

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// isOwn reports whether a trace's namespace has the address on its loopback.
func isOwn(a netip.Addr) bool {
	if a.Is4() {
		return a.As4()[0] == 127
	}
	for _, own := range append([]string{"::1"}, localAddrs6...) {
		if a == netip.MustParseAddr(own) {
			return true
		}
	}
	return false
}

// deliver sends the datagram and its mark, and waits for the mark.
func (in *injector) deliver(from, to netip.AddrPort, dev reusecheck.Dev, wait time.Duration) error {
	if err := in.sendOn(dev, datagram(from, to, in.last), to.Addr()); err != nil {
		return fmt.Errorf("send a datagram from %s to %s: %w", from, to, err)
	}
	loop := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	mark := binary.BigEndian.AppendUint64(ipv4(loop, loop, markProtocol, 8), in.last)
	if err := unix.Sendto(in.raw4, mark, 0, &unix.SockaddrInet4{Addr: loop.As4()}); err != nil {
		return fmt.Errorf("send the packet behind a datagram: %w", err)
	}
	var buf [64]byte
	for end := time.Now().Add(wait); ; {
		n, _, err := unix.Recvfrom(in.marks, buf[:], 0)
		if err == nil && n == 28 && binary.BigEndian.Uint64(buf[20:]) == in.last {
			return nil
		}
		if err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return fmt.Errorf("receive the packet behind a datagram: %w", err)
		}
		left := time.Until(end)
		if left <= 0 {
			return errors.New("a packet on the loopback did not arrive in time")
		}
		if err == unix.EAGAIN {
			if _, err := poll([]unix.PollFd{{Fd: int32(in.marks), Events: unix.POLLIN}}, left); err != nil {
				return fmt.Errorf("wait for the packet behind a datagram: %w", err)
			}
		}
	}
}

// sendOn lets one packet arrive on a device, the loopback if it is none.
func (in *injector) sendOn(dev reusecheck.Dev, packet []byte, to netip.Addr) error {
	switch {
	case isVeth(dev):
		return in.door.enter(dev, packet, to)
	case to.Is4():
		return unix.Sendto(in.raw4, packet, 0, &unix.SockaddrInet4{Addr: to.As4()})
	}
	return unix.Sendto(in.raw6, packet, 0, &unix.SockaddrInet6{Addr: to.As16()})
}

// has reports whether a socket has the last datagram, and takes it out. That an
// earlier one found nobody can be reported in between, as an error of the socket
// that it came from.
func (in *injector) has(fd int) bool {
	var buf [16]byte
	for range 4 {
		n, _, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
		switch {
		case err == nil && n == 8 && binary.BigEndian.Uint64(buf[:]) == in.last:
			return true
		case err == unix.EAGAIN, err == nil && n == 0: // the second: shut down
			return false
		}
	}
	return false
}

// ipv4 is a header for n bytes of payload; the kernel fills in the rest.
func ipv4(from, to netip.Addr, protocol byte, n int) []byte {
	h := make([]byte, 20, 20+n)
	h[0], h[8], h[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(h[2:], uint16(20+n))
	f, t := from.As4(), to.As4()
	copy(h[12:], f[:])
	copy(h[16:], t[:])
	return h
}

// datagram is a whole packet with a UDP datagram that carries a number.
func datagram(from, to netip.AddrPort, number uint64) []byte {
	udp := binary.BigEndian.AppendUint16(nil, from.Port())
	udp = binary.BigEndian.AppendUint16(udp, to.Port())
	udp = append(udp, 0, 16, 0, 0)
	udp = binary.BigEndian.AppendUint64(udp, number)
	if to.Addr().Is4() {
		return append(ipv4(from.Addr(), to.Addr(), unix.IPPROTO_UDP, len(udp)), udp...) // no checksum, as IPv4 allows
	}
	f, t := from.Addr().As16(), to.Addr().As16()
	pseudo := append(append(append([]byte(nil), f[:]...), t[:]...), 0, 0, 0, byte(len(udp)), 0, 0, 0, unix.IPPROTO_UDP)
	binary.BigEndian.PutUint16(udp[6:], checksum(append(pseudo, udp...)))
	h := []byte{0x60, 0, 0, 0, 0, byte(len(udp)), unix.IPPROTO_UDP, 64}
	return append(append(append(h, f[:]...), t[:]...), udp...)
}

// checksum is that of RFC 1071, never 0, which would say that there is none.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	if s := ^uint16(sum); s != 0 {
		return s
	}
	return 0xffff
}
