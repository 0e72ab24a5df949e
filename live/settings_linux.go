package live

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/reusecheck/reusecheck"
)

const portRangeSetting = "net.ipv4.ip_local_port_range"

// configure gives the namespace the settings of cfg and takes away those of the
// configuration before it.
func (n *namespace) configure(cfg reusecheck.Config) error {
	ports := cfg.Ports
	if ports.Size() == 0 {
		ports = reusecheck.DefaultPorts
	}
	want := map[string]string{portRangeSetting: fmt.Sprintf("%d %d", ports.Lo, ports.Hi)}
	for _, s := range cfg.Sysctl {
		want[s.Name] = s.Value
	}
	return n.apply(want)
}

func (n *namespace) apply(want map[string]string) error {
	same := len(want) == len(n.current)
	for name, value := range want {
		same = same && n.current[name] == value
	}
	if same {
		return nil
	}
	return n.enter(func() error {
		for name := range n.current {
			if _, kept := want[name]; !kept {
				if err := n.set(name, n.original[name]); err != nil {
					return err
				}
				delete(n.current, name)
			}
		}
		for name, value := range want {
			if err := n.set(name, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// set writes one setting. The thread must be in the namespace: /proc/sys/net
// shows the reader's own.
func (n *namespace) set(name, value string) error {
	path, err := settingPath(name)
	if err != nil {
		return err
	}
	if _, known := n.original[name]; !known {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return &reusecheck.Unsupported{What: "sysctl " + name,
				Why: "this kernel has no such setting in a network namespace"}
		}
		if err != nil {
			return fmt.Errorf("read sysctl %s: %w", name, err)
		}
		n.original[name] = strings.Join(strings.Fields(string(b)), " ")
	}
	if cur, changed := n.current[name]; changed && cur == value {
		return nil
	}
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("set sysctl %s to %q: %w", name, value, err)
	}
	n.current[name] = value
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
