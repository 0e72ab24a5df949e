package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	rc "github.com/reusecheck/reusecheck"
)

// socketsFile is what messages call the text of [Sockets].
const socketsFile = "--sockets"

const itemUsage = "FAMILY [ADDR:PORT] [OPTION...] [listen] [connect ADDR:PORT]; ..."

// Sockets makes a trace of a short text: sockets in the order in which they are
// made, separated by ";", each with its address and options:
//
//	tcp4 0.0.0.0:80 reuseaddr listen; tcp4 127.0.0.1:80 reuseaddr
//
// They are called a, b, c. Steps of the trace language may stand between them. An
// address that the modelled host does not have is replaced by one that it has, and
// the notes say so. An error is a [*rc.ParseError] that names the place.
func Sockets(text string) (*rc.Trace, []string, error) {
	p := &socketParser{text: text, standIns: map[netip.Addr]netip.Addr{}}
	if len(text) > rc.DefaultLimits.Bytes {
		return nil, nil, p.errorAt(0, "the text is too long", fmt.Sprintf("at most %d bytes", rc.DefaultLimits.Bytes), "")
	}
	start := 0
	for item := range strings.SplitSeq(text, ";") {
		if err := p.item(item, start); err != nil {
			return nil, nil, err
		}
		start += len(item) + 1
	}
	if len(p.lines) == 0 {
		return nil, nil, p.errorAt(0, "no socket is given", itemUsage, "")
	}
	if p.system == "" {
		p.system = string(rc.TCP)
	}
	header := "system " + p.system + "\n"
	t, err := rc.Parse(socketsFile, []byte(header+strings.Join(p.linesOf(), "\n")+"\n"))
	if err != nil {
		return nil, nil, p.translate(err)
	}
	for i := range t.Steps {
		t.Steps[i].Line = 0 // lines of a text that nobody wrote
	}
	t.File = socketsFile
	return t, p.notes, nil
}

// token is a word of the text and the byte at which it stands.
type token struct {
	text string
	at   int
}

// line is a step with the tokens that it is made of.
type line []token

type socketParser struct {
	text     string
	system   string
	lines    []line
	made     int // sockets
	standIns map[netip.Addr]netip.Addr
	notes    []string
}

func (p *socketParser) linesOf() []string {
	var ls []string
	for _, l := range p.lines {
		var ws []string
		for _, t := range l {
			ws = append(ws, t.text)
		}
		ls = append(ls, strings.Join(ws, " "))
	}
	return ls
}

func (p *socketParser) errorAt(at int, msg, expected, near string) *rc.ParseError {
	return rc.ErrorAt(socketsFile, p.text, at, msg, expected, near)
}

func tokens(item string, start int) []token {
	var ts []token
	for i := 0; i < len(item); {
		n := strings.IndexFunc(item[i:], func(r rune) bool { return !strings.ContainsRune(" \t\r\n", r) })
		if n < 0 {
			break
		}
		i += n
		n = strings.IndexAny(item[i:], " \t\r\n")
		if n < 0 {
			n = len(item) - i
		}
		ts = append(ts, token{item[i : i+n], start + i})
		i += n
	}
	return ts
}

// families, and what else may stand at the start of an item or among a socket's words.
var (
	families = []string{"tcp4", "tcp6", "udp4", "udp6"}
	words    = []string{"listen", "connect", "reuseaddr", "reuseport", "v6only", "no-port", "transparent", "uid", "dev", "range"}
)

// item reads one socket, or one step of the trace language.
func (p *socketParser) item(item string, start int) error {
	ts := tokens(item, start)
	if len(ts) == 0 {
		return nil // a ; at the end
	}
	first := ts[0]
	var verbs []string
	for _, v := range rc.Verbs() {
		verbs = append(verbs, v.String())
		if v.String() == first.text && v != rc.VSocket {
			if v == rc.VSend && p.system == "" {
				p.system = string(rc.UDP)
			}
			for i := range ts[1:] {
				p.local(&ts[i+1])
			}
			p.lines = append(p.lines, line(ts))
			return nil
		}
	}
	for _, f := range families {
		if f == first.text {
			return p.socket(ts)
		}
	}
	return p.errorAt(first.at, fmt.Sprintf("unknown family or step %q", first.text),
		strings.Join(families, ", ")+", or a step such as close a", rc.Nearest(first.text, append(families[:len(families):len(families)], verbs...)))
}

func (p *socketParser) socket(ts []token) error {
	system := ts[0].text[:3]
	if p.system == "" {
		p.system = system
	}
	if p.system != system {
		return p.errorAt(ts[0].at, fmt.Sprintf("a %s socket among %s sockets", system, p.system), "sockets of one protocol: TCP and UDP ports are apart", "")
	}
	name := token{rc.ID(p.made).String(), ts[0].at}
	p.made++
	made := line{{"socket", ts[0].at}, name, ts[0]}
	var after []line
	bound := false
	for i := 1; i < len(ts); i++ {
		t := ts[i]
		key, _, _ := strings.Cut(t.text, "=")
		switch {
		case t.text == "listen":
			after = append(after, line{{"listen", t.at}, name})
		case t.text == "connect":
			if i+1 == len(ts) {
				return p.errorAt(t.at+len(t.text), "the address to connect to is missing", "connect ADDR:PORT", "")
			}
			i++
			p.local(&ts[i])
			after = append(after, line{{"connect", t.at}, name, ts[i]})
		case strings.ContainsAny(t.text, ":.[") && key == t.text:
			if bound {
				return p.errorAt(t.at, "a second address", "one ADDR:PORT a socket, or ; before the next socket", "")
			}
			bound = true
			p.local(&t)
			after = append([]line{{{"bind", t.at}, name, t}}, after...)
		case slices.Contains(families, t.text):
			return p.errorAt(t.at, fmt.Sprintf("the socket before %s has no end", t.text), "; before the next socket", "")
		case !slices.Contains(words, key):
			return p.errorAt(t.at, fmt.Sprintf("unknown word %q", t.text), "ADDR:PORT, an option, listen or connect ADDR:PORT", rc.Nearest(key, words))
		default:
			made = append(made, t)
		}
	}
	p.lines = append(append(p.lines, made), after...)
	return nil
}

// The addresses of the modelled host that can stand for others.
var spare6 = []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")}

// local puts an address of the modelled host in the place of one that it has not.
func (p *socketParser) local(t *token) {
	ap, err := netip.ParseAddrPort(t.text)
	a := ap.Addr()
	if err != nil || a.Zone() != "" {
		return // the parser says what is wrong
	}
	plain := a.Unmap()
	if plain.IsUnspecified() || plain.IsLoopback() || slices.Contains(spare6, plain) || plain.IsMulticast() {
		return
	}
	to, ok := p.standIns[plain]
	if !ok {
		four, six := 0, 0
		for k := range p.standIns {
			if k.Is4() {
				four++
			} else {
				six++
			}
		}
		switch {
		case plain.Is4():
			to = netip.AddrFrom4([4]byte{127, 1, byte(four >> 8), byte(four + 1)})
		case six < len(spare6):
			to = spare6[six]
		default:
			return // the model has no other: it says that the address is not local
		}
		p.standIns[plain] = to
		p.notes = append(p.notes, fmt.Sprintf("%s stands for %s: the modelled host has 127.0.0.0/8, ::1, fd00::1 and fd00::2.", to, plain))
	}
	if a.Is4In6() {
		to = netip.AddrFrom16(to.As16())
	}
	t.text = netip.AddrPortFrom(to, ap.Port()).String()
}

// translate moves an error from the lines that were made to the text as given.
func (p *socketParser) translate(err error) error {
	var e *rc.ParseError
	if !errors.As(err, &e) || e.Line < 2 || e.Line-2 >= len(p.lines) {
		return err
	}
	l := p.lines[e.Line-2]
	at, col := l[len(l)-1].at+len(l[len(l)-1].text), 1
	for _, t := range l {
		end := col + utf8.RuneCountInString(t.text)
		if e.Column < end {
			at = min(t.at+max(0, e.Column-col), len(p.text))
			break
		}
		col = end + 1
	}
	return p.errorAt(at, e.Msg, e.Expected, e.Suggestion)
}
