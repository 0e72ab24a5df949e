package repro

import (
	"fmt"
	"go/format"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// goWords are the words of Go and of the parts that a variable must not take.
const goWords = `break case chan const continue default defer else fallthrough for func go goto if import interface map
package range return select struct switch type var string int true false nil main init make len append
asRoot symbols diverged verdict names clients clientPorts ends halfWayClosed soReusePort ipBindAddressNoPort
binary fmt net netip os exec reflect runtime slices strings syscall time unsafe otherEnd setFlags seal got`

func generateGo(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("go")
	p, err := newLowering(t, "go", newNameTable(lib, camel, goWords)).lower()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	h := header{build: "go build " + shellWord(info.File), run: shellWord("./" + info.stem()), needs: needsOf(p)}
	for _, line := range h.lines(t, info) {
		b.WriteString(strings.TrimRight("// "+line, " ") + "\n")
	}
	b.WriteString("\npackage main\n\nimport (\n")
	p.used["step"] = true
	parts, packages := lib.selected(p.used)
	for _, pkg := range packages {
		b.WriteString("\t" + strconv.Quote(pkg) + "\n")
	}
	b.WriteString(")\n\n")
	if p.used["inherit"] {
		fmt.Fprintf(&b, "const clientPorts = %d // the first of 256 that the trace does not use\n\n", p.clientPorts)
	}
	for _, part := range parts {
		b.WriteString(part.text + "\n")
	}
	b.WriteString("func main() {\n")
	for _, c := range p.world {
		b.WriteString(goCall(c) + "\n")
	}
	b.WriteByte('\n')
	used := p.uses()
	inherited := false
	for i := range p.stmts {
		s := &p.stmts[i]
		if s.kind == sInherit && !inherited {
			inherited = true
			b.WriteString("var got string\n")
		}
		goStmt(&b, s, hasPart(parts, "names"), used[s.v])
	}
	b.WriteString("\nverdict()\n}\n")
	return format.Source([]byte(b.String()))
}

// uses are the variables that some statement reads.
func (p *program) uses() map[string]bool {
	used := make(map[string]bool)
	var note func(c call)
	note = func(c call) {
		for _, a := range c.args {
			switch a := a.(type) {
			case variable:
				used[string(a)] = true
			case call:
				note(a)
			}
		}
	}
	for i := range p.stmts {
		note(p.stmts[i].call)
	}
	return used
}

func goStmt(b *strings.Builder, s *stmt, names, used bool) {
	v, assign := s.v, ":="
	if !used && !(s.kind == sSocket && names) {
		v, assign = "_", "="
	}
	switch s.kind {
	case sBlank:
		b.WriteByte('\n')
	case sSocket:
		fmt.Fprintf(b, "%s %s %s\n", v, assign, goCall(s.call))
		if names {
			fmt.Fprintf(b, "names[%s] = %q\n", s.v, s.text)
		}
	case sMust:
		fmt.Fprintf(b, "must(%q, %s)\n", s.text, goCall(s.call))
	case sNote:
		fmt.Fprintf(b, "note(%q)\n", s.text)
	case sPort, sEnds:
		fmt.Fprintf(b, "%s %s %s\n", v, assign, goCall(s.call))
	case sInherit:
		if !used {
			fmt.Fprintf(b, "_, got = %s\n", goCall(s.call))
		} else {
			fmt.Fprintf(b, "%s, got := %s\n", v, goCall(s.call))
		}
		fmt.Fprintf(b, "step(%q, got, %q, %q)\n", s.text, s.want, s.oracle)
	case sStep:
		head := fmt.Sprintf("step(%q,", s.text)
		tail := fmt.Sprintf("%s, %q, %q)", goCall(s.call), s.want, s.oracle)
		sep := " "
		if len(head)+len(tail) > 96 {
			sep = "\n"
		}
		b.WriteString(head + sep + tail + "\n")
	}
}

func goCall(c call) string {
	var args []string
	for _, a := range c.args {
		switch a := a.(type) {
		case call:
			args = append(args, goCall(a))
		case string:
			args = append(args, strconv.Quote(a))
		case symbol:
			switch a {
			case "SO_REUSEPORT": // the package has it on some machines only
				args = append(args, "soReusePort")
			case "IP_BIND_ADDRESS_NO_PORT":
				args = append(args, "ipBindAddressNoPort")
			default:
				args = append(args, "syscall."+string(a))
			}
		default:
			args = append(args, fmt.Sprint(a))
		}
	}
	return camel(c.fn) + "(" + strings.Join(args, ", ") + ")"
}
