package repro

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// generatePacketdrill writes a packetdrill script. The tool binds every socket
// to one address and port of its own, so that only traces with one IPv4 address
// and port have a script; the port is the trace's, the address the tool's.
func generatePacketdrill(t *reusecheck.Trace, info Info) ([]byte, error) {
	w := &drill{t: t, fds: make(map[reusecheck.ID]int)}
	if err := unset(t, "packetdrill", "the namespace's settings are not part of a script"); err != nil {
		return nil, err
	}
	for i := range t.Steps {
		if err := w.step(&t.Steps[i]); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	h := header{
		run: "unshare -n packetdrill " + shellWord(info.File),
		expect: append(expectation(t),
			"The script states the oracle's answers: packetdrill ends with 0 where the kernel gives them, and names the line where it does not."),
	}
	h.remark = "unverified: the tool has not parsed this script, only others of its form."
	if w.bound.IsValid() {
		h.remark += fmt.Sprintf(" %s is the address that packetdrill gives to its tun device; all that counts is that the binds have one address.", w.bound.Addr())
	}
	for _, line := range h.lines(t, info) {
		b.WriteString(strings.TrimRight("// "+line, " ") + "\n")
	}
	if w.bound.IsValid() {
		fmt.Fprintf(&b, "--bind_port=%d\n", w.bound.Port())
	}
	b.WriteByte('\n')
	for i, line := range w.lines {
		at := "  +0"
		if i == 0 {
			at = "   0"
		}
		b.WriteString(at + " " + line + "\n")
	}
	return []byte(b.String()), nil
}

// drill writes the steps of one script.
type drill struct {
	t        *reusecheck.Trace
	lines    []string
	fds      map[reusecheck.ID]int
	bound    netip.AddrPort
	diverged bool
}

func (w *drill) step(s *reusecheck.Step) error {
	op := &s.Op
	refuse := func(why string) error {
		return &Inexpressible{Format: "packetdrill", Line: s.Line, Step: s.Text(w.t.Name), Why: why}
	}
	if w.diverged {
		return refuse("a script has one answer for each step, and the kernels have parted before this one")
	}
	w.diverged = s.Oracle.Kind != reusecheck.Unstated
	result, ok := drillResult(s)
	if !ok {
		return refuse("the tool does not know this result")
	}
	fd := w.fds[op.Sock]
	switch op.Verb {
	case reusecheck.VSocket:
		return w.socket(op, refuse)
	case reusecheck.VBind:
		if w.bound.IsValid() && w.bound != op.Addr {
			return refuse("the tool binds every socket to one address and port")
		}
		if !op.Addr.Addr().Is4() || op.Addr.Addr().IsUnspecified() || op.Addr.Port() == 0 {
			return refuse("the tool binds to one specific IPv4 address and a given port")
		}
		w.bound = op.Addr
		w.lines = append(w.lines, fmt.Sprintf("bind(%d, ..., ...) = %s", fd, result))
	case reusecheck.VListen:
		w.lines = append(w.lines, fmt.Sprintf("listen(%d, 128) = %s", fd, result))
	case reusecheck.VShutdown:
		w.lines = append(w.lines, fmt.Sprintf("shutdown(%d, SHUT_RDWR) = %s", fd, result))
	case reusecheck.VClose:
		w.lines = append(w.lines, fmt.Sprintf("close(%d) = %s", fd, result))
	case reusecheck.VSet:
		name, ok := drillOpts[op.Opts]
		if op.Field != reusecheck.SetOpt || !ok {
			return refuse("the tool sets reuseaddr and reuseport only")
		}
		value := 0
		if op.On {
			value = 1
		}
		w.lines = append(w.lines, fmt.Sprintf("setsockopt(%d, SOL_SOCKET, %s, [%d], 4) = %s", fd, name, value, result))
	default:
		return refuse("the other end of a connection would be the tool's, not the kernel's")
	}
	return nil
}

// drillOpts are the options that the tool knows by name.
var drillOpts = map[reusecheck.Opt]string{reusecheck.ReuseAddr: "SO_REUSEADDR", reusecheck.ReusePort: "SO_REUSEPORT"}

func (w *drill) socket(op *reusecheck.Op, refuse func(string) error) error {
	switch {
	case op.Family != reusecheck.TCP4:
		return refuse("the tool's addresses are those of its device; IPv4 only")
	case op.UID != 0 || op.Dev != reusecheck.NoDev || op.HasNet || op.Range.Size() > 0 ||
		op.Opts&^(reusecheck.ReuseAddr|reusecheck.ReusePort) != 0:
		return refuse("the tool knows reuseaddr and reuseport, but no users, devices, namespaces, ranges and other options")
	}
	fd := 3 + len(w.fds)
	w.fds[op.Sock] = fd
	w.lines = append(w.lines, fmt.Sprintf("socket(..., SOCK_STREAM, IPPROTO_TCP) = %d", fd))
	for _, o := range reusecheck.OptNames {
		if op.Opts.Has(o.Opt) {
			w.lines = append(w.lines, fmt.Sprintf("setsockopt(%d, SOL_SOCKET, %s, [1], 4) = 0", fd, drillOpts[o.Opt]))
		}
	}
	return nil
}

// drillResult is the oracle's answer as a script states it.
func drillResult(s *reusecheck.Step) (string, bool) {
	a := s.Want
	if s.Oracle.Kind != reusecheck.Unstated {
		a = s.Oracle
	}
	switch a.Kind {
	case reusecheck.Unstated:
		return "...", true
	case reusecheck.OK:
		return "0", true
	case reusecheck.Failed:
		return fmt.Sprintf("-1 %s (%s)", a.Errno, drillNote(a.Errno)), true
	}
	return "", false
}

// drillNote is the comment that the tool's grammar wants after an error: what
// strerror says, of the errors that these steps have.
func drillNote(e reusecheck.Errno) string {
	switch e {
	case reusecheck.EADDRINUSE:
		return "Address already in use"
	case reusecheck.EADDRNOTAVAIL:
		return "Cannot assign requested address"
	case reusecheck.EINVAL:
		return "Invalid argument"
	case reusecheck.ENOTCONN:
		return "Transport endpoint is not connected"
	case reusecheck.EACCES:
		return "Permission denied"
	}
	return "as stated"
}
