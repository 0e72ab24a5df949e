package reusecheck

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// traceOptions compare traces as what they say: where they stand is no part of it.
var traceOptions = cmp.Options{
	cmpopts.EquateComparable(netip.AddrPort{}),
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(Trace{}, "File"), cmpopts.IgnoreUnexported(Trace{}),
	cmpopts.IgnoreFields(Step{}, "Line"),
}

// difference says how two traces differ, "" when they do not. cmp is slow: a
// fuzzer can ask it only when there is something to say.
func difference(a, b *Trace) string {
	place := func(t *Trace) *Trace {
		t = t.Clone()
		t.File = ""
		for i := range t.Steps {
			t.Steps[i].Line = 0
		}
		return t
	}
	if reflect.DeepEqual(place(a), place(b)) {
		return ""
	}
	return cmp.Diff(a, b, traceOptions)
}

// unbounded lets a fuzzer's long trace through.
var unbounded = Limits{Bytes: 1 << 30, Sockets: 1 << 20}

// FuzzParse shows, for any text: parsing never panics; an error has a place
// within the text; what parses is valid, prints as what was written but for
// comments and spelling, and that parses to the same trace and prints the same.
func FuzzParse(f *testing.F) {
	for _, s := range seedTexts(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := Parse("fuzz", []byte(text))
		if err != nil {
			checkPlace(t, text, err)
			return
		}
		if err := trace.Validate(); err != nil {
			t.Fatalf("a trace that parses is not valid: %v", err)
		}
		printed := trace.String()
		if written, now := loose(text), loose(printed); !slices.Equal(written, now) {
			diff := cmp.Diff(written, now)
			t.Fatalf("printing changes what was written (-written +printed):\n%s", diff)
		}
		again, err := ParseWithin("fuzz", []byte(printed), unbounded)
		if err != nil {
			t.Fatalf("the printed text does not parse: %v\n%s", err, printed)
		}
		if diff := difference(trace, again); diff != "" {
			t.Fatalf("printing and parsing gives another trace (-first +second):\n%s", diff)
		}
		if again.String() != printed {
			t.Fatalf("printing is no fixpoint:\n%s\n%s", printed, again)
		}
	})
}

func checkPlace(t *testing.T, text string, err error) {
	t.Helper()
	e, ok := err.(*ParseError)
	if !ok {
		t.Fatalf("error %v is a %T", err, err)
	}
	lines := strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n")
	if e.Line < 1 || e.Line > len(lines) {
		t.Fatalf("line %d of %d: %v", e.Line, len(lines), err)
	}
	if n := len([]rune(strings.TrimSuffix(lines[e.Line-1], "\r"))); e.Column < 1 || e.Column > n+1 {
		t.Fatalf("column %d of %d: %v", e.Column, n, err)
	}
	if prefix := fmt.Sprintf("fuzz:%d:%d: ", e.Line, e.Column); !strings.HasPrefix(err.Error(), prefix) || e.Msg == "" {
		t.Fatalf("error %q does not begin with %q and say something", err, prefix)
	}
}

// loose is a text without comments, spacing and the freedoms of spelling that
// the trace language names: the order of headers and of a socket's options, the
// spelling of addresses, uid=0. It is written without the parser.
func loose(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		words := strings.Fields(line)
		if len(words) > 0 && (words[0] == "title" || words[0] == "source") {
			if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '#' }); i >= 0 {
				words = words[:i]
			}
			lines = append(lines, strings.Join(words, " "))
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		words = strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == "kernels":
			words = []string{"kernels", strings.Join(words[1:], "")}
		case words[0] == "socket":
			end := slices.IndexFunc(words, func(w string) bool { return w == "=>" || w == "oracle" })
			if end < 0 {
				end = len(words)
			}
			attributes := slices.DeleteFunc(slices.Clone(words[3:end]), func(w string) bool { return w == "uid=0" })
			slices.Sort(attributes)
			words = slices.Concat(words[:3], attributes, words[end:])
		}
		for i, w := range words {
			words[i] = looseAddress(w)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	headers := 0
	for headers < len(lines) && slices.ContainsFunc(headerNames[:], func(h string) bool { return strings.HasPrefix(lines[headers], h+" ") }) {
		headers++
	}
	slices.SortStableFunc(lines[:headers], func(a, b string) int {
		a, _, _ = strings.Cut(a, " ")
		b, _, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return lines
}

func looseAddress(w string) string {
	if a, err := netip.ParseAddrPort(w); err == nil {
		return a.String()
	}
	if strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") {
		if a, err := netip.ParseAddr(w[1 : len(w)-1]); err == nil {
			return "[" + a.String() + "]"
		}
	}
	return w
}

// FuzzRoundTrip shows, for valid traces that a program makes: they are valid,
// printing and parsing gives the same trace, and printing that the same text.
func FuzzRoundTrip(f *testing.F) {
	for seed := range byte(16) {
		script := make([]byte, 20+20*int(seed))
		for i := range script {
			script[i] = seed*31 + byte(i*i)>>1 ^ byte(i)*(seed+7)
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		trace := buildTrace(script)
		if err := trace.Validate(); err != nil {
			t.Fatalf("%v\n%s", err, trace)
		}
		printed := trace.String()
		again, err := ParseWithin("fuzz", []byte(printed), unbounded)
		if err != nil {
			t.Fatalf("the printed text does not parse: %v\n%s", err, printed)
		}
		if diff := difference(filledIn(trace), again); diff != "" {
			t.Fatalf("printing and parsing gives another trace (-built +parsed):\n%s\n%s", diff, printed)
		}
		if again.String() != printed {
			t.Fatalf("printing is no fixpoint:\n%s\n%s", printed, again)
		}
	})
}

// filledIn is the trace with what a program may leave out.
func filledIn(t *Trace) *Trace {
	t = t.Clone()
	if t.Config.System == "" {
		t.Config.System = TCP
	}
	for i := range t.Steps {
		if id, ok := t.Steps[i].Op.Defines(); ok && int(id) == len(t.Names) {
			t.Names = append(t.Names, id.String())
		}
	}
	return t
}

// The builder's draws, from a script of bytes that ends in zeros.
type draws struct{ script []byte }

func (d *draws) n(n int) int {
	if len(d.script) == 0 {
		return 0
	}
	b := d.script[0]
	d.script = d.script[1:]
	return int(b) % n
}

func (d *draws) yes() bool { return d.n(2) == 1 }

func pick[T any](d *draws, from ...T) T { return from[d.n(len(from))] }

// traceBuilder makes valid traces; it keeps its own books of what is alive.
type traceBuilder struct {
	draws
	t                            *Trace
	live, connected, waiting, ns []ID
	sockets                      []ID
	home                         map[ID]ID // a socket's namespace
	next                         ID
}

func buildTrace(script []byte) *Trace {
	b := &traceBuilder{draws: draws{script}, t: &Trace{}, home: map[ID]ID{}}
	t := b.t
	t.Title = pick(&b.draws, "", "a", "two  words", "a#b – ü", "\u00a0")
	t.Source = pick(&b.draws, "", "https://example.org/#x", "title")
	t.Kernels, _ = ParseKernels(pick(&b.draws, "all", "6.1", "6.8-,-5.4", "6.18+x-y,all", "all,6.1"))
	t.StatesAll = t.Kernels == KernelSet{} && b.yes()
	t.Config.System = pick(&b.draws, TCP, UDP, TimeWaitExit, "")
	t.StatesTCP = t.Config.system() == TCP && b.yes()
	t.Config.Ports = pick(&b.draws, PortRange{}, PortRange{1, 1}, PortRange{40000, 65535})
	for range b.n(3) {
		t.Config.Sysctl = append(t.Config.Sysctl, Sysctl{pick(&b.draws, "a.b", "x/y-z"), pick(&b.draws, "1", "a=b c", "\"q\" ~")})
	}
	named := b.yes()
	for len(b.script) > 0 {
		b.step()
	}
	for id := range b.next {
		if named {
			t.Names = append(t.Names, fmt.Sprintf("%s%d", pick(&b.draws, "n-", "E", "Z_"), id))
		}
	}
	return t
}

// step appends one step that is valid now, or none.
func (b *traceBuilder) step() {
	op, ok := b.operation()
	if !ok {
		return
	}
	s := Step{Op: op, Want: b.answer(op)}
	if o := b.answer(op); b.yes() && !o.Matches(s.Want) && o.Kind != Unstated {
		s.Oracle = o
	}
	if s.Want.Kind == Unstated && b.yes() {
		s.Oracle = b.answer(op)
	}
	if id, defines := op.Defines(); defines {
		b.next++
		switch op.Verb {
		case VNetns:
			b.ns = append(b.ns, id)
		case VInherit:
			b.connected = append(b.connected, id)
			fallthrough
		default:
			b.live = append(b.live, id)
			b.sockets = append(b.sockets, id)
			if n, in := b.home[op.Sock]; op.Verb == VInherit && in {
				b.home[id] = n
			} else if op.HasNet {
				b.home[id] = op.Net
			}
		}
	}
	b.t.Steps = append(b.t.Steps, s)
}

func (b *traceBuilder) operation() (Op, bool) {
	system := b.t.Config.system()
	verb := pick(&b.draws, Verbs()...)
	switch verb {
	case VSocket:
		return b.socket(system), true
	case VSend:
		return SendOn(b.address(), b.address(), Dev(b.n(4)), b.processor(system)), system == UDP
	case VNetns:
		return NewNetnsWith(b.next, pick(&b.draws, TableAsSet, SharedTable, OwnTable)), system == TimeWaitExit
	case VExit:
		return b.exit()
	case VExpire:
		id, ok := b.take(&b.waiting)
		return Expire(id), ok
	case VTimeWait:
		if system == UDP {
			return Op{}, false
		}
		id, ok := b.take(&b.connected)
		b.forget(id)
		if ok {
			b.waiting = append(b.waiting, id)
		}
		return LeaveTimeWait(id), ok
	}
	if len(b.live) == 0 {
		return Op{}, false
	}
	return b.onLive(verb, pick(&b.draws, b.live...), system)
}

func (b *traceBuilder) onLive(verb Verb, id ID, system System) (Op, bool) {
	switch verb {
	case VBind:
		return Bind(id, b.address()), true
	case VConnect:
		if system != UDP && !slices.Contains(b.connected, id) {
			b.connected = append(b.connected, id)
		}
		return Connect(id, b.address()), true
	case VInherit:
		at := b.address()
		return InheritOn(id, b.next, at, b.processor(system)), system != UDP && !at.Addr().Unmap().IsUnspecified()
	case VSet:
		return b.set(id, system), true
	case VListen:
		return Listen(id), true
	case VClose:
		b.forget(id)
		return Close(id), true
	}
	b.connected = slices.DeleteFunc(b.connected, func(c ID) bool { return c == id })
	if verb == VShutdown {
		return Shutdown(id), true
	}
	return Disconnect(id), true
}

func (b *traceBuilder) set(id ID, system System) Op {
	switch b.n(4) {
	case 3:
		if system == TCP {
			return SetProcessor(id, b.processor(system))
		}
		fallthrough
	case 0:
		return SetOption(id, pick(&b.draws, OptNames...).Opt, b.yes())
	case 1:
		return SetOwner(id, b.uid())
	}
	return SetDevice(id, Dev(b.n(4)))
}

func (b *traceBuilder) socket(system System) Op {
	f := pick(&b.draws, TCP4, TCP6)
	if system == UDP {
		f += UDP4 - TCP4
	}
	op := NewSocket(b.next, f, Opt(b.n(int(allOpts)+1)))
	op.UID = b.uid()
	op.Dev = Dev(b.n(4))
	op.CPU = b.processor(system)
	op.Range = pick(&b.draws, PortRange{}, PortRange{1, 65535}, PortRange{7, 7})
	if len(b.ns) > 0 && b.yes() {
		op.HasNet, op.Net = true, pick(&b.draws, b.ns...)
	}
	return op
}

func (b *traceBuilder) exit() (Op, bool) {
	var batch []ID
	for range b.n(3) + 1 {
		if id, ok := b.take(&b.ns); ok {
			batch = append(batch, id)
		}
	}
	for id, n := range b.home {
		if slices.Contains(batch, n) {
			b.forget(id)
		}
	}
	return Exit(batch...), len(batch) > 0
}

// take removes one of the IDs.
func (b *traceBuilder) take(from *[]ID) (ID, bool) {
	if len(*from) == 0 {
		return NoID, false
	}
	i := b.n(len(*from))
	id := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return id, true
}

func (b *traceBuilder) forget(id ID) {
	gone := func(o ID) bool { return o == id }
	b.live = slices.DeleteFunc(b.live, gone)
	b.connected = slices.DeleteFunc(b.connected, gone)
	b.waiting = slices.DeleteFunc(b.waiting, gone)
}

func (b *traceBuilder) processor(system System) CPU {
	if system == TimeWaitExit {
		return NoCPU
	}
	return pick(&b.draws, NoCPU, Processor(0), Processor(1), Processor(MaxProcessor))
}

func (b *traceBuilder) uid() uint32 { return pick[uint32](&b.draws, 0, 1001, 1<<32-1) }

func (b *traceBuilder) address() netip.AddrPort {
	a := netip.MustParseAddr(pick(&b.draws, "0.0.0.0", "127.0.0.1", "::", "::1", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "2001:db8::1:0:0:1"))
	return netip.AddrPortFrom(a, pick[uint16](&b.draws, 0, 1, 40000, 65535))
}

func (b *traceBuilder) answer(op Op) Answer {
	fail := Fail(pick(&b.draws, EADDRINUSE, EBADF, EINPROGRESS))
	if b.n(3) == 0 {
		return Answer{}
	}
	if b.n(3) == 0 {
		return fail
	}
	switch op.Verb {
	case VBind, VListen, VConnect:
		return pick(&b.draws, Success, Picked(1), Picked(65535))
	case VSend:
		if len(b.sockets) > 0 && b.yes() {
			return Answer{Kind: Received, Who: pick(&b.draws, b.sockets...)}
		}
		return Answer{Kind: Nobody}
	case VInherit:
		if who := pick(&b.draws, b.sockets...); who != op.Sock {
			return Answer{Kind: Received, Who: who}
		}
	case VExit:
		return Answer{Kind: Exited, Walks: int32(b.n(256)) << 23, Left: int32(b.n(3))}
	}
	return Success
}

// seedTexts are the inputs of the text-driven tests and the canonical files.
func seedTexts(f *testing.F) (texts []string) {
	for _, pattern := range []string{"testdata/errors/*.txt", "testdata/canonical/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no file matches %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			for c := range strings.SplitSeq(string(text), "====\n") {
				input, _, _ := strings.Cut(c, "----\n")
				texts = append(texts, input)
			}
		}
	}
	return texts
}
