package repro

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// cWords are the words of C and of the parts that a variable must not take.
const cWords = `auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
asm typeof linux unix errno stdin stdout stderr main environ bool true false NULL
become_root timed_out limit_time append ending message verdict diverged count_states ends ends_of put_end size_of
name_of other_end ask_device summed uid_t socklen_t s_addr s6_addr`

func generateC(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("c")
	l := newLowering(t, "c", newNameTable(lib, nil, cWords))
	l.redirects = true
	p, err := l.lower()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	cHeader(&b, header{
		build: fmt.Sprintf("cc -std=gnu11 -Wall -Wextra -o %s %s", shellWord(info.stem()), shellWord(info.File)),
		run:   shellWord("./" + info.stem()),
		needs: needsOf(p),
	}, t, info)
	b.WriteString("#define _GNU_SOURCE\n")
	cParts(&b, lib, p, "")
	b.WriteString("int main(void)\n{\n")
	for _, c := range p.world {
		b.WriteString("\t" + cCall(c) + ";\n")
	}
	b.WriteByte('\n')
	cBody(&b, p)
	b.WriteString("\n\treturn verdict();\n}\n")
	return []byte(b.String()), nil
}

// cHeader writes the comment at the top of a C file.
func cHeader(b *strings.Builder, h header, t *reusecheck.Trace, info Info) {
	b.WriteString("/*\n")
	for _, line := range h.lines(t, info) {
		b.WriteString(strings.TrimRight(" * "+cComment(line), " ") + "\n")
	}
	b.WriteString(" */\n")
}

// cComment is a text that neither ends a comment nor seems to begin another.
func cComment(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "*/", "* /"), "/*", "/ *")
}

// cParts writes the headers, own last, and the helpers that a program uses.
func cParts(b *strings.Builder, lib *library, p *program, own string) {
	p.used["step"] = true
	parts, includes := lib.selected(p.used)
	for _, inc := range includes {
		fmt.Fprintf(b, "#include %s\n", inc)
	}
	if own != "" {
		b.WriteString("\n" + own + "\n")
	}
	b.WriteByte('\n')
	constants := false
	for _, part := range parts {
		if strings.Contains(part.text, "MAX_FD") && !constants {
			constants = true
			fmt.Fprintf(b, "#define MAX_FD %d\n", p.maxFD)
		}
	}
	if p.used["inherit"] {
		constants = true
		fmt.Fprintf(b, "#define CLIENT_PORTS %d\t/* the first of 256 that the trace does not use */\n", p.clientPorts)
	}
	if constants {
		b.WriteByte('\n')
	}
	for _, part := range parts {
		b.WriteString(part.text)
		b.WriteByte('\n')
	}
}

// cBody writes the steps.
func cBody(b *strings.Builder, p *program) {
	used := p.uses()
	for i := range p.stmts {
		cStmt(b, &p.stmts[i], used)
	}
}

func cStmt(b *strings.Builder, s *stmt, used map[string]bool) {
	switch s.kind {
	case sBlank:
		b.WriteByte('\n')
	case sSocket:
		if !s.names && !used[s.v] {
			fmt.Fprintf(b, "\t%s;\n", cCall(s.call))
			return
		}
		fmt.Fprintf(b, "\tint %s = %s;\n", s.v, cCall(s.call))
		if s.names {
			fmt.Fprintf(b, "\tname_of[%s] = %s;\n", s.v, cString(s.text))
		}
	case sMust:
		fmt.Fprintf(b, "\tmust(%s, %s);\n", cString(s.text), cCall(s.call))
	case sNote:
		fmt.Fprintf(b, "\tnote(%s);\n", cString(s.text))
	case sPort:
		if !used[s.v] {
			return
		}
		fmt.Fprintf(b, "\tint %s = %s;\n", s.v, cCall(s.call))
	case sEnds:
		fmt.Fprintf(b, "\tstruct ends %s = %s;\n", s.v, cCall(s.call))
	case sInherit:
		fmt.Fprintf(b, "\tint %s = -1;\n", s.v)
		args := append([]any{s.call.args[0], variable("&" + s.v)}, s.call.args[1:]...)
		cStep(b, s, call{s.call.fn, args})
	case sStep:
		if s.call.fn == "expire" {
			args := append([]any{variable("&" + string(s.call.args[0].(variable)))}, s.call.args[1:]...)
			cStep(b, s, call{s.call.fn, args})
			return
		}
		cStep(b, s, s.call)
	}
}

const cColumns = 92

func cStep(b *strings.Builder, s *stmt, c call) {
	head := fmt.Sprintf("step(%s,", cString(s.text))
	tail := fmt.Sprintf("%s, %s, %s);", cCall(c), cAnswer(s.want), cAnswer(s.oracle))
	if len(head)+1+len(tail)+8 <= cColumns {
		fmt.Fprintf(b, "\t%s %s\n", head, tail)
		return
	}
	fmt.Fprintf(b, "\t%s\n\t     %s\n", head, tail)
}

func cAnswer(a string) string {
	if a == "" {
		return "NULL"
	}
	return cString(a)
}

func cCall(c call) string {
	var args []string
	for _, a := range c.args {
		switch a := a.(type) {
		case call:
			args = append(args, cCall(a))
		case string:
			args = append(args, cString(a))
		case int:
			args = append(args, strconv.Itoa(a))
		default:
			args = append(args, fmt.Sprint(a))
		}
	}
	return c.fn + "(" + strings.Join(args, ", ") + ")"
}

// cString quotes printable text; a trace's names and steps have no other.
func cString(s string) string { return strconv.Quote(s) }
