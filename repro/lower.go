package repro

import (
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// step translates one step.
func (l *lowering) step(s *reusecheck.Step) error {
	op := &s.Op
	switch op.Verb {
	case reusecheck.VSocket:
		return l.socket(s)
	case reusecheck.VNetns:
		return l.refuse("the program has one network namespace")
	case reusecheck.VExit:
		return l.refuse("how often the kernel walks its tables when a namespace ends is not seen from user space")
	case reusecheck.VSend:
		return l.send(s)
	}
	k := l.socks[op.Sock]
	if l.ownFamily != "" && (op.Verb == reusecheck.VBind || op.Verb == reusecheck.VConnect) &&
		reusecheck.Canonical(k.family, op.Addr.Addr()).Is4() == k.family.Is6() {
		return l.refuse(l.ownFamily)
	}
	defer l.name(op.Addr.Port())
	switch op.Verb {
	case reusecheck.VBind:
		k.port, k.at = op.Addr.Port(), bound(k.at, s)
		return l.judged(s, k, call{"bind_to", []any{variable(k.v), address(k.family, op.Addr.Addr()), l.portArg(op.Addr.Port())}})
	case reusecheck.VListen:
		return l.judged(s, k, call{"listen_on", []any{variable(k.v)}})
	case reusecheck.VConnect:
		fn, self := "connect_to", meetsItself(k.family, k.at, s)
		if self {
			k.self = true // nothing waits for anybody
		} else if err := l.queue(op, k); err != nil {
			return err
		}
		if op.Unaccepted && !self {
			fn = "connect_unaccepted"
		}
		if k.family.IsUDP() {
			fn = "set_peer"
		}
		return l.judged(s, k, call{fn, []any{variable(k.v), address(k.family, op.Addr.Addr()), l.portArg(op.Addr.Port())}})
	case reusecheck.VInherit:
		return l.inherit(s, k)
	case reusecheck.VSet:
		return l.set(s, k)
	case reusecheck.VTimeWait:
		if k.queued {
			return l.refuse("the other end, which would close after it, waits in the listener's queue")
		}
		if l.expires[op.Sock] {
			ends := l.names.fresh(k.v + "_ends")
			l.add(stmt{kind: sEnds, v: ends, call: call{"ends_of", []any{variable(k.v)}}})
			l.socks[op.Sock] = &sockInfo{v: ends, dev: k.dev}
		}
		return l.judged(s, k, call{"leave_timewait", []any{variable(k.v)}})
	case reusecheck.VExpire:
		device := ""
		if k.dev != reusecheck.NoDev {
			device = k.dev.String()
		}
		return l.judged(s, k, call{"expire", []any{variable(k.v), device}})
	}
	switch {
	case k.queued && op.Verb == reusecheck.VShutdown:
		return l.refuse("the other end, which would end it, waits in the listener's queue")
	case k.self && op.Verb == reusecheck.VShutdown:
		k.self = false
		return l.judged(s, k, call{"shut_down_self", []any{variable(k.v)}})
	}
	k.self = false
	fn, ok := map[reusecheck.Verb]string{
		reusecheck.VShutdown: "shut_down", reusecheck.VDisconnect: "disconnect", reusecheck.VClose: "close_socket",
	}[op.Verb]
	if !ok {
		return l.refuse("there is no such step")
	}
	if !k.family.IsUDP() && (l.has[reusecheck.VConnect] || l.has[reusecheck.VInherit]) {
		fn = map[string]string{"shut_down": "shut_down_both", "disconnect": "disconnect_both", "close_socket": "close_both"}[fn]
	}
	return l.judged(s, k, call{fn, []any{variable(k.v)}})
}

// queue follows the connections that wait in a listener's queue: what comes to
// the same port later would be accepted after them.
func (l *lowering) queue(op *reusecheck.Op, k *sockInfo) error {
	if k.family.IsUDP() {
		return nil
	}
	if l.queues[op.Addr.Port()] {
		return l.refuse("it would wait behind a connection that nobody accepts")
	}
	if op.Unaccepted {
		k.queued = true
		l.queues[op.Addr.Port()] = true
	}
	return nil
}

// judged adds a step. Where its answers say which port the kernel picks, so
// does the call's.
func (l *lowering) judged(s *reusecheck.Step, k *sockInfo, c call) error {
	out := stmt{kind: sStep, text: s.Op.Text(l.p.trace.Name), call: c, want: l.text(s.Want), oracle: l.text(s.Oracle)}
	if s.Oracle.Kind == reusecheck.Unstated {
		out.oracle = out.want
	}
	picked := s.Want.Port
	if picked == 0 && s.Oracle.Port == 0 {
		l.add(out)
		return nil
	}
	if picked == 0 || l.isNamed(picked) || l.onePort(k) {
		out.call = call{"with_port", []any{variable(k.v), c}}
		l.name(picked)
		l.add(out)
		return nil
	}
	args := []any{variable(k.v), c, int(picked)}
	for _, p := range l.named {
		args = append(args, l.portArg(p))
	}
	out.call = call{"any_port", append(args, 0)}
	l.add(out)
	l.name(picked)
	k.port = picked
	if !l.later(picked) {
		return nil
	}
	v := l.names.fresh(fmt.Sprintf("port_%d", picked))
	l.portVars[picked] = v
	l.add(stmt{kind: sPort, v: v, call: call{"port_of", []any{variable(k.v)}}})
	return nil
}

// later reports whether a step after this one names a port, or picks another:
// then it is asked for.
func (l *lowering) later(p uint16) bool {
	for i := l.index + 1; i < len(l.p.trace.Steps); i++ {
		s := &l.p.trace.Steps[i]
		if s.Op.Addr.Port() == p || s.Op.From.Port() == p || s.Want.Port != 0 {
			return true
		}
	}
	return false
}

// onePort reports whether the kernel has but one port to pick for a socket.
func (l *lowering) onePort(k *sockInfo) bool {
	all := l.p.trace.Config.Ports
	if all.Size() == 0 {
		all = reusecheck.DefaultPorts
	}
	return all.Size() == 1 || k.rng.Size() == 1 && all.Contains(k.rng.Lo)
}

var families = map[reusecheck.Family][2]symbol{
	reusecheck.TCP4: {"AF_INET", "SOCK_STREAM"}, reusecheck.TCP6: {"AF_INET6", "SOCK_STREAM"},
	reusecheck.UDP4: {"AF_INET", "SOCK_DGRAM"}, reusecheck.UDP6: {"AF_INET6", "SOCK_DGRAM"},
}

// optCalls are the level and the name of each option.
var optCalls = map[reusecheck.Opt][2]symbol{
	reusecheck.ReuseAddr:   {"SOL_SOCKET", "SO_REUSEADDR"},
	reusecheck.ReusePort:   {"SOL_SOCKET", "SO_REUSEPORT"},
	reusecheck.V6Only:      {"IPPROTO_IPV6", "IPV6_V6ONLY"},
	reusecheck.NoPort:      {"IPPROTO_IP", "IP_BIND_ADDRESS_NO_PORT"},
	reusecheck.Transparent: {"IPPROTO_IP", "IP_TRANSPARENT"},
}

func (l *lowering) socket(s *reusecheck.Step) error {
	op := &s.Op
	switch {
	case op.HasNet:
		return l.refuse("the program has one network namespace")
	case s.Want.Kind == reusecheck.Failed || s.Oracle.Kind == reusecheck.Failed:
		return l.refuse("a socket that cannot be made ends the program")
	}
	k := &sockInfo{v: l.names.of(l.p.trace.Name(op.Sock)), family: op.Family, opts: op.Opts, dev: op.Dev, rng: op.Range}
	l.socks[op.Sock] = k
	kind := families[op.Family]
	make := call{"new_socket", []any{kind[0], kind[1]}}
	if op.UID != 0 {
		make = call{"new_socket_of", append([]any{int(op.UID)}, make.args...)}
	}
	l.add(stmt{kind: sSocket, v: k.v, text: l.p.trace.Name(op.Sock), call: make,
		names: l.has[reusecheck.VInherit] || l.has[reusecheck.VSend]})
	for _, o := range reusecheck.OptNames {
		if c, ok := optCalls[o.Opt]; ok && op.Opts.Has(o.Opt) {
			l.add(stmt{kind: sMust, text: o.Name, call: call{"set_option", []any{variable(k.v), c[0], c[1], 1}}})
		}
	}
	if r := op.Range; r.Size() > 0 {
		l.add(stmt{kind: sMust, text: "range=" + r.String(), call: call{"set_range",
			[]any{variable(k.v), int(r.Lo), int(r.Hi)}}})
	}
	if op.Dev != reusecheck.NoDev {
		l.add(stmt{kind: sMust, text: "dev=" + op.Dev.String(), call: call{"set_device", []any{variable(k.v), op.Dev.String()}}})
	}
	if op.CPU != reusecheck.NoCPU {
		l.add(stmt{kind: sMust, text: "cpu=" + op.CPU.String(), call: call{"set_processor", []any{variable(k.v), op.CPU.Number()}}})
	}
	l.add(stmt{kind: sNote, text: op.Text(l.p.trace.Name)})
	if l.index+1 < len(l.p.trace.Steps) && (op.Opts != 0 || op.Dev != 0 || op.CPU != 0 || op.Range.Size() > 0 ||
		l.p.trace.Steps[l.index+1].Op.Verb != reusecheck.VSocket) {
		l.add(stmt{kind: sBlank})
	}
	return nil
}

func (l *lowering) set(s *reusecheck.Step, k *sockInfo) error {
	op := &s.Op
	v := variable(k.v)
	switch op.Field {
	case reusecheck.SetOpt:
		c, ok := optCalls[op.Opts]
		if !ok {
			return l.refuse("the option has no call")
		}
		value := 0
		k.opts &^= op.Opts
		if op.On {
			value = 1
			k.opts |= op.Opts
		}
		return l.judged(s, k, call{"set_option", []any{v, c[0], c[1], value}})
	case reusecheck.SetUID:
		return l.judged(s, k, call{"set_owner", []any{v, int(op.UID)}})
	case reusecheck.SetCPU:
		return l.judged(s, k, call{"set_processor", []any{v, op.CPU.Number()}})
	}
	k.dev = op.Dev
	if op.Dev == reusecheck.NoDev {
		return l.judged(s, k, call{"set_device", []any{v, ""}})
	}
	return l.judged(s, k, call{"set_device", []any{v, op.Dev.String()}})
}

// groupTries is how many connections are made until the named member of a
// reuseport group gets one.
const groupTries = 200

// processorTries is the same where the processor decides: often no try gets there,
// and clients have 256 ports.
const processorTries = 64

func (l *lowering) inherit(s *reusecheck.Step, k *sockInfo) error {
	op := &s.Op
	elsewhere := op.Addr.Port() != 0 && op.Addr.Port() != k.port
	if elsewhere && !l.redirects {
		return l.refuse("a connection to another port than the listener's needs a transparent proxy or a BPF program in its way")
	}
	if p := op.Addr.Port(); l.queues[p] || p == 0 && len(l.queues) > 0 {
		return l.refuse("it would wait behind a connection that nobody accepts")
	}
	child := &sockInfo{v: l.names.of(l.p.trace.Name(op.Child)), family: k.family, opts: k.opts, dev: k.dev, port: k.port}
	fn := "inherit"
	if elsewhere {
		fn, child.port = "inherit_redirected", op.Addr.Port()
		l.p.used["inherit"] = true
	}
	l.socks[op.Child] = child
	if op.CPU != reusecheck.NoCPU {
		l.add(stmt{kind: sMust, text: "processor " + op.CPU.String(), call: call{"run_on", []any{op.CPU.Number()}}})
	}
	tries := 1
	if k.opts.Has(reusecheck.ReusePort) && !elsewhere {
		tries = groupTries
		if op.CPU != reusecheck.NoCPU {
			tries = processorTries
		}
	}
	out := stmt{kind: sInherit, v: child.v, text: op.Text(l.p.trace.Name), want: l.text(s.Want), oracle: l.text(s.Oracle),
		call: call{fn, []any{variable(k.v), op.Addr.Addr().Unmap().String(), l.portArg(op.Addr.Port()), tries}}}
	if s.Oracle.Kind == reusecheck.Unstated {
		out.oracle = out.want
	}
	l.add(out)
	return nil
}

func (l *lowering) send(s *reusecheck.Step) error {
	op := &s.Op
	from, to := op.From.Addr().Unmap(), op.Addr.Addr().Unmap()
	fn, args := "deliver", []any{from.String(), l.portArg(op.From.Port()), to.String(), l.portArg(op.Addr.Port())}
	inside := netip.IPv6Loopback()
	switch {
	case from.Is4() != to.Is4():
		return l.refuse("a datagram has two addresses of one family")
	case op.Dev <= reusecheck.DevLo:
	case from == inside || to == inside:
		return l.refuse("the kernel takes ::1 on lo only")
	default:
		fn, args = "deliver_on", append([]any{op.Dev.String()}, args...)
	}
	if onProcessors(l.p.trace) {
		on := max(0, op.CPU.Number()) // where the step names none, on the first
		l.add(stmt{kind: sMust, text: "processor " + reusecheck.Processor(on).String(), call: call{"run_on", []any{on}}})
	}
	err := l.judged(s, nil, call{fn, args})
	l.name(op.From.Port())
	l.name(op.Addr.Port())
	return err
}
