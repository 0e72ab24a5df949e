package reusecheck

import (
	"net/netip"
	"strings"
	"testing"
)

var anyAddr = netip.MustParseAddrPort("127.0.0.1:40000")

// steps is a trace that a program makes, without lines and names.
func steps(ops ...Op) *Trace {
	t := &Trace{}
	for _, op := range ops {
		t.Steps = append(t.Steps, Step{Op: op})
	}
	return t
}

func TestValidateRefuses(t *testing.T) {
	socket := NewSocket(0, TCP4, 0)
	with := func(op Op, change func(*Op)) Op { change(&op); return op }
	states := func(want, oracle Answer, ops ...Op) *Trace {
		t := steps(ops...)
		t.Steps[len(t.Steps)-1].Want, t.Steps[len(t.Steps)-1].Oracle = want, oracle
		return t
	}
	named := func(t *Trace, names ...string) *Trace { t.Names = names; return t }
	in := func(s System, t *Trace) *Trace { t.Config.System = s; return t }
	for want, trace := range map[string]*Trace{
		"step 1, bind a 127.0.0.1:40000: a is not defined before it is used": steps(Bind(0, anyAddr)),
		"none is not defined":               steps(socket, Listen(NoID)),
		"a's other end is not defined":      steps(socket, Listen(ID(0).OtherEnd())),
		"it defines ID 1 where 0 is next":   steps(NewSocket(1, TCP4, 0)),
		"it defines ID 0 where 1 is next":   steps(socket, socket),
		"it defines ID 2 where 1 is next":   steps(socket, Inherit(0, 2, anyAddr)),
		"it was closed in step 2":           steps(socket, Close(0), Close(0)),
		"a has no connection":               steps(socket, LeaveTimeWait(0)),
		"system tcp has no send":            steps(Send(anyAddr, anyAddr, NoDev)),
		"system udp has no timewait":        in(UDP, steps(NewSocket(0, UDP4, 0), LeaveTimeWait(0))),
		"verb(0) is not a step":             steps(Op{}),
		"verb(99) is not a step":            steps(Op{Verb: 99}),
		"x is the name of two IDs, 0 and 1": named(steps(socket, NewSocket(1, TCP4, 0)), "x", "x"),
		"b is the name of two IDs, 0 and 1": named(steps(socket, NewSocket(1, TCP4, 0)), "b"),
		"ok cannot be a name":               named(steps(socket), "ok"),
		"the name is empty":                 named(steps(socket), ""),
		`name "y" belongs to no socket`:     named(steps(socket), "x", "y"),
		"set changes exactly one option":    steps(socket, SetOption(0, ReuseAddr|ReusePort, true)),
		"set changes exactly one":           steps(socket, SetOption(0, 0, true)),
		"what to set is missing":            steps(socket, Op{Verb: VSet}),
		"the device is unknown":             steps(socket, SetDevice(0, 9)),
		"the processor is none from 0":      steps(socket, SetProcessor(0, Processor(1024))),
		"system timewait has no processors": in(TimeWaitExit, steps(socket, InheritOn(0, 1, anyAddr, Processor(0)))),
		"a field set that connect does not": steps(socket, with(Connect(0, anyAddr), func(op *Op) { op.CPU = Processor(0) })),
		"the address is missing":            steps(socket, Bind(0, netip.AddrPort{})),
		"an address is missing":             in(UDP, steps(Send(anyAddr, netip.AddrPort{}, NoDev))),
		"the address has a zone":            steps(socket, Bind(0, netip.MustParseAddrPort("[fe80::1%lo]:1"))),
		"an address has a zone":             in(UDP, steps(Send(anyAddr, netip.MustParseAddrPort("[fe80::1%lo]:1"), NoDev))),
		"no namespace is named":             in(TimeWaitExit, steps(Exit())),
		"b is gone: it went with its namespace a in step 3": in(TimeWaitExit, steps(NewNetns(0),
			with(NewSocket(1, TCP4, 0), func(op *Op) { op.HasNet = true }), Exit(0), Close(1))),
		"c is not a TIME_WAIT socket: it went with its namespace a": in(TimeWaitExit, steps(NewNetns(0),
			with(NewSocket(1, TCP4, 0), func(op *Op) { op.HasNet = true }), Inherit(1, 2, anyAddr), LeaveTimeWait(2), Exit(0), Expire(2))),
		"the family is missing":                steps(NewSocket(0, 0, 0)),
		"an option is unknown":                 steps(NewSocket(0, TCP4, 1<<7)),
		"the range is not one of ports":        steps(with(socket, func(op *Op) { op.Range = PortRange{5, 4} })),
		"but HasNet is not set":                steps(socket, with(NewSocket(1, TCP4, 0), func(op *Op) { op.Net = 5 })),
		"a field set that listen does not use": steps(socket, with(Listen(0), func(op *Op) { op.UID = 1 })),
		"a field set that bind does not use":   steps(socket, with(Bind(0, anyAddr), func(op *Op) { op.Child = 1 })),
		"a field set that set does not use":    steps(socket, with(SetOwner(0, 5), func(op *Op) { op.On = true })),
		"a field set that send does not use":   in(UDP, steps(with(Send(anyAddr, anyAddr, Dev1), func(op *Op) { op.Sock = 1 }))),
		"a field set that close does not use":  steps(socket, with(Close(0), func(op *Op) { op.Batch = []ID{0} })),
		"ok is not a result of send":           in(UDP, states(Success, Answer{}, Send(anyAddr, anyAddr, NoDev))),
		"ok 5 is not a result of socket":       states(Picked(5), Answer{}, socket),
		"Errno(7) has no symbol":               states(Fail(7), Answer{}, socket),
		"answer(77) is not a result":           states(Answer{Kind: 77}, Answer{}, socket),
		"none is not defined before":           states(Answer{Kind: Received, Who: NoID}, Answer{}, socket, Inherit(0, 1, anyAddr)),
		"b is the socket that the step makes":  states(Answer{Kind: Received, Who: 1}, Answer{}, socket, Inherit(0, 1, anyAddr)),
		"a is the listener that is named":      states(Answer{Kind: Received}, Answer{}, socket, Inherit(0, 1, anyAddr)),
		"EBADF is not a result of listen":      states(Answer{Kind: Failed, Errno: EBADF, Port: 1}, Answer{}, socket, Listen(0)),
		"ok walks=? left=0 is not a result":    in(TimeWaitExit, states(Answer{Kind: Exited, Walks: -1}, Answer{}, NewNetns(0), Exit(0))),
		"only where it differs":                states(Success, Success, socket, Listen(0)),
		`system "sctp" is none of`:             in("sctp", steps()),
		"title: the text has a control":        {Title: "two\nlines"},
		"title: the text is not UTF-8":         {Title: "\xff"},
		"title: the text begins or ends":       {Title: "x "},
		"source: a # after a space":            {Source: "x #y"},
		"title: a # after a space":             {Title: "#y"},
		"ports 5-4 is not a range":             {Config: Config{Ports: PortRange{5, 4}}},
		"ports 0-4 is not a range":             {Config: Config{Ports: PortRange{0, 4}}},
		"a sysctl's name":                      {Config: Config{Sysctl: []Sysctl{{"a b", "1"}}}},
		"a sysctl's value":                     {Config: Config{Sysctl: []Sysctl{{"a", "1  2"}}}},
		`sysctl "b": a sysctl's value`:         {Config: Config{Sysctl: []Sysctl{{"a", "1"}, {"b", "#"}}}},
		`sysctl "": a sysctl's name`:           {Config: Config{Sysctl: []Sysctl{{"", "1"}}}},
		`sysctl "c": a sysctl's value`:         {Config: Config{Sysctl: []Sysctl{{"c", ""}}}},
	} {
		if err := trace.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, not %q:\n%s", err, want, trace)
		}
	}
}

func TestValidateNamesTheLineOfAStepThatWasRead(t *testing.T) {
	trace, err := Parse("f.trace", []byte("\nsocket a tcp4\nclose a\n"))
	if err != nil {
		t.Fatal(err)
	}
	trace.Steps = append(trace.Steps, trace.Steps[1])
	want := "f.trace:3: step 3, close a: a is gone: it was closed in line 3"
	if err := trace.Validate(); err == nil || err.Error() != want {
		t.Errorf("error %v, not %s", err, want)
	}
	trace.Steps[2].Line = 0
	want = "step 3, close a: a is gone: it was closed in line 3"
	if err := trace.Validate(); err == nil || err.Error() != want {
		t.Errorf("a step that a program made: error %v, not %s", err, want)
	}
}

// What the kernel refuses at run time is for the kernel to refuse.
func TestLegalStepsOfSocketsThatCannot(t *testing.T) {
	for name, text := range map[string]string{
		"second bind":                 "socket a tcp4\nbind a 127.0.0.1:1\nbind a 127.0.0.1:2 => EINVAL",
		"listen connected":            "socket a tcp4\nconnect a 127.0.0.1:1\nlisten a => EINVAL",
		"connect listening":           "socket a tcp4\nlisten a\nconnect a 127.0.0.1:1 => EISCONN",
		"listen on UDP":               "system udp\nsocket a udp4\nlisten a => EOPNOTSUPP",
		"shutdown of nothing":         "socket a tcp4\nshutdown a => ENOTCONN",
		"IPv6 address, IPv4 socket":   "socket a tcp4\nbind a [::1]:1 => EAFNOSUPPORT",
		"IPv4 address, IPv6 socket":   "socket a tcp6\nbind a 127.0.0.1:1 => EINVAL",
		"child that is not there":     "socket l tcp4\ninherit l c 127.0.0.1 => ECONNREFUSED\nbind c 127.0.0.1:1 => EBADF\nclose c => EBADF",
		"timewait after a failure":    "socket a tcp4\nconnect a 127.0.0.1:1 => ECONNREFUSED\ntimewait a => ENOTCONN",
		"connect again":               "socket a tcp4\nconnect a 127.0.0.1:1\ndisconnect a\nconnect a 127.0.0.1:1\ntimewait a\nexpire a",
		"port 0 without ports":        "socket a tcp4\nbind a 127.0.0.1:0 => ok",
		"receiver that is closed":     "system udp\nsocket a udp4\nclose a\nsend 127.0.0.1:1 -> 127.0.0.1:2 => a",
		"socket of another namespace": "system timewait\nnetns n\nsocket a tcp4 netns=n\nsocket b tcp4\nexit n\nclose b",
	} {
		if _, err := Parse(name, []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateAcceptsWhatAProgramLeavesOut(t *testing.T) {
	trace := steps(NewSocket(0, TCP4, 0), Inherit(0, 1, anyAddr), NewSocket(2, TCP4, 0))
	trace.Names = []string{"listener"}
	if err := trace.Validate(); err != nil {
		t.Error(err)
	}
}
