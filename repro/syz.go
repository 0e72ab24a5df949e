package repro

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// generateSyz writes a program for syzkaller's tools, which run it in a
// namespace of their own. Such a program has no expected answers: it brings a
// kernel into the trace's states, under the tool's own checks.
func generateSyz(t *reusecheck.Trace, info Info) ([]byte, error) {
	if err := unset(t, "syz", "the namespace's settings are not part of a program"); err != nil {
		return nil, err
	}
	w := &syz{t: t, socks: make(map[reusecheck.ID]*syzSock)}
	for i := range t.Steps {
		if err := w.step(&t.Steps[i]); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	h := header{
		run: "syz-execprog -sandbox=namespace -repeat=1 " + shellWord(info.File),
		expect: append(expectation(t),
			"The program itself expects nothing: it is for the kernel's own checks, and as a seed for fuzzing."),
	}
	if w.devices {
		h.remark = "the devices d1 and d2 are veth0 and veth1, which the tool makes."
	}
	hashHeader(&b, h, t, info)
	for _, line := range w.lines {
		b.WriteString(line + "\n")
	}
	return []byte(b.String()), nil
}

// syz writes the steps of one program.
type syz struct {
	t       *reusecheck.Trace
	lines   []string
	socks   map[reusecheck.ID]*syzSock
	next    int // resource
	memory  int // where the next argument lies
	clients int
	devices bool
	queued  bool // a connection waits in a listener's queue
}

type syzSock struct {
	r      string
	op     *reusecheck.Op
	listen bool
	other  string // the resource of the other end of its connection
	at     netip.AddrPort
	self   bool // it is connected to itself
	uid    uint32
}

func (w *syz) step(s *reusecheck.Step) error {
	op := &s.Op
	refuse := func(why string) error {
		return &Inexpressible{Format: "syz", Line: s.Line, Step: s.Text(w.t.Name), Why: why}
	}
	if s.Want.Port != 0 || s.Oracle.Port != 0 {
		return refuse("a program has no variables for the ports that the kernel picks")
	}
	k := w.socks[op.Sock]
	switch op.Verb {
	case reusecheck.VSocket:
		return w.socket(op, refuse)
	case reusecheck.VBind:
		k.at = bound(k.at, s)
		return w.addressed("bind", k, op.Addr, refuse)
	case reusecheck.VListen:
		k.listen = true
		w.call("listen(%s, 0x80)", k.r)
	case reusecheck.VConnect:
		if err := w.addressed("connect", k, op.Addr, refuse); err != nil {
			return err
		}
		if k.self = meetsItself(k.op.Family, k.at, s); k.self || k.op.Family.IsUDP() {
			return nil
		}
		if op.Unaccepted {
			w.queued = true
			return nil
		}
		return w.accepted(k, refuse)
	case reusecheck.VInherit:
		return w.inherit(k, op, refuse)
	case reusecheck.VSet:
		return w.set(k, op, refuse)
	case reusecheck.VShutdown:
		if k.self {
			return refuse("the socket is its own other end and would stay in TIME_WAIT, which no call of the tool's descriptions ends")
		}
		k.listen = false
		w.call("shutdown(%s, 0x2)", k.r)
		w.closeOther(k)
	case reusecheck.VClose, reusecheck.VTimeWait:
		if op.Verb == reusecheck.VClose && (k.other != "" || k.self) {
			w.call("setsockopt$sock_linger(%s, 0x1, 0xd, &(%s)={0x1, 0x0}, 0x8)", k.r, w.at())
		}
		k.listen = false
		w.call("close(%s)", k.r)
		w.closeOther(k)
	default:
		return refuse("no call of the tool's descriptions does this")
	}
	return nil
}

func (w *syz) call(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *syz) resource() string {
	w.next++
	return fmt.Sprintf("r%d", w.next-1)
}

// at is a place for an argument in the program's memory.
func (w *syz) at() string {
	a := 0x7f0000000000 + uint64(w.memory)*0x40
	w.memory++
	return fmt.Sprintf("%#x", a)
}

func (w *syz) closeOther(k *syzSock) {
	if k.other != "" {
		w.call("close(%s)", k.other)
		k.other = ""
	}
}

func (w *syz) option(r, fn string, level, name, value int) {
	w.call("setsockopt$%s(%s, %#x, %#x, &(%s)=%#x, 0x4)", fn, r, level, name, w.at(), value)
}

func (w *syz) socket(op *reusecheck.Op, refuse func(string) error) error {
	if op.HasNet || op.Range.Size() > 0 {
		return refuse("the tool's descriptions have neither namespaces to choose from nor port ranges of sockets")
	}
	k := &syzSock{op: op, uid: op.UID, r: w.resource()}
	w.socks[op.Sock] = k
	if op.UID != 0 {
		w.call("setfsuid(%#x)", op.UID)
	}
	w.call("%s = %s", k.r, syzSocketCall(op.Family))
	if op.UID != 0 {
		w.call("setfsuid(0x0)")
	}
	for _, o := range reusecheck.OptNames {
		if op.Opts.Has(o.Opt) {
			w.setOption(k, o.Opt, 1)
		}
	}
	if op.Dev != reusecheck.NoDev {
		w.device(k, op.Dev)
	}
	return nil
}

func syzSocketCall(f reusecheck.Family) string {
	return map[reusecheck.Family]string{
		reusecheck.TCP4: "socket$inet_tcp(0x2, 0x1, 0x0)", reusecheck.TCP6: "socket$inet6_tcp(0xa, 0x1, 0x0)",
		reusecheck.UDP4: "socket$inet_udp(0x2, 0x2, 0x0)", reusecheck.UDP6: "socket$inet6_udp(0xa, 0x2, 0x0)",
	}[f]
}

// setOption uses the numbers of x86 and most other machines.
func (w *syz) setOption(k *syzSock, o reusecheck.Opt, value int) {
	ip := "inet_int"
	level, transparent := 0, 0x13
	if k.op.Family.Is6() {
		ip, level, transparent = "inet6_int", 0x29, 0x4b
	}
	switch o {
	case reusecheck.ReuseAddr:
		w.option(k.r, "sock_int", 1, 2, value)
	case reusecheck.ReusePort:
		w.option(k.r, "sock_int", 1, 15, value)
	case reusecheck.V6Only:
		w.option(k.r, "inet6_int", 0x29, 0x1a, value)
	case reusecheck.NoPort:
		w.option(k.r, "inet_int", 0, 0x18, value)
	case reusecheck.Transparent:
		w.option(k.r, ip, level, transparent, value)
	}
}

func (w *syz) device(k *syzSock, dev reusecheck.Dev) {
	name := map[reusecheck.Dev]string{reusecheck.NoDev: "", reusecheck.DevLo: "lo", reusecheck.Dev1: "veth0", reusecheck.Dev2: "veth1"}[dev]
	w.devices = w.devices || dev > reusecheck.DevLo
	w.call(`setsockopt$SO_BINDTODEVICE(%s, 0x1, 0x19, &(%s)='%s\x00', 0x10)`, k.r, w.at(), name)
}

func (w *syz) set(k *syzSock, op *reusecheck.Op, refuse func(string) error) error {
	switch op.Field {
	case reusecheck.SetOpt:
		value := 0
		if op.On {
			value = 1
		}
		w.setOption(k, op.Opts, value)
	case reusecheck.SetDev:
		w.device(k, op.Dev)
	case reusecheck.SetUID:
		k.uid = op.UID
		w.call("fchown(%s, %#x, 0xffffffffffffffff)", k.r, op.UID)
	default:
		return refuse("there is nothing to set")
	}
	return nil
}

// addressed adds a bind or a connect.
func (w *syz) addressed(fn string, k *syzSock, a netip.AddrPort, refuse func(string) error) error {
	addr := reusecheck.Canonical(k.op.Family, a.Addr())
	if addr.Is4() == k.op.Family.Is6() {
		return refuse("the tool's calls take addresses of the socket's own family")
	}
	if addr.Is6() && !addr.Is4In6() && !addr.IsUnspecified() && addr != netip.IPv6Loopback() {
		return refuse("the tool's descriptions do not have this IPv6 address")
	}
	w.call("%s$%s(%s, &(%s)=%s)", fn, syzFamily(addr), k.r, w.at(), syzAddr(addr, a.Port()))
	return nil
}

func syzFamily(a netip.Addr) string {
	if a.Is4() {
		return "inet"
	}
	return "inet6"
}

// syzAddr is a socket address and its length.
func syzAddr(a netip.Addr, port uint16) string {
	if a.Is4() {
		return fmt.Sprintf("{0x2, %#x, %s}, 0x10", port, syzAddr4(a))
	}
	text := "@empty"
	switch {
	case a.Is4In6():
		text = fmt.Sprintf(`@ipv4={'\x00', '\xff\xff', %s}`, syzAddr4(a.Unmap()))
	case a == netip.IPv6Loopback():
		text = "@loopback"
	}
	return fmt.Sprintf("{0xa, %#x, 0x0, %s, 0x0}, 0x1c", port, text)
}

func syzAddr4(a netip.Addr) string {
	switch {
	case a.IsUnspecified():
		return "@empty"
	case a == netip.AddrFrom4([4]byte{127, 0, 0, 1}):
		return "@loopback"
	}
	b := a.As4()
	return "@rand_addr=0x" + hex.EncodeToString(b[:])
}

// accepted lets the only listener accept what k has just opened.
func (w *syz) accepted(k *syzSock, refuse func(string) error) error {
	listener, n := w.listener()
	if n > 1 || w.queued {
		return refuse(oneListener)
	}
	if n == 1 {
		k.other = w.accept(listener)
	}
	return nil
}

const oneListener = "a program says which listener accepts, and it could be another or another connection"

// listener gives a listening socket and how many there are.
func (w *syz) listener() (l *syzSock, n int) {
	for _, k := range w.socks {
		if k.listen {
			l = k
			n++
		}
	}
	return l, n
}

func (w *syz) accept(l *syzSock) string {
	r := w.resource()
	if l.uid != 0 {
		w.call("setfsuid(%#x)", l.uid)
	}
	w.call("%s = accept(%s, 0x0, 0x0)", r, l.r)
	if l.uid != 0 {
		w.call("setfsuid(0x0)")
	}
	return r
}

// inherit opens a connection from an address that the trace does not use.
func (w *syz) inherit(l *syzSock, op *reusecheck.Op, refuse func(string) error) error {
	if op.Addr.Port() == 0 {
		return refuse("a program names the port: write the listener's after the address")
	}
	if _, n := w.listener(); n != 1 || !l.listen || w.queued {
		return refuse(oneListener)
	}
	addr := op.Addr.Addr().Unmap()
	client := &syzSock{r: w.resource(), op: &reusecheck.Op{Family: reusecheck.TCP4}}
	from := netip.MustParseAddr("127.64.0.1")
	if !addr.Is4() {
		client.op = &reusecheck.Op{Family: reusecheck.TCP6}
		from = netip.IPv6Loopback()
	}
	w.clients++
	w.call("%s = %s", client.r, syzSocketCall(client.op.Family))
	if err := w.addressed("bind", client, netip.AddrPortFrom(from, uint16(512+w.clients)), refuse); err != nil {
		return err
	}
	if err := w.addressed("connect", client, netip.AddrPortFrom(addr, op.Addr.Port()), refuse); err != nil {
		return err
	}
	w.socks[op.Child] = &syzSock{op: l.op, uid: l.uid, other: client.r, r: w.accept(l)}
	return nil
}
