package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// diag is a sock_diag socket of the namespace it was opened in: the kernel's
// own list of TCP sockets, which also has those that no descriptor leads to.
type diag struct {
	fd  int
	seq uint32
	buf []byte
}

// The parts of the sock_diag protocol that are used here (linux/inet_diag.h,
// linux/sock_diag.h). Addresses and ports are in network order, the rest in the
// machine's.
const (
	diagByFamily = 20
	diagDestroy  = 21

	diagRequestSize = 56 // family, protocol, extensions, states, socket id
	diagIDSize      = 48

	allStates     = 0xfff
	stateTimeWait = 6
	noCookie      = ^uint64(0)
)

// tuple names a TCP connection to sock_diag.
type tuple struct {
	family      uint8
	local, peer netip.AddrPort
	device      uint32
	cookie      uint64
}

func newDiag() (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open a sock_diag socket: %w (load the modules inet_diag and tcp_diag)", err)
	}
	// Replies come while the request is sent; the bound is for a kernel that does not answer.
	tv := unix.NsecToTimeval(int64(DefaultWait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bound the wait for sock_diag: %w", err)
	}
	return &diag{fd: fd, buf: make([]byte, 32<<10)}, nil
}

func (d *diag) close() { unix.Close(d.fd) }

func (d *diag) send(kind, flags uint16, t tuple) error {
	d.seq++
	b := make([]byte, unix.SizeofNlMsghdr+diagRequestSize)
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], uint32(len(b)))
	ne.PutUint16(b[4:], kind)
	ne.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	ne.PutUint32(b[8:], d.seq)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1] = t.family, unix.IPPROTO_TCP
	ne.PutUint32(r[4:], allStates)
	id := r[8:]
	binary.BigEndian.PutUint16(id[0:], t.local.Port())
	binary.BigEndian.PutUint16(id[2:], t.peer.Port())
	putAddr(id[4:20], t.local.Addr())
	putAddr(id[20:36], t.peer.Addr())
	ne.PutUint32(id[36:], t.device)
	ne.PutUint32(id[40:], uint32(t.cookie))
	ne.PutUint32(id[44:], uint32(t.cookie>>32))
	return unix.Sendto(d.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

func putAddr(b []byte, a netip.Addr) {
	if a.IsValid() {
		copy(b, a.AsSlice())
	}
}

// receive calls yield with the body of every reply to the last request, until
// its end.
func (d *diag) receive(yield func(kind uint16, body []byte)) error {
	for {
		size, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read sock_diag's answer: %w", err)
		}
		for b := d.buf[:size]; len(b) >= unix.SizeofNlMsghdr; {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return errors.New("sock_diag gave a message of an impossible length")
			}
			kind, flags, seq := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), binary.NativeEndian.Uint32(b[8:])
			body := b[unix.SizeofNlMsghdr:length]
			b = b[min(len(b), (length+3)&^3):]
			if seq != d.seq {
				continue
			}
			switch kind {
			case unix.NLMSG_DONE:
				return nil
			case unix.NLMSG_ERROR:
				if e := int32(binary.NativeEndian.Uint32(body)); e != 0 {
					return unix.Errno(-e)
				}
				return nil
			}
			yield(kind, body)
			if flags&unix.NLM_F_MULTI == 0 {
				return nil
			}
		}
	}
}

// diagSocket is what sock_diag says of a socket.
type diagSocket struct {
	state       uint8
	local, peer uint16
	cookie      uint64
}

func parseDiagSocket(b []byte) (diagSocket, bool) {
	if len(b) < 4+diagIDSize {
		return diagSocket{}, false
	}
	ne := binary.NativeEndian
	return diagSocket{
		state: b[1],
		local: binary.BigEndian.Uint16(b[4:]), peer: binary.BigEndian.Uint16(b[6:]),
		cookie: uint64(ne.Uint32(b[4+40:])) | uint64(ne.Uint32(b[4+44:]))<<32,
	}, true
}

// find looks one connection up; false when there is none.
func (d *diag) find(t tuple) (diagSocket, bool, error) {
	t.cookie = noCookie
	if err := d.send(diagByFamily, 0, t); err != nil {
		return diagSocket{}, false, fmt.Errorf("ask sock_diag for a connection: %w", err)
	}
	var s diagSocket
	found := false
	err := d.receive(func(_ uint16, body []byte) { s, found = parseDiagSocket(body) })
	if err == unix.ENOENT {
		return diagSocket{}, false, nil
	}
	// The kernel's look-up falls back to a listener of the port.
	found = found && s.peer == t.peer.Port() && s.local == t.local.Port()
	return s, found, err
}

// destroy ends one socket, ENOENT when it is gone already.
func (d *diag) destroy(t tuple) error {
	if err := d.send(diagDestroy, unix.NLM_F_ACK, t); err != nil {
		return err
	}
	return d.receive(func(uint16, []byte) {})
}

// stands says whether the socket that has the cookie is still there, also where
// a look-up finds another one with the same 4-tuple. Slow, like count.
func (d *diag) stands(t tuple) (found bool, err error) {
	if err := d.send(diagByFamily, unix.NLM_F_DUMP, tuple{family: t.family}); err != nil {
		return false, fmt.Errorf("ask sock_diag for all sockets: %w", err)
	}
	err = d.receive(func(_ uint16, body []byte) {
		s, ok := parseDiagSocket(body)
		found = found || ok && s.cookie == t.cookie
	})
	if err != nil {
		return false, fmt.Errorf("ask sock_diag for all sockets: %w", err)
	}
	return found, nil
}

// count is the number of TCP sockets of the namespace in the connection and
// listener tables, TIME_WAIT entries included. It walks tables that all
// namespaces share, which takes milliseconds.
func (d *diag) count() (int, error) {
	n := 0
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := d.send(diagByFamily, unix.NLM_F_DUMP, tuple{family: family}); err != nil {
			return 0, fmt.Errorf("ask sock_diag for all sockets: %w", err)
		}
		if err := d.receive(func(uint16, []byte) { n++ }); err != nil {
			return 0, fmt.Errorf("ask sock_diag for all sockets: %w", err)
		}
	}
	return n, nil
}
