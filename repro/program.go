package repro

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// program is a trace brought down to calls of the parts that every user-space
// language has under the same names. The languages only print it.
type program struct {
	format string
	trace  *reusecheck.Trace
	world  []call // what is made before the first step
	stmts  []stmt
	used   map[string]bool // the parts

	maxFD       int
	clientPorts uint16 // the first of 256 ports that the trace leaves alone
}

// stmt is a line of the program.
type stmt struct {
	kind stmtKind
	text string // the step in the trace language
	v    string // the variable that is set, or that the statement is about
	call call
	// want and oracle are the answers stated, "" for none.
	want, oracle string
	names        bool // a socket whose name the program has to know
}

type stmtKind uint8

const (
	sSocket  stmtKind = iota // v = call
	sMust                    // call has to work
	sNote                    // print text
	sStep                    // a step
	sInherit                 // a step that also sets v
	sPort                    // v = the port of the socket in call
	sEnds                    // v = both ends of the socket in call
	sBlank
)

// call is a call of a part, or of a part with another's answer.
type call struct {
	fn   string
	args []any
}

type (
	variable string // a socket, a port or a connection's ends
	symbol   string // a constant of the system, by its name in C
)

// lowering is the state of the translation of one trace.
type lowering struct {
	p        *program
	names    *nameTable
	socks    map[reusecheck.ID]*sockInfo
	portVars map[uint16]string
	named    []uint16 // ports in the order in which they are named first
	index    int
	has      map[reusecheck.Verb]bool
	expires  map[reusecheck.ID]bool
	queues   map[uint16]bool // ports whose listeners have a connection waiting
	// ownFamily says why a socket's address must be of its own family; ""
	// where any will do, and the kernel says what it thinks of it.
	ownFamily string
	// redirects says that the language can put a BPF program in a connection's way.
	redirects bool
	// alongside are the other traces of the same program; nil ones count for nothing.
	alongside []*reusecheck.Trace
}

// sockInfo is what is known of a socket without running anything.
type sockInfo struct {
	v      string
	family reusecheck.Family
	opts   reusecheck.Opt
	dev    reusecheck.Dev
	rng    reusecheck.PortRange
	port   uint16         // that it was bound to, as the trace writes it; 0 unknown
	queued bool           // its other end was left in a listener's queue
	at     netip.AddrPort // where it is bound
	self   bool           // it is connected to itself
}

// newLowering begins the translation of t for a format whose variables follow
// the rules of names.
func newLowering(t *reusecheck.Trace, format string, names *nameTable) *lowering {
	return &lowering{
		p:        &program{format: format, trace: t, used: make(map[string]bool), maxFD: 256},
		names:    names,
		socks:    make(map[reusecheck.ID]*sockInfo),
		portVars: make(map[uint16]string),
		has:      make(map[reusecheck.Verb]bool),
		expires:  make(map[reusecheck.ID]bool),
		queues:   make(map[uint16]bool),
	}
}

func (l *lowering) lower() (*program, error) {
	t := l.p.trace
	for i := range t.Steps {
		op := &t.Steps[i].Op
		l.has[op.Verb] = true
		if op.Verb == reusecheck.VExpire {
			l.expires[op.Sock] = true
		}
		l.p.maxFD += 3
	}
	if err := l.world(); err != nil {
		return nil, err
	}
	for l.index = range t.Steps {
		if err := l.step(&t.Steps[l.index]); err != nil {
			return nil, err
		}
	}
	return l.p, nil
}

// add appends a statement and takes note of the parts that it uses.
func (l *lowering) add(s stmt) {
	l.p.use(s.call)
	switch s.kind {
	case sMust:
		l.p.used["must"] = true
	case sNote:
		l.p.used["note"] = true
	case sStep, sInherit:
		l.p.used["step"] = true
	case sEnds:
		l.p.used["expire"] = true
	case sSocket:
		if s.names {
			l.p.used["names"] = true
		}
	}
	l.p.stmts = append(l.p.stmts, s)
}

func (p *program) use(c call) {
	if c.fn == "" {
		return
	}
	p.used[c.fn] = true
	for _, a := range c.args {
		if inner, ok := a.(call); ok {
			p.use(inner)
		}
	}
}

// refuse is the error of the present step.
func (l *lowering) refuse(why string) error {
	s := &l.p.trace.Steps[l.index]
	return &Inexpressible{Format: l.p.format, Line: s.Line, Step: s.Text(l.p.trace.Name), Why: why}
}

// world makes the namespace that the trace expects.
func (l *lowering) world() error {
	t := l.p.trace
	make := func(fn string, args ...any) {
		c := call{fn, args}
		l.p.use(c)
		l.p.world = append(l.p.world, c)
	}
	if l.has[reusecheck.VConnect] || l.has[reusecheck.VInherit] {
		make("limit_time")
	}
	make("own_namespace")
	devices, addresses := false, map[netip.Addr]bool{}
	for i := range t.Steps {
		op := &t.Steps[i].Op
		devices = devices || op.Dev > reusecheck.DevLo
		addresses[op.Addr.Addr()], addresses[op.From.Addr()] = true, true
	}
	for _, a := range []string{"fd00::1", "fd00::2"} {
		if addresses[netip.MustParseAddr(a)] {
			make("add_address", a)
		}
	}
	if devices {
		make("add_devices")
	}
	if l.has[reusecheck.VTimeWait] {
		make("write_file", "/proc/sys/net/ipv4/tcp_tw_reuse", "0")
	}
	if r := t.Config.Ports; r.Size() > 0 {
		make("write_file", "/proc/sys/net/ipv4/ip_local_port_range", fmt.Sprintf("%d %d", r.Lo, r.Hi))
	}
	for _, s := range t.Config.Sysctl {
		path, ok := sysctlPath(s.Name)
		if !ok {
			return &Inexpressible{Format: l.p.format, Step: "sysctl " + s.Name + " " + s.Value,
				Why: "only settings under net.ipv4 and net.ipv6 belong to a network namespace"}
		}
		make("write_file", path, s.Value)
	}
	l.p.clientPorts = l.freePorts()
	return nil
}

func sysctlPath(name string) (string, bool) {
	path := strings.ReplaceAll(name, ".", "/")
	ok := strings.HasPrefix(path, "net/ipv4/") || strings.HasPrefix(path, "net/ipv6/")
	for _, part := range strings.Split(path, "/") {
		ok = ok && part != ""
	}
	return "/proc/sys/" + path, ok
}

// freePorts is the first of 256 ports in a row that the trace neither names nor
// lets the kernel pick, for the clients of inherited connections.
func (l *lowering) freePorts() uint16 {
	var taken []reusecheck.PortRange
	for _, t := range append(l.alongside, l.p.trace) {
		if t != nil {
			taken = append(taken, portsOf(t)...)
		}
	}
	for base := 512; base < 1<<16-256; base += 256 {
		free := true
		for _, r := range taken {
			free = free && (int(r.Hi) < base || int(r.Lo) >= base+256)
		}
		if free {
			return uint16(base)
		}
	}
	return 512 // the trace takes every port; a clash is reported when it runs
}

// portsOf are the ports that a trace names or lets the kernel pick.
func portsOf(t *reusecheck.Trace) []reusecheck.PortRange {
	ports := []reusecheck.PortRange{t.Config.Ports}
	if t.Config.Ports.Size() == 0 {
		ports[0] = reusecheck.DefaultPorts
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		for _, p := range []uint16{s.Op.Addr.Port(), s.Op.From.Port(), s.Want.Port, s.Oracle.Port} {
			ports = append(ports, reusecheck.PortRange{Lo: p, Hi: p})
		}
		if s.Op.Range.Size() > 0 {
			ports = append(ports, s.Op.Range)
		}
	}
	return ports
}

// needsOf says what running a program takes.
func needsOf(p *program) string {
	if p.used["inherit_redirected"] {
		return "(as root: a BPF program redirects a connection)"
	}
	if p.used["as_user"] || p.used["new_socket_of"] || p.used["set_owner"] {
		return "(as root: the sockets belong to several users)"
	}
	return "(as root, or where every user may make a network namespace)"
}

// portArg is a port as an argument: a number, or the variable that stands for
// a port that the kernel picked.
func (l *lowering) portArg(p uint16) any {
	if v, ok := l.portVars[p]; ok {
		return variable(v)
	}
	return int(p)
}

func (l *lowering) isNamed(p uint16) bool {
	for _, q := range l.named {
		if p == q {
			return true
		}
	}
	return false
}

func (l *lowering) name(p uint16) {
	if p != 0 && !l.isNamed(p) {
		l.named = append(l.named, p)
	}
}

// address is an address as the calls of a socket of family f take it.
func address(f reusecheck.Family, a netip.Addr) string {
	return reusecheck.Canonical(f, a).String()
}

// text is an answer as the program's calls give it.
func (l *lowering) text(a reusecheck.Answer) string {
	switch a.Kind {
	case reusecheck.OK:
		if a.Port != 0 {
			return "ok " + strconv.Itoa(int(a.Port))
		}
		return "ok"
	case reusecheck.Unstated:
		return ""
	}
	return a.Text(l.p.trace.Name)
}
