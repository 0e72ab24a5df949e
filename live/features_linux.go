package live

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Features says what testing the running kernel needs and what of it is here,
// so that whoever skips something can say why.
func Features() []Feature {
	s, err := Open(Options{})
	if err != nil {
		return []Feature{{Name: "network namespace", Why: err.Error()}}
	}
	defer s.Close()
	return s.Features()
}

func (r *runner) Features() []Feature {
	return []Feature{
		{Name: "network namespace", OK: true, Why: r.rights()},
		featureOf("uids", r.uids),
		featureOf("IPv6 addresses", r.ns.noIPv6),
		featureOf("veth", r.ns.noDevice),
		featureOf("packet sockets", r.ns.canArrive()),
		featureOf("processors", canPin()),
		featureOf("socket destroy", r.ns.canDestroy()),
		featureOf("socket lookup", r.ns.canRedirect()),
		r.canExit(),
	}
}

// canExit says whether the teardown of namespaces can be followed, and counted.
func (r *runner) canExit() Feature {
	s, err := r.own.sign()
	if err != nil {
		return featureOf("namespace exit", err)
	}
	s.close()
	if r.walks == nil {
		r.walks = newWalkCounter()
	}
	if err := r.walks.missing; err != nil {
		return Feature{Name: "namespace exit", OK: true, Why: fmt.Sprintf("walks are not counted: %v", err)}
	}
	return Feature{Name: "namespace exit", OK: true, Why: "walks are counted"}
}

func featureOf(name string, err error) Feature {
	if err != nil {
		return Feature{Name: name, Why: err.Error()}
	}
	return Feature{Name: name, OK: true}
}

// rights says what lets the process make namespaces.
func (r *runner) rights() string {
	if b, err := os.ReadFile("/proc/self/uid_map"); err == nil {
		var inside, outside, size uint64
		if n, _ := fmt.Sscan(string(b), &inside, &outside, &size); n == 3 && size < 1<<32-1 {
			return fmt.Sprintf("by a user namespace of uid %d", outside)
		}
	}
	return fmt.Sprintf("by the rights of uid %d", r.base)
}

// canDestroy asks sock_diag to destroy a connection that is not there.
func (n *namespace) canDestroy() error {
	at := netip.MustParseAddrPort("127.0.0.1:1")
	err := n.diag.destroy(tuple{family: unix.AF_INET, local: at, peer: at, cookie: noCookie})
	if err == unix.ENOENT {
		return nil
	}
	return fmt.Errorf("sock_diag does not destroy sockets (CONFIG_INET_DIAG_DESTROY, modules inet_diag and tcp_diag): %w", err)
}

func (n *namespace) canRedirect() (err error) {
	if n.redirect == nil {
		n.redirect, err = newRedirect(n.ns)
	}
	return err
}
