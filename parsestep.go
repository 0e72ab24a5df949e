package reusecheck

import (
	"fmt"
	"slices"
	"strings"
)

var stepUsage = [...]string{
	VSocket:     "socket NAME FAMILY OPTION...",
	VBind:       "bind NAME ADDR:PORT",
	VListen:     "listen NAME",
	VConnect:    "connect NAME ADDR:PORT [unaccepted]",
	VInherit:    "inherit LISTENER CHILD ADDR[:PORT] [cpu=N]",
	VSet:        "set NAME OPTION=on|off, uid=N, dev=DEV or cpu=N",
	VShutdown:   "shutdown NAME",
	VDisconnect: "disconnect NAME",
	VClose:      "close NAME",
	VTimeWait:   "timewait NAME",
	VExpire:     "expire NAME",
	VSend:       "send ADDR:PORT -> ADDR:PORT [dev=DEV] [cpu=N]",
	VNetns:      "netns NAME [table=own|shared]",
	VExit:       "exit NAME[,NAME...]",
}

// step reads the line as a step.
func (p *parser) step() *ParseError {
	if err := p.split(); err != nil {
		return err
	}
	first := p.words[0]
	v := slices.Index(verbNames[:], first.text)
	if v <= 0 {
		return p.unknownStep(first)
	}
	if p.check == nil {
		p.check = newChecker(p.t.Config.System, p.t.Name)
	}
	p.words = p.words[1:]
	p.at = [numParts]int{partVerb: first.at}
	s := Step{Op: Op{Verb: Verb(v)}, Line: p.lineNo}
	if err := p.operation(&s.Op); err != nil {
		return err
	}
	if err := p.results(&s); err != nil {
		return err
	}
	if f := p.check.step(&s, len(p.t.Steps)); f != nil {
		at := p.at[f.part]
		if f.part == partBatch {
			at = p.batchAt[f.index]
		}
		return p.errorAt(at, f.msg, "")
	}
	p.t.Steps = append(p.t.Steps, s)
	return nil
}

// split cuts the line without its comment into words.
func (p *parser) split() *ParseError {
	s, err := p.plain()
	if err != nil {
		return err
	}
	p.words = p.words[:0]
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		start := i
		for i < len(s) && s[i] != ' ' && s[i] != '\t' {
			i++
		}
		p.words = append(p.words, word{s[start:i], start})
	}
	return nil
}

func (p *parser) unknownStep(first word) *ParseError {
	known := verbNames[VSocket:]
	what := "step"
	if p.check == nil {
		known = append(slices.Clone(known), headerNames[:]...)
		what = "header or step"
	}
	return p.errorAt(first.at, fmt.Sprintf("unknown %s %q", what, first.text), "one of "+strings.Join(known, ", "), nearest(first.text, known))
}

// next takes a word of the operation, not one of its results.
func (p *parser) next(v Verb, what string) (word, *ParseError) {
	if len(p.words) == 0 || p.resultsBegin() {
		var at int
		if s, _ := p.plain(); len(p.words) == 0 {
			at = len(strings.TrimRight(s, blanks))
		} else {
			at = p.words[0].at
		}
		return word{}, p.errorAt(at, fmt.Sprintf("%s is missing", what), stepUsage[v])
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, nil
}

func (p *parser) resultsBegin() bool {
	return len(p.words) > 0 && (p.words[0].text == "=>" || p.words[0].text == "oracle")
}

// operation reads the arguments of op's verb.
func (p *parser) operation(op *Op) (err *ParseError) {
	switch op.Verb {
	case VSend:
		return p.send(op)
	case VExit:
		return p.batch(op)
	case VSocket, VNetns:
		op.Sock, err = p.define(op.Verb, "a new name")
	default:
		op.Sock, err = p.use(op.Verb)
	}
	if err != nil {
		return err
	}
	switch op.Verb {
	case VSocket:
		return p.socket(op)
	case VBind, VConnect:
		w, err := p.next(op.Verb, "ADDR:PORT")
		if err != nil {
			return err
		}
		if op.Addr, err = p.addrPort(w, true); err != nil {
			return err
		}
		if op.Verb == VConnect && len(p.words) > 0 && p.words[0].text == "unaccepted" {
			op.Unaccepted, p.words = true, p.words[1:]
		}
		return nil
	case VInherit:
		return p.inherit(op)
	case VNetns:
		return p.netns(op)
	case VSet:
		return p.setting(op)
	}
	return nil
}

// nextName takes a word that should be a name; oracle is none in its place.
func (p *parser) nextName(v Verb, what string) (word, *ParseError) {
	if len(p.words) > 0 && p.words[0].text == "oracle" {
		return word{}, p.errorAt(p.words[0].at, badName("oracle"), stepUsage[v])
	}
	return p.next(v, what)
}

// define takes a new name; the ID it gets is the next one.
func (p *parser) define(v Verb, what string) (ID, *ParseError) {
	w, err := p.nextName(v, what)
	if err != nil {
		return 0, err
	}
	if msg := badName(w.text); msg != "" {
		return 0, p.errorAt(w.at, msg, "")
	}
	if id, dup := p.ids[w.text]; dup {
		return 0, p.errorAt(w.at, fmt.Sprintf("%s is defined twice, first in line %d", w.text, p.defined[id]), "a name that is not in use")
	}
	if v != VNetns {
		if p.sockets++; p.sockets > p.limits.Sockets {
			return 0, p.errorAt(w.at, fmt.Sprintf("too many sockets: more than %d", p.limits.Sockets), "a shorter trace (only a program that reads it may set other Limits)")
		}
	}
	id := ID(len(p.t.Names))
	p.ids[w.text] = id
	p.defined = append(p.defined, p.lineNo)
	p.t.Names = append(p.t.Names, w.text)
	return id, nil
}

// use takes a name that was defined before.
func (p *parser) use(v Verb) (ID, *ParseError) {
	w, err := p.nextName(v, "a name")
	if err != nil {
		return 0, err
	}
	p.at[partSock] = w.at
	return p.lookup(w)
}

func (p *parser) lookup(w word) (ID, *ParseError) {
	if id, ok := p.ids[w.text]; ok {
		return id, nil
	}
	if msg := badName(w.text); msg != "" {
		return 0, p.errorAt(w.at, msg, "", nearest(w.text, p.t.Names))
	}
	return 0, p.errorAt(w.at, fmt.Sprintf("%s is not defined", w.text), "a name that a socket, inherit or netns before this line defines", nearest(w.text, p.t.Names))
}

// netns reads which table of connections a namespace gets.
func (p *parser) netns(op *Op) *ParseError {
	if len(p.words) == 0 || p.resultsBegin() {
		return nil
	}
	w, _ := p.next(VNetns, "table=own or table=shared")
	key, value := p.keyValue(w)
	if key != "table" {
		return p.errorAt(w.at, fmt.Sprintf("unexpected %q", w.text), stepUsage[VNetns])
	}
	known := connTableNames[SharedTable:]
	t := slices.Index(known, value.text)
	if t < 0 {
		return p.errorAt(value.at, fmt.Sprintf("unknown table %q", value.text), "own or shared", nearest(value.text, known))
	}
	op.Table = SharedTable + ConnTable(t)
	return nil
}

func (p *parser) inherit(op *Op) (err *ParseError) {
	if op.Child, err = p.define(VInherit, "the child's name"); err != nil {
		return err
	}
	w, err := p.next(VInherit, "ADDR[:PORT]")
	if err != nil {
		return err
	}
	if op.Addr, err = p.addrPort(w, false); err != nil {
		return err
	}
	if op.Addr.Addr().Unmap().IsUnspecified() {
		return p.errorAt(w.at, atWildcard, "an address that the listener is reached at")
	}
	if len(p.words) > 0 && strings.HasPrefix(p.words[0].text, "cpu=") {
		_, value := p.keyValue(p.words[0])
		p.at[partCPU], p.words = p.words[0].at, p.words[1:]
		op.CPU, err = p.processor(value, false)
	}
	return err
}

func (p *parser) batch(op *Op) *ParseError {
	w, err := p.next(VExit, "a namespace's name")
	if err != nil {
		return err
	}
	p.batchAt = p.batchAt[:0]
	at := w.at
	for name := range strings.SplitSeq(w.text, ",") {
		if name == "" {
			return p.errorAt(at, "a name is missing", stepUsage[VExit]+" without blanks")
		}
		id, err := p.lookup(word{name, at})
		if err != nil {
			return err
		}
		op.Batch = append(op.Batch, id)
		p.batchAt = append(p.batchAt, at)
		at += len(name) + 1
	}
	return nil
}

func (p *parser) send(op *Op) (err *ParseError) {
	from, err := p.next(VSend, "the source's ADDR:PORT")
	if err != nil {
		return err
	}
	if op.From, err = p.addrPort(from, true); err != nil {
		return err
	}
	arrow, err := p.next(VSend, "->")
	if err != nil {
		return err
	}
	if arrow.text != "->" {
		return p.errorAt(arrow.at, fmt.Sprintf("%q where -> stands", arrow.text), stepUsage[VSend])
	}
	to, err := p.next(VSend, "the destination's ADDR:PORT")
	if err != nil {
		return err
	}
	if op.Addr, err = p.addrPort(to, true); err != nil {
		return err
	}
	for len(p.words) > 0 && !p.resultsBegin() && err == nil {
		w, _ := p.next(VSend, "dev=DEV or cpu=N")
		key, value := p.keyValue(w)
		switch {
		case key == "dev" && op.Dev == NoDev && op.CPU == NoCPU:
			op.Dev, err = p.device(value, false)
		case key == "cpu" && op.CPU == NoCPU:
			p.at[partCPU] = w.at
			op.CPU, err = p.processor(value, false)
		default:
			return p.errorAt(w.at, fmt.Sprintf("unexpected %q", w.text), stepUsage[VSend])
		}
	}
	return err
}

// socket reads a socket's family, options and attributes.
func (p *parser) socket(op *Op) *ParseError {
	w, err := p.next(VSocket, "the family")
	if err != nil {
		return err
	}
	p.at[partFamily] = w.at
	f := slices.Index(familyNames[:], w.text)
	if f <= 0 {
		return p.errorAt(w.at, fmt.Sprintf("unknown family %q", w.text), "tcp4, tcp6, udp4 or udp6", nearest(w.text, familyNames[TCP4:]))
	}
	op.Family = Family(f)
	var given []string
	for len(p.words) > 0 && !p.resultsBegin() {
		w, _ := p.next(VSocket, "an option")
		key, value := p.keyValue(w)
		if slices.Contains(given, key) {
			return p.errorAt(w.at, key+" is given twice", "")
		}
		given = append(given, key)
		if err := p.attribute(op, w, key, value); err != nil {
			return err
		}
	}
	return nil
}

// keyValue cuts KEY=VALUE; the value of a word without = is empty and ends it.
func (p *parser) keyValue(w word) (string, word) {
	key, value, _ := strings.Cut(w.text, "=")
	return key, word{value, w.at + len(w.text) - len(value)}
}

var attributeNames = func() (names []string) {
	for _, o := range OptNames {
		names = append(names, o.Name)
	}
	return append(names, "uid", "dev", "cpu", "netns", "range")
}()

// attribute reads one option or attribute of a socket.
func (p *parser) attribute(op *Op, w word, key string, value word) (err *ParseError) {
	for _, o := range OptNames {
		if o.Name == w.text {
			op.Opts |= o.Opt
			return nil
		}
		if o.Name == key {
			return p.errorAt(w.at, fmt.Sprintf("option %s takes no value", key), "the option for on, or none for off")
		}
	}
	switch key {
	case "uid":
		op.UID, err = p.uid(value)
	case "dev":
		op.Dev, err = p.device(value, false)
	case "cpu":
		p.at[partCPU] = w.at
		op.CPU, err = p.processor(value, false)
	case "netns":
		p.at[partNet] = value.at
		op.HasNet = true
		op.Net, err = p.lookup(value)
	case "range":
		op.Range, err = p.portRange(value)
	default:
		return p.errorAt(w.at, fmt.Sprintf("unknown option %q", w.text),
			"v6only, reuseaddr, reuseport, no-port, transparent, uid=N, dev=DEV, cpu=N, netns=NAME or range=LO-HI", nearest(key, attributeNames))
	}
	return err
}

// setting reads what a set changes.
func (p *parser) setting(op *Op) (err *ParseError) {
	w, err := p.next(VSet, "what to set")
	if err != nil {
		return err
	}
	key, value := p.keyValue(w)
	switch key {
	case "uid":
		op.Field = SetUID
		op.UID, err = p.uid(value)
		return err
	case "dev":
		op.Field = SetDev
		op.Dev, err = p.device(value, true)
		return err
	case "cpu":
		p.at[partCPU] = w.at
		op.Field = SetCPU
		op.CPU, err = p.processor(value, true)
		return err
	}
	for _, o := range OptNames {
		if o.Name != key {
			continue
		}
		op.Field, op.Opts, op.On = SetOpt, o.Opt, value.text == "on"
		if !op.On && value.text != "off" {
			return p.errorAt(value.at, fmt.Sprintf("option %s is set to %q", key, value.text), key+"=on or "+key+"=off", nearest(value.text, []string{"on", "off"}))
		}
		return nil
	}
	return p.errorAt(w.at, fmt.Sprintf("cannot set %q", w.text), "v6only, reuseaddr, reuseport, no-port or transparent with =on or =off, uid=N, dev=DEV or cpu=N",
		nearest(key, attributeNames[:len(OptNames)+3]))
}

// results reads what follows the operation, up to the end of the line.
func (p *parser) results(s *Step) (err *ParseError) {
	if len(p.words) > 0 && p.words[0].text == "=>" {
		p.words = p.words[1:]
		if s.Want, err = p.result(s.Op.Verb, partWant); err != nil {
			return err
		}
	}
	if len(p.words) > 0 && p.words[0].text == "oracle" {
		p.words = p.words[1:]
		if s.Oracle, err = p.result(s.Op.Verb, partOracle); err != nil {
			return err
		}
	}
	if len(p.words) > 0 {
		w := p.words[0]
		return p.errorAt(w.at, fmt.Sprintf("unexpected %q", w.text), "the end of the line after "+stepUsage[s.Op.Verb]+" [=> RESULT] [oracle RESULT]", nearest(w.text, []string{"=>", "oracle"}))
	}
	return nil
}

func (p *parser) result(v Verb, pt part) (Answer, *ParseError) {
	if len(p.words) == 0 || p.resultsBegin() {
		_, err := p.next(v, "the result")
		err.Expected = resultsOf(v)
		return Answer{}, err
	}
	p.at[pt] = p.words[0].at
	a, used, wrong, msg := readAnswer(p.words, func(s string) (ID, bool) { id, ok := p.ids[s]; return id, ok })
	if msg != "" {
		return a, p.errorAt(wrong.at, msg, resultsOf(v), nearest(wrong.text, append(resultWords(), p.t.Names...)))
	}
	p.words = p.words[used:]
	return a, nil
}
