package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A doorway lets packets arrive on d1 or d2: it writes whole frames to the other
// end of the pair. The two are up only for that moment. A socket that is bound to
// one of them has no route while they are down, which is what traces expect.
type doorway struct {
	links  *netlink.Handle
	frames int // a packet socket, which receives nothing
	ends   [2]netlink.Link
}

// arrivalSettings are what lets the namespace's own addresses be those of packets
// from outside.
var arrivalSettings = []struct{ name, value string }{
	{"route_localnet", "1"}, {"accept_local", "1"}, {"rp_filter", "0"},
}

func (n *namespace) newDoorway() (*doorway, error) {
	if n.noDevice != nil {
		return nil, &reusecheck.Unsupported{What: "datagrams on d1 and d2", Why: n.noDevice.Error()}
	}
	d := &doorway{frames: -1}
	err := n.enter(func() (err error) {
		if d.frames, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if d.links, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		for i := range d.ends {
			if d.ends[i], err = d.links.LinkByIndex(n.device[reusecheck.Dev1+reusecheck.Dev(i)]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return d, nil
	}
	d.close()
	if isPermission(err) || errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, &reusecheck.Unsupported{What: "datagrams on d1 and d2", Why: "packet sockets cannot be made: " + err.Error()}
	}
	return nil, fmt.Errorf("make a way for packets to d1 and d2: %w", err)
}

// canArrive says whether datagrams can arrive on d1 and d2.
func (n *namespace) canArrive() error {
	in, err := n.injector()
	if err == nil && in.door == nil {
		in.door, err = n.newDoorway()
	}
	return err
}

func (d *doorway) close() {
	if d.links != nil {
		d.links.Close()
	}
	if d.frames >= 0 {
		unix.Close(d.frames)
	}
}

// open gets the doorway to one end ready, and gives what shuts it again.
func (n *namespace) open(in *injector, dev reusecheck.Dev) (shut func() error, err error) {
	if in.door == nil {
		if in.door, err = n.newDoorway(); err != nil {
			return nil, err
		}
	}
	for _, s := range arrivalSettings {
		for _, of := range []string{"all", dev.String()} {
			if of == "all" && s.name != "rp_filter" { // of the two the larger counts
				continue
			}
			if err := n.apply("net.ipv4.conf."+of+"."+s.name, s.value); err != nil {
				return nil, err
			}
		}
	}
	d := in.door
	to := d.ends[dev-reusecheck.Dev1]
	from := d.ends[reusecheck.Dev2-dev]
	shut = func() error {
		return errors.Join(d.links.LinkSetDown(from), d.links.LinkSetDown(to))
	}
	// The end that sends last: it is of use as soon as its peer is up.
	if err := errors.Join(d.links.LinkSetUp(to), d.links.LinkSetUp(from)); err != nil {
		return nil, errors.Join(fmt.Errorf("set d1 and d2 up: %w", err), shut())
	}
	return shut, nil
}

func (n *namespace) apply(name, value string) error {
	s, err := n.setting(name)
	if err != nil {
		return err
	}
	return s.set(value)
}

// enter lets a packet arrive on an end that is up.
func (d *doorway) enter(dev reusecheck.Dev, packet []byte, to netip.Addr) error {
	at, from := d.ends[dev-reusecheck.Dev1].Attrs(), d.ends[reusecheck.Dev2-dev].Attrs()
	kind := uint16(unix.ETH_P_IPV6)
	if to.Is4() {
		kind = unix.ETH_P_IP
		sealIPv4(packet)
	}
	frame := append(append([]byte(nil), at.HardwareAddr...), from.HardwareAddr...)
	frame = append(binary.BigEndian.AppendUint16(frame, kind), packet...)
	sa := &unix.SockaddrLinklayer{Ifindex: from.Index, Protocol: kind<<8 | kind>>8, Halen: 6}
	copy(sa.Addr[:], at.HardwareAddr)
	return unix.Sendto(d.frames, frame, 0, sa)
}

// sealIPv4 fills in the header checksum, which the kernel does for raw sockets only.
func sealIPv4(packet []byte) {
	binary.BigEndian.PutUint16(packet[10:], 0)
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:20]))
}
