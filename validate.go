package reusecheck

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate finds the errors of a trace that can be told before anything is run,
// those that [Parse] reports with their place:
//
//   - a name defined twice, used before its definition, or that of a namespace
//     where a socket is needed and the reverse; IDs that are not in order of
//     definition;
//   - a second close, and any step on a socket that was closed, or that left a
//     TIME_WAIT socket (but its expire), on a namespace that was torn down or on
//     a socket that was in it;
//   - timewait of a socket without a connection: nothing connected or inherited
//     it before, or a disconnect or shutdown ended that for certain;
//   - expire of what no timewait left behind, or a second time;
//   - a verb or a family that the system does not have: send in udp only, netns
//     and exit in timewait only, inherit, timewait and expire not in udp, cpu= not
//     in timewait;
//   - a result that the verb cannot have, an oracle's answer that agrees with
//     the stated one;
//   - a value that has no text: a title of two lines, an unknown device.
//
// What the kernel answers with an error (a second bind, listen on a connected or
// a UDP socket, an address of the other family) is a legal step. So is a step
// on the CHILD of an inherit that may fail: it is answered EBADF then.
func (t *Trace) Validate() error {
	if err := t.validateHeaders(); err != nil {
		return err
	}
	c := newChecker(t.Config.system(), t.Name)
	names := make(map[string]ID)
	for i := range t.Steps {
		s := &t.Steps[i]
		if id, ok := s.Op.Defines(); ok {
			name := t.Name(id)
			if msg := badName(name); msg != "" {
				return t.stepError(i, msg)
			}
			if first, dup := names[name]; dup && first != id {
				return t.stepError(i, fmt.Sprintf("%s is the name of two IDs, %d and %d", name, first, id))
			}
			names[name] = id
		}
		if msg := s.Op.malformed(); msg != "" {
			return t.stepError(i, msg)
		}
		if f := c.step(s, i); f != nil {
			return t.stepError(i, f.msg)
		}
	}
	if n := len(c.ids); len(t.Names) > n {
		return fmt.Errorf("name %q belongs to no socket: the trace defines %d", t.Names[n], n)
	}
	return nil
}

func (t *Trace) stepError(i int, msg string) error {
	where := ""
	if line := t.Steps[i].Line; line > 0 {
		where = fmt.Sprintf("%s:%d: ", t.File, line)
	}
	return fmt.Errorf("%sstep %d, %s: %s", where, i+1, t.Steps[i].Op.Text(t.Name), msg)
}

func (t *Trace) validateHeaders() error {
	if msg := badText(t.Title); msg != "" {
		return fmt.Errorf("title: %s", msg)
	}
	if msg := badText(t.Source); msg != "" {
		return fmt.Errorf("source: %s", msg)
	}
	if !slices.Contains(systemNames, string(t.Config.system())) {
		return fmt.Errorf("system %q is none of %s", t.Config.System, strings.Join(systemNames, ", "))
	}
	if r := t.Config.Ports; r != (PortRange{}) && badRange(r) {
		return fmt.Errorf("ports %s is not a range of ports from 1 to 65535", r)
	}
	for _, s := range t.Config.Sysctl {
		if msg := badSysctl(s); msg != "" {
			return fmt.Errorf("sysctl %q: %s", s.Name, msg)
		}
	}
	return nil
}

// badText says why s cannot be a title or a source.
func badText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "the text is not UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "the text has a control character or more than one line"
	case strings.Trim(s, " ") != s:
		return "the text begins or ends with a space"
	case strings.HasPrefix(s, "#") || strings.Contains(s, " #"):
		return "a # after a space begins a comment"
	}
	return ""
}

func badRange(r PortRange) bool { return r.Lo == 0 || r.Hi < r.Lo }

// badSysctl says why s cannot be a sysctl header.
func badSysctl(s Sysctl) string {
	sane := func(s string, others string) bool {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
			return r > unicode.MaxASCII || !isLetter(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune(others, r)
		})
	}
	switch {
	case !sane(s.Name, "._-/"):
		return "a sysctl's name is letters, digits and . _ - /"
	case strings.Join(strings.Fields(s.Value), " ") != s.Value || !sane(s.Value, " !\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~"):
		return "a sysctl's value is one line of printable ASCII without #"
	}
	return ""
}

// reserved says as what a word that cannot be a name is read, "" if it can.
func reserved(name string) string {
	switch name {
	case "ok", "none", "oracle":
		return "a word of the results"
	}
	if !strings.HasPrefix(name, "E") {
		return "" // most names, without asking the table
	}
	if _, ok := errnoByName[name]; ok {
		return "an error's symbol"
	}
	return ""
}

var errnoByName = func() map[string]Errno {
	m := make(map[string]Errno, len(errnoNames))
	for e, s := range errnoNames {
		m[s] = e
	}
	return m
}()

// badName says why s cannot name a socket or a namespace.
func badName(s string) string {
	if what := reserved(s); what != "" {
		return fmt.Sprintf("%s cannot be a name: it is %s", s, what)
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '_' && c != '-') {
			return fmt.Sprintf("%q is not a name: a name is a letter and then letters, digits, _ or -", s)
		}
	}
	if s == "" {
		return "the name is empty"
	}
	return ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

// atWildcard is what is wrong with an inherit at the wildcard address.
const atWildcard = "a connection arrives at one address, not at the wildcard"

// malformed says what a program left out of an operation, or put into it that
// the verb does not use and a text could not say. Parse makes no such operation.
func (op *Op) malformed() string {
	rest := *op
	rest.Verb = 0
	if op.Verb != VSend && op.Verb != VExit {
		rest.Sock = 0
	}
	bad := ""
	refuse := func(is bool, msg string) {
		if is && bad == "" {
			bad = msg
		}
	}
	switch op.Verb {
	case VSocket:
		refuse(op.Family < TCP4 || op.Family > UDP6, "the family is missing")
		refuse(op.Opts&^allOpts != 0, "an option is unknown")
		refuse(op.Range != PortRange{} && badRange(op.Range), "the range is not one of ports from 1 to 65535")
		refuse(!op.HasNet && op.Net != 0, "a namespace is given, but HasNet is not set")
		rest.Family, rest.Opts, rest.UID, rest.Dev, rest.CPU, rest.HasNet, rest.Net, rest.Range = 0, 0, 0, 0, 0, false, 0, PortRange{}
	case VBind, VConnect, VInherit:
		refuse(!op.Addr.Addr().IsValid(), "the address is missing")
		refuse(op.Addr.Addr().Zone() != "", "the address has a zone; a device is given with dev=")
		rest.Addr = noAddr
		switch op.Verb {
		case VInherit:
			refuse(op.Addr.Addr().Unmap().IsUnspecified(), atWildcard)
			rest.Child, rest.CPU = 0, 0
		case VConnect:
			rest.Unaccepted = false
		}
	case VSend:
		refuse(!op.Addr.Addr().IsValid() || !op.From.Addr().IsValid(), "an address is missing")
		refuse(op.Addr.Addr().Zone() != "" || op.From.Addr().Zone() != "", "an address has a zone; a device is given with dev=")
		rest.Addr, rest.From, rest.Dev, rest.CPU = noAddr, noAddr, 0, 0
	case VSet:
		refuse(op.Field == SetOpt && !isOneOpt(op.Opts), "set changes exactly one option")
		refuse(op.Field < SetOpt || op.Field > SetCPU, "what to set is missing")
		rest.clear(op.Field)
	case VNetns:
		refuse(op.Table > OwnTable, "the table is unknown; there are own and shared")
		rest.Table = TableAsSet
	case VExit:
		refuse(len(op.Batch) == 0, "no namespace is named")
		rest.Batch = nil
	}
	refuse(op.Dev > Dev2, "the device is unknown; there are lo, d1 and d2")
	refuse(op.CPU.Number() > MaxProcessor, fmt.Sprintf("the processor is none from 0 to %d", MaxProcessor))
	refuse(!rest.blank(), fmt.Sprintf("it has a field set that %s does not use", op.Verb))
	return bad
}

// clear zeroes what a set of f uses.
func (op *Op) clear(f Field) {
	op.Field = 0
	switch f {
	case SetOpt:
		op.Opts, op.On = 0, false
	case SetUID:
		op.UID = 0
	case SetDev:
		op.Dev = 0
	case SetCPU:
		op.CPU = 0
	}
}

func (op *Op) blank() bool {
	return op.Verb == 0 && op.Sock == 0 && op.Child == 0 && op.Family == 0 && op.Opts == 0 && !op.On && !op.Unaccepted &&
		op.Field == 0 && op.UID == 0 && op.Dev == 0 && op.CPU == 0 && !op.HasNet && op.Net == 0 && op.Range == (PortRange{}) && op.Table == TableAsSet &&
		op.Addr == noAddr && op.From == noAddr && len(op.Batch) == 0
}

func isOneOpt(o Opt) bool { return o != 0 && o&(o-1) == 0 && o&^allOpts == 0 }

var allOpts = func() (all Opt) {
	for _, n := range OptNames {
		all |= n.Opt
	}
	return all
}()
