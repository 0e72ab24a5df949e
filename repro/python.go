package repro

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// pythonWords are the words of Python and of the parts that a variable must
// not take.
const pythonWords = `False None True and as assert async await break class continue def del elif else except finally for
from global if import in is lambda nonlocal not or pass raise return try while with match case print open range any
reversed main diverged verdict libc checked names other_end ask_device checksum clients half_way_closed ctypes errno fcntl itertools os
select signal socket struct sys time IP_BIND_ADDRESS_NO_PORT IP_TRANSPARENT CLIENT_PORTS`

func generatePython(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("python")
	l := newLowering(t, "python", newNameTable(lib, nil, pythonWords))
	l.ownFamily = "a Python socket takes addresses of its own family only"
	p, err := l.lower()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/usr/bin/env python3\n#\n")
	hashHeader(&b, header{run: "python3 " + shellWord(info.File), needs: needsOf(p)}, t, info)
	p.used["step"] = true
	parts, modules := lib.selected(p.used)
	for _, m := range modules {
		b.WriteString("import " + m + "\n")
	}
	if p.used["inherit"] {
		fmt.Fprintf(&b, "\nCLIENT_PORTS = %d  # the first of 256 that the trace does not use\n", p.clientPorts)
	}
	for _, part := range parts {
		b.WriteString("\n\n" + part.text)
	}
	b.WriteString("\n\ndef main():\n")
	for _, c := range p.world {
		b.WriteString("    " + pyCall(c) + "\n")
	}
	b.WriteByte('\n')
	for i := range p.stmts {
		pyStmt(&b, &p.stmts[i], hasPart(parts, "names"))
	}
	b.WriteString("\n    verdict()\n\n\nif __name__ == \"__main__\":\n    main()\n")
	return []byte(b.String()), nil
}

// hashHeader writes the comment at the top of a file whose comments begin with #.
func hashHeader(b *strings.Builder, h header, t *reusecheck.Trace, info Info) {
	for _, line := range h.lines(t, info) {
		b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	b.WriteByte('\n')
}

func pyStmt(b *strings.Builder, s *stmt, names bool) {
	switch s.kind {
	case sBlank:
		b.WriteByte('\n')
	case sSocket:
		fmt.Fprintf(b, "    %s = %s\n", s.v, pyCall(s.call))
		if names {
			fmt.Fprintf(b, "    names[%s] = %s\n", s.v, strconv.Quote(s.text))
		}
	case sMust:
		fmt.Fprintf(b, "    must(%s, %s)\n", strconv.Quote(s.text), pyCall(s.call))
	case sNote:
		fmt.Fprintf(b, "    note(%s)\n", strconv.Quote(s.text))
	case sPort, sEnds:
		fmt.Fprintf(b, "    %s = %s\n", s.v, pyCall(s.call))
	case sInherit:
		fmt.Fprintf(b, "    %s, got = %s\n", s.v, pyCall(s.call))
		fmt.Fprintf(b, "    step(%s, got, %s, %s)\n", strconv.Quote(s.text), pyAnswer(s.want), pyAnswer(s.oracle))
	case sStep:
		head := "    step(" + strconv.Quote(s.text) + ","
		tail := fmt.Sprintf("%s, %s, %s)", pyCall(s.call), pyAnswer(s.want), pyAnswer(s.oracle))
		if len(head)+1+len(tail) > 99 {
			head += "\n        "
		}
		b.WriteString(head + " " + tail + "\n")
	}
}

func pyAnswer(a string) string {
	if a == "" {
		return "None"
	}
	return strconv.Quote(a)
}

func pyCall(c call) string {
	var args []string
	for _, a := range c.args {
		switch a := a.(type) {
		case call:
			args = append(args, pyCall(a))
		case string:
			args = append(args, strconv.Quote(a))
		case symbol:
			if a == "IP_BIND_ADDRESS_NO_PORT" || a == "IP_TRANSPARENT" {
				args = append(args, string(a)) // the module has them in late versions only
			} else {
				args = append(args, "socket."+string(a))
			}
		default:
			args = append(args, fmt.Sprint(a))
		}
	}
	return c.fn + "(" + strings.Join(args, ", ") + ")"
}
