package reusecheck

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bounds what a trace may hold. A field that is not positive stands for
// the one of [DefaultLimits].
type Limits struct {
	Bytes   int // of text
	Sockets int // that socket and inherit define
}

// DefaultLimits are those of [Parse] and [ParseFile]: 1 MiB and 1,000 sockets.
var DefaultLimits = Limits{Bytes: 1 << 20, Sockets: 1000}

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Sockets <= 0 {
		l.Sockets = DefaultLimits.Sockets
	}
	return l
}

// Parse reads a trace. file is its name in messages and in Trace.File. An error
// is a [*ParseError]; there is no trace then.
//
// # Text
//
// The text is UTF-8. Lines end in LF or CRLF, a byte order mark at the start is
// skipped, words are separated by spaces and tabs. Other control characters are
// errors wherever they stand. A # begins a comment that ends with the line; in
// a title or source, which may hold an address with a fragment, it does only at
// the start or after a blank.
//
// # Headers
//
// Headers stand before the first step, each at most once, in any order:
//
//	title    TEXT
//	source   TEXT
//	kernels  SET          see KernelSet; all by default
//	system   tcp          or udp, timewait; tcp by default
//	ports    LO-HI        the automatic port range
//	sysctl   NAME VALUE   repeatable; the value is the rest of the line
//
// # Steps
//
// A step is VERB ARGS [=> RESULT] [oracle RESULT]. A trace may have none.
//
//	socket NAME tcp4|tcp6|udp4|udp6 [v6only] [reuseaddr] [reuseport] [no-port]
//	       [transparent] [uid=N] [dev=DEV] [cpu=N] [netns=NAME] [range=LO-HI]
//	bind NAME ADDR:PORT
//	listen NAME
//	connect NAME ADDR:PORT [unaccepted]
//	inherit LISTENER CHILD ADDR[:PORT] [cpu=N]
//	set NAME OPTION=on|off, set NAME uid=N, set NAME dev=DEV, set NAME cpu=N
//	shutdown NAME
//	disconnect NAME
//	close NAME
//	timewait NAME
//	expire NAME
//	send ADDR:PORT -> ADDR:PORT [dev=DEV] [cpu=N]
//	netns NAME [table=own|shared]
//	exit NAME[,NAME...]
//
// A name is an ASCII letter and then letters, digits, _ or -, but no word that
// reads as a result: ok, none, oracle and the errors' symbols. DEV is lo, d1 or
// d2; set NAME dev=none takes the socket off its device. An IPv6 address stands
// in brackets, in an inherit without a port too. Numbers are decimal without
// leading zeros. An unaccepted connection stays in its listener's queue and is
// reset when the listener stops; without the word its other end is accepted at
// once. A socket that connects to itself has no other end: it is an owner once,
// nothing of it waits, and its timewait leaves one entry.
//
// The cpu=N of a socket is SO_INCOMING_CPU: it wants the connections or datagrams
// that arrive on processor N, from 0 to 1023, and set NAME cpu=none takes that back.
// The cpu=N of an inherit or a send is the processor that the connection or the
// datagram arrives on; without it nobody says which. Both are of systems tcp and udp.
//
// The table= of a netns says whether the namespace gets a table of connections of
// its own or the one that all share; without it the sysctl tcp_child_ehash_entries
// does. One of its own has the slots that this sysctl says, or else 64.
//
// A result is ok or an error's symbol; of bind, listen and connect also ok PORT,
// the port that was picked; of send, instead of ok, the receiver's name or none;
// of exit, instead of ok, ok walks=N left=M; of inherit also the name of another
// listener that took the connection.
//
// What a step must fulfil beyond its form is with [Trace.Validate]; Parse
// checks it too.
//
// # Canonical text
//
// [Trace.String] prints headers in the order above, padded to nine columns, then
// an empty line and the steps with single spaces. Options and attributes stand
// in the order above, addresses in their shortest form; uid=0 is left out.
// "kernels all" and "system tcp" are printed if they were written. A canonical
// text without comments is printed as it stands, and printing any valid trace
// and parsing that gives the same trace.
func Parse(file string, text []byte) (*Trace, error) {
	return ParseWithin(file, text, DefaultLimits)
}

// ParseFile reads the trace in the file at path, see [Parse]. An error that is
// no [*ParseError] comes from reading the file.
func ParseFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed tells a full file from one that is too long.
	text, err := io.ReadAll(io.LimitReader(f, int64(DefaultLimits.Bytes)+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// ParseWithin is [Parse] with other limits.
func ParseWithin(file string, text []byte, limits Limits) (*Trace, error) {
	p := &parser{file: file, limits: limits.orDefault(), ids: make(map[string]ID), t: &Trace{File: file}}
	p.t.Config.System = TCP
	rest := string(text)
	if p.limits.Bytes < len(rest) {
		return nil, p.tooLong(rest)
	}
	for rest = strings.TrimPrefix(rest, "\uFEFF"); rest != ""; {
		p.line, rest, _ = strings.Cut(rest, "\n")
		p.line = strings.TrimSuffix(p.line, "\r")
		p.lineNo++
		if err := p.parseLine(); err != nil {
			return nil, err
		}
	}
	return p.t, nil
}

// MustParse is [Parse] for tests and examples: it panics on an error.
func MustParse(text string) *Trace {
	t, err := Parse("", []byte(text))
	if err != nil {
		panic(err)
	}
	return t
}

// parser reads one trace, line by line.
type parser struct {
	file    string
	limits  Limits
	t       *Trace
	ids     map[string]ID
	defined []int // the line of each definition
	sockets int
	check   *checker // from the first step on, when the system is known

	line   string
	lineNo int
	seen   [len(headerNames)]int // the line of each header, 0 for none

	words   []word // of the step, what is left to read
	at      [numParts]int
	batchAt []int
}

// word is a part of a line and the byte at which it begins.
type word struct {
	text string
	at   int
}

// errorAt makes the error of the line's byte at.
func (p *parser) errorAt(at int, msg, expected string, near ...string) *ParseError {
	e := ErrorAt(p.file, p.line, at, msg, expected, near...)
	e.Line = p.lineNo
	return e
}

func (p *parser) tooLong(text string) error {
	const quoted = 200 // of a line that may be the whole text
	within := text[:p.limits.Bytes]
	start := strings.LastIndexByte(within, '\n') + 1
	p.lineNo = 1 + strings.Count(within, "\n")
	p.line = within[max(start, len(within)-quoted):]
	err := p.errorAt(len(p.line), fmt.Sprintf("the trace is too long: more than %d bytes", p.limits.Bytes), "a shorter trace (only a program that reads it may set other Limits)")
	err.Column = utf8.RuneCountInString(within[start:]) + 1
	err.Text = ""
	return err
}

// parseLine reads one line: blank, a comment, a header or a step.
func (p *parser) parseLine() error {
	if err := p.checkCharacters(); err != nil {
		return err
	}
	start := len(p.line) - len(strings.TrimLeft(p.line, blanks))
	first := p.line[start:]
	if i := strings.IndexAny(first, blanks+"#"); i >= 0 {
		first = first[:i]
	}
	if first == "" {
		return nil
	}
	if h := headerIndex(first); h >= 0 {
		if err := p.header(h, word{first, start}); err != nil {
			return err
		}
		return nil
	}
	if err := p.step(); err != nil {
		return err
	}
	return nil
}

const blanks = " \t"

func (p *parser) checkCharacters() error {
	for i, r := range p.line {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(p.line[i:], string(utf8.RuneError)):
			return p.errorAt(i, fmt.Sprintf("the byte 0x%02X is not UTF-8", p.line[i]), "a trace in UTF-8")
		case unicode.IsControl(r) && r != '\t':
			return p.errorAt(i, fmt.Sprintf("control character %U", r), "text, spaces and tabs, lines that end in LF or CRLF")
		}
	}
	return nil
}

// plain is the line without its comment; outside free text nothing but ASCII
// is expected, and what looks like a blank may not be one.
func (p *parser) plain() (string, *ParseError) {
	s, _, _ := strings.Cut(p.line, "#")
	for i, r := range s {
		if r > unicode.MaxASCII {
			return "", p.errorAt(i, fmt.Sprintf("character %U outside ASCII", r), "ASCII outside of titles, sources and comments")
		}
	}
	return s, nil
}

// header names in the order in which they are printed.
var headerNames = [...]string{"title", "source", "kernels", "system", "ports", "sysctl"}

const (
	hTitle = iota
	hSource
	hKernels
	hSystem
	hPorts
	hSysctl
)

var headerUsage = [...]string{
	hTitle: "title TEXT", hSource: "source TEXT", hKernels: "kernels SET such as all, 6.1, 6.8-, -6.7, 6.1-6.7 or 6.18+first-bind-fix",
	hSystem: "system tcp, udp or timewait", hPorts: "ports LO-HI", hSysctl: "sysctl NAME VALUE",
}

var systemNames = []string{string(TCP), string(UDP), string(TimeWaitExit)}

func headerIndex(s string) int {
	for i, n := range headerNames {
		if n == s {
			return i
		}
	}
	return -1
}

// header reads a header line that begins with key.
func (p *parser) header(h int, key word) *ParseError {
	switch first := p.seen[h]; {
	case p.check != nil:
		return p.errorAt(key.at, fmt.Sprintf("header %s after the first step", key.text), "headers before the first step")
	case first != 0 && h != hSysctl:
		return p.errorAt(key.at, fmt.Sprintf("header %s is given twice, first in line %d", key.text, first), "")
	}
	p.seen[h] = p.lineNo
	v, err := p.value(h, key)
	if err != nil {
		return err
	}
	p.t.headers = append(p.t.headers, header{key.text, v.text, *p.errorAt(v.at, "", "")})
	switch h {
	case hTitle:
		p.t.Title = v.text
	case hSource:
		p.t.Source = v.text
	case hKernels:
		text, off, msg := parseKernels(v.text)
		if msg != "" {
			element, _, _ := strings.Cut(v.text[off:], ",")
			return p.errorAt(v.at+off, msg, headerUsage[hKernels], nearest(element, []string{"all"}))
		}
		p.t.Kernels = kernelSet(text)
		p.t.StatesAll = p.t.Kernels == KernelSet{}
	case hSystem:
		return p.system(v)
	case hPorts:
		p.t.Config.Ports, err = p.portRange(v)
	case hSysctl:
		return p.sysctl(v)
	}
	return err
}

// value is what follows the header's name, without a comment.
func (p *parser) value(h int, key word) (word, *ParseError) {
	line, at := p.line, key.at+len(key.text)
	if h == hTitle || h == hSource {
		for i := at; i < len(line); i++ {
			if line[i] == '#' && (i == at || strings.IndexByte(blanks, line[i-1]) >= 0) {
				line = line[:i]
			}
		}
	} else {
		var err *ParseError
		if line, err = p.plain(); err != nil {
			return word{}, err
		}
	}
	text := strings.TrimLeft(line[at:], blanks)
	at = len(line) - len(text)
	if text = strings.TrimRight(text, blanks); text == "" {
		return word{}, p.errorAt(key.at+len(key.text), fmt.Sprintf("header %s has no value", key.text), headerUsage[h])
	}
	if h == hTitle || h == hSource {
		text = strings.ReplaceAll(text, "\t", " ")
	}
	return word{text, at}, nil
}

func (p *parser) system(v word) *ParseError {
	for _, s := range systemNames {
		if s == v.text {
			p.t.Config.System = System(s)
			p.t.StatesTCP = s == string(TCP)
			return nil
		}
	}
	return p.errorAt(v.at, fmt.Sprintf("unknown system %q", v.text), headerUsage[hSystem], nearest(v.text, systemNames))
}

func (p *parser) sysctl(v word) *ParseError {
	name, value := v.text, ""
	if i := strings.IndexAny(v.text, blanks); i >= 0 {
		name, value = v.text[:i], strings.Join(strings.Fields(v.text[i:]), " ")
	}
	if value == "" {
		return p.errorAt(v.at+len(name), fmt.Sprintf("sysctl %s has no value", name), headerUsage[hSysctl])
	}
	s := Sysctl{Name: name, Value: value}
	if msg := badSysctl(s); msg != "" {
		return p.errorAt(v.at, msg, "")
	}
	p.t.Config.Sysctl = append(p.t.Config.Sysctl, s)
	return nil
}
