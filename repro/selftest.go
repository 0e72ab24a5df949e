package repro

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// variant is one trace of a program that has several.
type variant struct {
	name  string
	trace *reusecheck.Trace
	p     *program
}

// generateSelftest writes a C case in the form of the kernel's selftests: a
// fixture whose variants are the finding and its control. It expects the
// oracle's answers, so that an affected kernel fails it.
func generateSelftest(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("c").with(readLibrary("selftest"))
	variants := []*variant{{name: "stated", trace: t}}
	if info.Control != nil {
		if err := info.Control.Validate(); err != nil {
			return nil, fmt.Errorf("the control: %w", err)
		}
		variants = []*variant{{name: "finding", trace: t}, {name: "control", trace: info.Control}}
	}
	all := &program{used: make(map[string]bool)}
	for _, v := range variants {
		l := newLowering(v.trace, "selftest", newNameTable(lib, nil, cWords+" judge self variant finding control stated"))
		l.redirects = true
		l.alongside = []*reusecheck.Trace{t, info.Control}
		p, err := l.lower()
		if err != nil {
			return nil, err
		}
		v.p = p
		all.merge(p)
	}
	delete(all.used, "limit_time") // the harness has a limit of its own
	var b strings.Builder
	b.WriteString("// SPDX-License-Identifier: GPL-2.0\n")
	cHeader(&b, header{
		build: fmt.Sprintf("add %s to TEST_GEN_PROGS in tools/testing/selftests/net/Makefile", shellWord(info.stem())),
		run:   fmt.Sprintf("make -C tools/testing/selftests TARGETS=net run_tests, or %s", shellWord("./"+info.stem())),
		needs: needsOf(all),
		expect: append(expectation(t),
			"A case passes where the kernel answers as the oracle does, fails where it does not, and is skipped where it could not run."),
		remark: "the harness counts a skip as one from Linux 6.9 on.",
	}, t, info)
	b.WriteString("#define _GNU_SOURCE\n")
	cParts(&b, lib, all, "#include \"../kselftest_harness.h\"")
	fixture := identifier(info.Name)
	for _, v := range variants {
		fmt.Fprintf(&b, "/* %s */\n", cComment(v.trace.Title))
		fmt.Fprintf(&b, "static void %s(struct __test_metadata *_metadata)\n{\n", v.name)
		for _, c := range v.p.world {
			if c.fn != "limit_time" {
				b.WriteString("\t" + cCall(c) + ";\n")
			}
		}
		b.WriteByte('\n')
		cBody(&b, v.p)
		b.WriteString("}\n\n")
	}
	fmt.Fprintf(&b, "FIXTURE(%s) {\n};\n\n", fixture)
	fmt.Fprintf(&b, "FIXTURE_VARIANT(%s) {\n\tvoid (*steps)(struct __test_metadata *_metadata);\n};\n\n", fixture)
	for _, v := range variants {
		fmt.Fprintf(&b, "FIXTURE_VARIANT_ADD(%s, %s) {\n\t.steps = %s,\n};\n\n", fixture, v.name, v.name)
	}
	fmt.Fprintf(&b, "FIXTURE_SETUP(%s) {\n}\n\nFIXTURE_TEARDOWN(%s) {\n}\n\n", fixture, fixture)
	fmt.Fprintf(&b, "TEST_F(%s, answers_as_every_owner_would)\n{\n\tvariant->steps(_metadata);\n}\n\nTEST_HARNESS_MAIN\n", fixture)
	return []byte(b.String()), nil
}

// merge takes over what another program needs.
func (p *program) merge(q *program) {
	for name := range q.used {
		p.used[name] = true
	}
	p.maxFD = max(p.maxFD, q.maxFD)
	p.clientPorts = q.clientPorts
}

// identifier makes a name of C out of a file's.
func identifier(name string) string {
	id := strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if id[0] >= '0' && id[0] <= '9' {
		id = "_" + id
	}
	return id
}
