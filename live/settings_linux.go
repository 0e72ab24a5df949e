package live

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

const portRangeSetting = "net.ipv4.ip_local_port_range"

// A setting is one file under /proc/sys/net, opened in the namespace that it
// belongs to, which it keeps to whichever thread writes.
type setting struct {
	name     string
	fd       int
	original string // as it was before the first change
	current  string
}

// ownSettings are what every trace gets unless it says otherwise.
var ownSettings = []reusecheck.Sysctl{
	// An automatic port must not depend on how many seconds ago a TIME_WAIT entry was made.
	{Name: "net.ipv4.tcp_tw_reuse", Value: "0"},
}

// configure gives the namespace the settings of cfg and takes away those of the
// configuration before it.
func (n *namespace) configure(cfg reusecheck.Config) error {
	ports := cfg.Ports
	if ports.Size() == 0 {
		ports = reusecheck.DefaultPorts
	}
	n.want = append(n.want[:0], ownSettings...)
	n.want = append(n.want, reusecheck.Sysctl{Name: portRangeSetting, Value: fmt.Sprintf("%d\t%d", ports.Lo, ports.Hi)})
	n.want = append(n.want, cfg.Sysctl...)
	for _, s := range n.settings {
		if _, wanted := lastOf(n.want, s.name); wanted {
			continue
		}
		if err := s.set(s.original); err != nil {
			return err
		}
	}
	for i := range n.want {
		if value, _ := lastOf(n.want, n.want[i].Name); value != n.want[i].Value {
			continue // said again later
		}
		s, err := n.setting(n.want[i].Name)
		if err != nil {
			return err
		}
		if err := s.set(n.want[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// lastOf is the value that a list gives to a setting.
func lastOf(list []reusecheck.Sysctl, name string) (string, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Name == name {
			return list[i].Value, true
		}
	}
	return "", false
}

// setting finds a setting, and opens it the first time.
func (n *namespace) setting(name string) (*setting, error) {
	for _, s := range n.settings {
		if s.name == name {
			return s, nil
		}
	}
	path, err := settingPath(name)
	if err != nil {
		return nil, err
	}
	s := &setting{name: name, fd: -1}
	err = n.enter(func() (err error) {
		// /proc/sys/net shows the namespace of whoever opens it.
		s.fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		return err
	})
	switch err {
	case nil:
	case unix.ENOENT, unix.EACCES, unix.EPERM:
		return nil, &reusecheck.Unsupported{What: "sysctl " + name,
			Why: "it cannot be set in a network namespace: " + err.Error()}
	default:
		return nil, fmt.Errorf("open sysctl %s: %w", name, err)
	}
	var buf [256]byte
	size, err := unix.Pread(s.fd, buf[:], 0)
	if err != nil {
		unix.Close(s.fd)
		return nil, fmt.Errorf("read sysctl %s: %w", name, err)
	}
	s.original = strings.TrimSpace(string(buf[:size]))
	s.current = s.original
	n.settings = append(n.settings, s)
	return s, nil
}

func (s *setting) set(value string) error {
	if s.current == value {
		return nil
	}
	// With its newline, for an empty list would be no write at all.
	if _, err := unix.Pwrite(s.fd, []byte(value+"\n"), 0); err != nil {
		return fmt.Errorf("set sysctl %s to %q: %w", s.name, value, err)
	}
	s.current = value
	return nil
}

// settingPath is a setting's file. Only those under net.ipv4 and net.ipv6 are
// taken: others may be the whole machine's.
func settingPath(name string) (string, error) {
	dotted := strings.ReplaceAll(name, "/", ".")
	ok := strings.HasPrefix(dotted, "net.ipv4.") || strings.HasPrefix(dotted, "net.ipv6.")
	for part := range strings.SplitSeq(dotted, ".") {
		ok = ok && part != ""
	}
	if !ok {
		return "", &reusecheck.Unsupported{What: "sysctl " + name,
			Why: "only settings under net.ipv4 and net.ipv6 belong to a network namespace"}
	}
	return "/proc/sys/" + strings.ReplaceAll(dotted, ".", "/"), nil
}
