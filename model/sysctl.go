package model

import (
	"fmt"
	"strconv"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// sysctl applies the namespace settings that the rules read.
func (t *TCP) sysctl(set []rc.Sysctl) error {
	for _, s := range set {
		switch strings.TrimPrefix(s.Name, "net.ipv4.") {
		case "ip_autobind_reuse":
			// The kernel takes 0 and 1 only.
			if s.Value != "0" && s.Value != "1" {
				return settingError(s.Name, "want 0 or 1, not %q", s.Value)
			}
			t.autobind = s.Value == "1"
		case "ip_local_reserved_ports":
			r, err := parsePorts(s.Value)
			if err != nil {
				return settingError(s.Name, "%w", err)
			}
			t.reserved = append(t.reserved, r...)
		case "ip_local_port_range":
			r, err := parsePorts(strings.Join(strings.Fields(s.Value), "-"))
			if err != nil || len(r) != 1 {
				return settingError(s.Name, "want two ports, not %q", s.Value)
			}
			t.auto = r[0]
		default:
			return &rc.Unsupported{What: "sysctl " + s.Name, Why: "no rule of the model reads it"}
		}
	}
	return nil
}

// settingError is the error of a setting that the kernel would refuse.
func settingError(name, format string, args ...any) error {
	return &rc.HeaderError{Header: "sysctl", Part: name, Err: fmt.Errorf(format, args...)}
}

// parsePorts reads a comma list of ports and ranges.
func parsePorts(s string) ([]rc.PortRange, error) {
	var rs []rc.PortRange
	for _, f := range strings.Split(s, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(f), "-")
		if !ranged {
			hi = lo
		}
		a, errA := strconv.ParseUint(lo, 10, 16)
		b, errB := strconv.ParseUint(hi, 10, 16)
		if errA != nil || errB != nil || a > b {
			return nil, fmt.Errorf("want a port or LO-HI, not %q", f)
		}
		rs = append(rs, rc.PortRange{Lo: uint16(a), Hi: uint16(b)})
	}
	return rs, nil
}
