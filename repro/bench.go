package repro

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// generateBench writes a timing program: the trace's binds over and over, all
// sockets staying open. Where the fast path answers, a bind costs the same
// however many owners the port has.
func generateBench(t *reusecheck.Trace, info Info) ([]byte, error) {
	lib := readLibrary("c").plus(readLibrary("bench"))
	l := newLowering(t, "bench", newNameTable(lib, nil, ""))
	p := l.p
	for _, part := range []string{"own_namespace", "open_one", "bind_to", "measure"} {
		p.used[part] = true
	}
	kinds, err := l.benchKinds()
	if err != nil {
		return nil, err
	}
	if err := l.world(); err != nil {
		return nil, err
	}
	var b strings.Builder
	cHeader(&b, header{
		build: fmt.Sprintf("cc -O2 -std=gnu11 -Wall -Wextra -o %s %s", shellWord(info.stem()), shellWord(info.File)),
		run:   fmt.Sprintf("%s [SOCKETS] (4000 unless given)", shellWord("./"+info.stem())),
		needs: needsOf(p),
		expect: []string{
			"on an affected kernel a bind looks at the owners that there are: with n sockets it costs up to n times the look at one, and all of them together n * n / 2 looks. Elsewhere it costs the same from the first to the last.",
			"Exit status 0: the cost does not grow; 1: it grows; 2: could not run, with the reason.",
		},
	}, t, info)
	b.WriteString("#define _GNU_SOURCE\n")
	parts, includes := lib.selected(p.used)
	for _, inc := range includes {
		fmt.Fprintf(&b, "#include %s\n", inc)
	}
	b.WriteByte('\n')
	for _, part := range parts {
		if part.name == "measure" {
			b.WriteString(kinds + "\n")
		}
		b.WriteString(strings.ReplaceAll(part.text, "NEW_SOCKET(k)", l.newSocketOf()) + "\n")
	}
	b.WriteString("int main(int argc, char **argv)\n{\n")
	for _, c := range p.world {
		b.WriteString("\t" + cCall(c) + ";\n")
	}
	b.WriteString("\treturn measure(argc > 1 ? atoi(argv[1]) : 4000);\n}\n")
	return []byte(b.String()), nil
}

// benchKinds is the table of what is bound, in the order of the trace's binds.
func (l *lowering) benchKinds() (string, error) {
	kinds := "/* What is bound, over and over. */\nstatic const struct kind kinds[] = {\n"
	binds := 0
	socks := make(map[reusecheck.ID]*reusecheck.Op)
	for l.index = range l.p.trace.Steps {
		s := &l.p.trace.Steps[l.index]
		op := &s.Op
		switch {
		case op.Verb == reusecheck.VSocket && !op.HasNet && op.Dev == reusecheck.NoDev &&
			op.Opts&^(reusecheck.ReuseAddr|reusecheck.ReusePort|reusecheck.V6Only) == 0:
			socks[op.Sock] = op
			if op.UID != 0 {
				l.p.used["new_socket_of"] = true
			}
			continue
		case op.Verb != reusecheck.VBind || op.Addr.Port() == 0:
			return "", l.refuse("a timing program repeats sockets without a device, and their binds to a given port")
		case s.Want.Kind == reusecheck.Failed:
			return "", l.refuse("a bind that is refused cannot be repeated")
		}
		k := socks[op.Sock]
		kinds += fmt.Sprintf("\t{ %s, %s, %s, %d, %s, %d },\n", cString(op.Text(l.p.trace.Name)), families[k.Family][0],
			benchOpts(k.Opts), k.UID, cString(address(k.Family, op.Addr.Addr())), op.Addr.Port())
		binds++
	}
	if binds == 0 {
		return "", &Inexpressible{Format: l.p.format, Step: "no bind", Why: "there is nothing to time"}
	}
	for _, op := range socks {
		if op.Family.IsUDP() {
			return "", &Inexpressible{Format: l.p.format, Step: op.Text(l.p.trace.Name), Why: "UDP has no cache whose cost could be timed by binds"}
		}
	}
	return kinds + "};\n", nil
}

func (l *lowering) newSocketOf() string {
	if l.p.used["new_socket_of"] {
		return "new_socket_of(k->uid, k->family, SOCK_STREAM)"
	}
	return "new_socket(k->family, SOCK_STREAM)"
}

func benchOpts(o reusecheck.Opt) string {
	var out []string
	for _, n := range []struct {
		opt  reusecheck.Opt
		name string
	}{{reusecheck.ReuseAddr, "REUSEADDR"}, {reusecheck.ReusePort, "REUSEPORT"}, {reusecheck.V6Only, "V6ONLY"}} {
		if o.Has(n.opt) {
			out = append(out, n.name)
		}
	}
	if out == nil {
		return "0"
	}
	return strings.Join(out, " | ")
}
