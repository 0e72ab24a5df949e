package repro

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// generateKUnit writes a KUnit case that performs the binds inside the kernel.
// Where Info.Caches says what a healthy bucket holds, the case looks at it: a
// short cut that is weaker than its owners allow changes no answer.
func generateKUnit(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("kunit")
	w := &kunit{
		p: &program{format: "kunit", trace: t, used: map[string]bool{"sockets": true}}, info: info,
		names: newNameTable(lib, nil, cWords+" test opened nr_opened new_socket set_up tear_down current init_net"),
		socks: make(map[reusecheck.ID]string), families: make(map[reusecheck.ID]reusecheck.Family),
	}
	if err := unset(t, "kunit", "the case runs in the kernel's first namespace, whose settings it leaves alone"); err != nil {
		return nil, err
	}
	for i := range t.Steps {
		if err := w.step(i); err != nil {
			return nil, err
		}
	}
	suite := identifier(info.Name)
	var b strings.Builder
	b.WriteString("// SPDX-License-Identifier: GPL-2.0\n")
	cHeader(&b, header{
		build: fmt.Sprintf("add obj-$(CONFIG_KUNIT) += %s.o to net/ipv4/Makefile", shellWord(info.stem())),
		run:   fmt.Sprintf("./tools/testing/kunit/kunit.py run %s (with CONFIG_INET and CONFIG_IPV6)", suite),
		expect: append(expectation(t),
			"The case passes where the kernel answers as the oracle does and its buckets are as they should be, and fails where not."),
	}, t, info)
	for _, inc := range []string{"kunit/test.h", "linux/in.h", "linux/in6.h", "linux/inet.h", "linux/net.h", "linux/netdevice.h",
		"linux/rtnetlink.h", "net/inet_connection_sock.h", "net/inet_hashtables.h", "net/net_namespace.h", "net/sock.h"} {
		fmt.Fprintf(&b, "#include <%s>\n", inc)
	}
	fmt.Fprintf(&b, "\n#define MAX_SOCKETS %d\n\n", max(len(w.socks), 1))
	parts, _ := lib.selected(w.p.used)
	for _, part := range parts {
		b.WriteString(part.text + "\n")
	}
	b.WriteString("static void answers_as_every_owner_would(struct kunit *test)\n{\n")
	if w.vars != nil {
		fmt.Fprintf(&b, "\tstruct socket %s;\n\n", strings.Join(w.vars, ", "))
	}
	fmt.Fprintf(&b, "%s}\n\n", w.body.String())
	fmt.Fprintf(&b, "static struct kunit_case cases[] = {\n\tKUNIT_CASE(answers_as_every_owner_would),\n\t{}\n};\n\n")
	fmt.Fprintf(&b, "static struct kunit_suite suite = {\n\t.name = %q,\n\t.init = set_up,\n\t.exit = tear_down,\n\t.test_cases = cases,\n};\n\n", suite)
	b.WriteString("kunit_test_suite(suite);\n\nMODULE_DESCRIPTION(\"KUnit case from a trace of socket operations\");\nMODULE_LICENSE(\"GPL\");\n")
	return []byte(b.String()), nil
}

// kunit writes the steps of one case.
type kunit struct {
	p        *program
	info     Info
	names    *nameTable
	socks    map[reusecheck.ID]string
	families map[reusecheck.ID]reusecheck.Family
	vars     []string
	body     strings.Builder
	parted   bool
}

func (w *kunit) step(i int) error {
	s := &w.p.trace.Steps[i]
	op := &s.Op
	refuse := func(why string) error {
		return &Inexpressible{Format: "kunit", Line: s.Line, Step: s.Text(w.p.trace.Name), Why: why}
	}
	if w.parted {
		return refuse("a case has one answer for each step, and the kernels have parted before this one")
	}
	w.parted = s.Oracle.Kind != reusecheck.Unstated
	v := w.socks[op.Sock]
	switch op.Verb {
	case reusecheck.VSocket:
		return w.socket(op, refuse)
	case reusecheck.VBind:
		w.note(s, call{"bind_to", []any{variable(v), w.address(op), int(op.Addr.Port())}})
	case reusecheck.VListen:
		w.note(s, call{"listen_on", []any{variable(v)}})
	case reusecheck.VShutdown:
		w.note(s, call{"shut_down", []any{variable(v)}})
	case reusecheck.VClose:
		w.note(s, call{"close_socket", []any{variable(v)}})
		return nil
	case reusecheck.VSet:
		return w.set(s, v, refuse)
	default:
		return refuse("the case opens no connections, makes no namespaces and sends nothing")
	}
	if i < len(w.info.Caches) && w.info.Caches[i].Exists && w.answer(s).Kind == reusecheck.OK {
		c := w.info.Caches[i]
		w.p.used["expect_cache"] = true
		fmt.Fprintf(&w.body, "\texpect_cache(test, %s, %d, %s);\n", v, c.FastReuse, fastReusePort(c.FastReusePort))
	}
	return nil
}

// fastReusePort is a value of the cache by the name that the kernel has for it.
func fastReusePort(v int8) string {
	switch v {
	case reusecheck.FastAny:
		return "FASTREUSEPORT_ANY"
	case reusecheck.FastStrict:
		return "FASTREUSEPORT_STRICT"
	}
	return fmt.Sprint(v)
}

func (w *kunit) answer(s *reusecheck.Step) reusecheck.Answer {
	if s.Oracle.Kind != reusecheck.Unstated {
		return s.Oracle
	}
	return s.Want
}

// note adds a step with the answer that is expected.
func (w *kunit) note(s *reusecheck.Step, c call) {
	if c.fn != "close_socket" { // which is always there
		w.p.use(c)
	}
	switch a := w.answer(s); a.Kind {
	case reusecheck.OK:
		fmt.Fprintf(&w.body, "\tKUNIT_EXPECT_EQ(test, %s, 0);\n", cCall(c))
	case reusecheck.Failed:
		fmt.Fprintf(&w.body, "\tKUNIT_EXPECT_EQ(test, %s, -%s);\n", cCall(c), a.Errno)
	default:
		fmt.Fprintf(&w.body, "\t%s;\n", cCall(c))
	}
}

func (w *kunit) address(op *reusecheck.Op) string {
	return address(w.families[op.Sock], op.Addr.Addr())
}

// kunitOpts are the helpers that set an option.
var kunitOpts = map[reusecheck.Opt]string{
	reusecheck.ReuseAddr: "set_reuseaddr", reusecheck.ReusePort: "set_reuseport", reusecheck.V6Only: "set_v6only",
}

func (w *kunit) socket(op *reusecheck.Op, refuse func(string) error) error {
	if op.Family.IsUDP() || op.Dev != reusecheck.NoDev || op.HasNet || op.Range.Size() > 0 ||
		op.Opts&^(reusecheck.ReuseAddr|reusecheck.ReusePort|reusecheck.V6Only) != 0 {
		return refuse("the case has TCP sockets of the kernel's first namespace, with users, reuseaddr, reuseport and v6only")
	}
	v := w.names.of(w.p.trace.Name(op.Sock))
	w.socks[op.Sock] = v
	w.families[op.Sock] = op.Family
	if !w.mentioned(op.Sock) {
		fmt.Fprintf(&w.body, "\tnew_socket(test, %s);\n", families[op.Family][0])
		return nil
	}
	w.vars = append(w.vars, "*"+v)
	fmt.Fprintf(&w.body, "\t%s = new_socket(test, %s);\n", v, families[op.Family][0])
	set := func(fn string, value int) {
		w.p.used[fn] = true
		fmt.Fprintf(&w.body, "\t%s(%s, %d);\n", fn, v, value)
	}
	for _, o := range reusecheck.OptNames {
		if op.Opts.Has(o.Opt) {
			set(kunitOpts[o.Opt], 1)
		}
	}
	if op.UID != 0 {
		set("set_owner", int(op.UID))
	}
	return nil
}

// mentioned reports whether anything is said of a socket after it was made.
func (w *kunit) mentioned(id reusecheck.ID) bool {
	for i := range w.p.trace.Steps {
		if op := &w.p.trace.Steps[i].Op; op.Sock == id && (op.Verb != reusecheck.VSocket || op.Opts != 0 || op.UID != 0) {
			return true
		}
	}
	return false
}

func (w *kunit) set(s *reusecheck.Step, v string, refuse func(string) error) error {
	op := &s.Op
	fn := kunitOpts[op.Opts]
	switch {
	case op.Field == reusecheck.SetUID:
		w.note(s, call{"set_owner", []any{variable(v), int(op.UID)}})
	case op.Field == reusecheck.SetOpt && (fn == "set_reuseaddr" || fn == "set_reuseport"):
		value := 0
		if op.On {
			value = 1
		}
		w.note(s, call{fn, []any{variable(v), value}})
	default:
		return refuse("the case changes users, reuseaddr and reuseport only")
	}
	return nil
}
