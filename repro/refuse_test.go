package repro_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
)

func TestAStepThatAFormatCannotExpressIsRefusedByItsName(t *testing.T) {
	const l = "socket l tcp4\nbind l 127.0.0.1:40000\nlisten l\n"
	for _, c := range []struct {
		formats, text string
		want          repro.Inexpressible
	}{
		{"python go", l + "inherit l c 127.0.0.1:40001 => ok\n", repro.Inexpressible{Line: 4, Step: "inherit l c 127.0.0.1:40001 => ok"}},
		{"c python go", "system timewait\nnetns n\nexit n => ok walks=1 left=0\n", repro.Inexpressible{Line: 2, Step: "netns n"}},
		{"c selftest python go", "system udp\nsend [::1]:1 -> [fd00::1]:2 dev=d1 => none\n", repro.Inexpressible{Line: 2, Step: "send [::1]:1 -> [fd00::1]:2 dev=d1 => none"}},
		{"c selftest python go", "system udp\nsend 127.0.0.1:1 -> [fd00::1]:2 dev=d1 => none\n", repro.Inexpressible{Line: 2, Step: "send 127.0.0.1:1 -> [fd00::1]:2 dev=d1 => none"}},
		{"c python go", "sysctl kernel.hostname x\nsocket a tcp4\n", repro.Inexpressible{Step: "sysctl kernel.hostname x"}},
		{"c python go", "socket a tcp4 transparent => EPERM\n", repro.Inexpressible{Line: 1, Step: "socket a tcp4 transparent => EPERM"}},
		{"selftest packetdrill syz kunit bench", "socket a tcp4 cpu=1\n", repro.Inexpressible{Line: 1, Step: "socket a tcp4 cpu=1"}},
		{"selftest packetdrill syz kunit bench", l + "set l cpu=none => ok\n", repro.Inexpressible{Line: 4, Step: "set l cpu=none => ok"}},
		{"selftest packetdrill syz kunit bench", l + "inherit l c 127.0.0.1 cpu=0 => ok\n", repro.Inexpressible{Line: 4, Step: "inherit l c 127.0.0.1 cpu=0 => ok"}},
		{"selftest packetdrill syz kunit bench", "system udp\nsend 127.0.0.1:1 -> 127.0.0.1:2 cpu=0 => none\n", repro.Inexpressible{Line: 2, Step: "send 127.0.0.1:1 -> 127.0.0.1:2 cpu=0 => none"}},
		{"syz", "socket a tcp4\nbind a 0.0.0.0:1 => ok\nconnect a 127.0.0.1:1 => ok\nshutdown a => ok\n", repro.Inexpressible{Line: 4, Step: "shutdown a => ok"}},
		{"packetdrill syz kunit", "sysctl net.ipv4.tcp_tw_reuse 0\nsocket a tcp4\n", repro.Inexpressible{Step: "sysctl net.ipv4.tcp_tw_reuse 0"}},
		{"packetdrill syz kunit", "ports 40000-40001\nsocket a tcp4\n", repro.Inexpressible{Step: "ports 40000-40001"}},
		{"python", "socket a tcp4\nbind a [::1]:1\n", repro.Inexpressible{Line: 2, Step: "bind a [::1]:1"}},
	} {
		for _, format := range strings.Fields(c.formats) {
			src, err := repro.Generate(parse(t, c.text), format, repro.Info{})
			var got *repro.Inexpressible
			if !errors.As(err, &got) || src != nil {
				t.Errorf("%s gives %v for\n%s", format, err, c.text)
				continue
			}
			c.want.Format, c.want.Why = format, got.Why
			if d := cmp.Diff(&c.want, got); d != "" || got.Why == "" || !strings.Contains(got.Error(), got.Step) {
				t.Errorf("%s: %v\n%s", format, got, d)
			}
		}
	}
}

func TestNoFormatHasNamespacesAndEachSaysSo(t *testing.T) {
	tr := parse(t, "system timewait\nnetns n\nsocket a tcp4 netns=n\nbind a 127.0.0.1:40000 => ok\nexit n => ok walks=1 left=0\n")
	for _, f := range repro.Formats() {
		src, err := repro.Generate(tr, f.Name, repro.Info{})
		var got *repro.Inexpressible
		if !errors.As(err, &got) || src != nil {
			t.Errorf("%s gives %d bytes and %v", f.Name, len(src), err)
			continue
		}
		if got.Step != "netns n" && got.Step != "system timewait" || got.Why == "" {
			t.Errorf("%s refuses %q: %s", f.Name, got.Step, got.Why)
		}
	}
}

func TestAFormatThatThereIsNotIsRefusedWithThoseThatThereAre(t *testing.T) {
	_, err := repro.Generate(parse(t, "socket a tcp4\n"), "cobol", repro.Info{})
	var unknown *repro.UnknownFormat
	if !errors.As(err, &unknown) {
		t.Fatal(err)
	}
	for _, f := range repro.Formats() {
		if !strings.Contains(err.Error(), f.Name) {
			t.Errorf("%q does not name %s", err, f.Name)
		}
		if f.Doc == "" || !strings.Contains(f.Ext, ".") {
			t.Errorf("format %s is not described", f.Name)
		}
	}
}

func TestAnIllFormedTraceIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	tr := &reusecheck.Trace{Steps: []reusecheck.Step{{Op: reusecheck.Listen(3)}}}
	for _, f := range repro.Formats() {
		if src, err := repro.Generate(tr, f.Name, repro.Info{}); err == nil || src != nil {
			t.Errorf("%s gives %q, %v", f.Name, src, err)
		}
	}
}

func TestNamesThatALanguageKeepsForItselfDoNotClash(t *testing.T) {
	// Every one of these is a word of C, Python, Go or of the parts.
	var b strings.Builder
	words := strings.Fields("int if lambda func step bind_to bindTo verdict errno linux main AF_INET names a-b a_b range got child child2 x")
	for _, w := range words {
		b.WriteString("socket " + w + " tcp4\n")
	}
	for _, w := range words {
		b.WriteString("close " + w + " => ok\n")
	}
	tr := parse(t, b.String())
	for _, f := range []string{"c", "python", "go"} {
		src := generate(t, tr, f, repro.Info{})
		if f == "c" {
			needRoot(t)
			path := save(t, "p.c", src)
			if out, status := run(t, timeLimit, tool(t, "gcc"), append(strict, "-fsyntax-only", path)...); status != 0 {
				t.Errorf("%s\n%s", out, src)
			}
		}
		if f == "python" {
			if out, status := run(t, timeLimit, pythonPath(t), save(t, "p.py", src)); status != 0 {
				t.Errorf("%s\n%s", out, src)
			}
		}
	}
}

func TestATitleNeitherEndsAnotherCommentNorBeginsOne(t *testing.T) {
	tr := parse(t, "title a */ and a /* in it\nsource a */ and a /* in it\nsocket a tcp4 reuseaddr\nbind a 127.0.0.1:40000 => ok\n")
	for _, format := range []string{"c", "selftest", "bench", "kunit"} {
		src := string(generate(t, tr, format, repro.Info{}))
		if n := strings.Count(src, "a * / and a / * in it"); n < 2 || strings.Contains(src, "a */") || strings.Contains(src, "a /*") {
			t.Errorf("%s has the title in %d comments:\n%s", format, n, src)
		}
	}
}
