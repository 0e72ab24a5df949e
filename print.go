package reusecheck

import (
	"net/netip"
	"strconv"
	"strings"
)

// headerWidth is the column in which a header's value begins.
const headerWidth = 9

// String is the trace's canonical text, as [Parse] describes it. It ends with a
// newline unless it is empty.
func (t *Trace) String() string {
	var b strings.Builder
	header := func(key, value string) {
		b.WriteString(key)
		b.WriteString(strings.Repeat(" ", headerWidth-len(key)))
		b.WriteString(value)
		b.WriteByte('\n')
	}
	if t.Title != "" {
		header("title", t.Title)
	}
	if t.Source != "" {
		header("source", t.Source)
	}
	if t.StatesAll || t.Kernels != (KernelSet{}) {
		header("kernels", t.Kernels.String())
	}
	switch system := t.Config.system(); {
	case t.StatesTCP, system != TCP:
		header("system", string(system))
	}
	if t.Config.Ports != (PortRange{}) {
		header("ports", t.Config.Ports.String())
	}
	for _, s := range t.Config.Sysctl {
		header("sysctl", s.Name+" "+s.Value)
	}
	if b.Len() > 0 && len(t.Steps) > 0 {
		b.WriteByte('\n')
	}
	for i := range t.Steps {
		b.WriteString(t.Steps[i].Text(t.Name))
		b.WriteByte('\n')
	}
	return b.String()
}

// system is the configuration's system; a program may leave TCP out.
func (c *Config) system() System {
	if c.System == "" {
		return TCP
	}
	return c.System
}

// Text is the step in the trace language, with its stated results. names gives
// an ID's name, see [Op.Text].
func (s Step) Text(names func(ID) string) string {
	b := s.Op.append(nil, names)
	if s.Want.Kind != Unstated {
		b = append(b, " => "...)
		b = s.Want.append(b, names)
	}
	if s.Oracle.Kind != Unstated {
		b = append(b, " oracle "...)
		b = s.Oracle.append(b, names)
	}
	return string(b)
}

// String is the operation in the trace language with canonical names.
func (op Op) String() string { return op.Text(nil) }

// Text is the operation in the trace language: a step without results. names
// gives an ID's name, as [Trace.Name] does; nil stands for [ID.String].
func (op Op) Text(names func(ID) string) string { return string(op.append(nil, names)) }

func (op *Op) append(b []byte, names func(ID) string) []byte {
	if names == nil {
		names = ID.String
	}
	b = append(b, op.Verb.String()...)
	word := func(s string) {
		b = append(b, ' ')
		b = append(b, s...)
	}
	name := func(id ID) { word(names(id)) }
	switch op.Verb {
	case VSocket:
		name(op.Sock)
		word(op.Family.String())
		return op.appendAttributes(b, names)
	case VBind, VConnect:
		name(op.Sock)
		word(op.Addr.String())
		if op.Unaccepted {
			word("unaccepted")
		}
	case VInherit:
		name(op.Sock)
		name(op.Child)
		word(inheritAddr(op.Addr))
		if op.CPU != NoCPU {
			word("cpu=" + op.CPU.String())
		}
	case VSet:
		name(op.Sock)
		word(op.setting())
	case VSend:
		word(op.From.String())
		word("->")
		word(op.Addr.String())
		if op.Dev != NoDev {
			word("dev=" + op.Dev.String())
		}
		if op.CPU != NoCPU {
			word("cpu=" + op.CPU.String())
		}
	case VNetns:
		name(op.Sock)
		if op.Table != TableAsSet {
			word("table=" + op.Table.String())
		}
	case VExit:
		for i, id := range op.Batch {
			if i == 0 {
				name(id)
				continue
			}
			b = append(b, ',')
			b = append(b, names(id)...)
		}
	default:
		name(op.Sock)
	}
	return b
}

func (op *Op) appendAttributes(b []byte, names func(ID) string) []byte {
	for _, o := range OptNames {
		if op.Opts.Has(o.Opt) {
			b = append(b, ' ')
			b = append(b, o.Name...)
		}
	}
	attribute := func(key, value string) {
		b = append(b, ' ')
		b = append(b, key...)
		b = append(b, '=')
		b = append(b, value...)
	}
	if op.UID != 0 {
		attribute("uid", strconv.FormatUint(uint64(op.UID), 10))
	}
	if op.Dev != NoDev {
		attribute("dev", op.Dev.String())
	}
	if op.CPU != NoCPU {
		attribute("cpu", op.CPU.String())
	}
	if op.HasNet {
		attribute("netns", names(op.Net))
	}
	if op.Range != (PortRange{}) {
		attribute("range", op.Range.String())
	}
	return b
}

func (op *Op) setting() string {
	switch op.Field {
	case SetOpt:
		if op.On {
			return op.Opts.String() + "=on"
		}
		return op.Opts.String() + "=off"
	case SetUID:
		return "uid=" + strconv.FormatUint(uint64(op.UID), 10)
	case SetDev:
		return "dev=" + op.Dev.String()
	case SetCPU:
		return "cpu=" + op.CPU.String()
	}
	return "nothing"
}

// inheritAddr leaves out the port that is the listener's own.
func inheritAddr(a netip.AddrPort) string {
	switch {
	case a.Port() != 0:
		return a.String()
	case a.Addr().Is4():
		return a.Addr().String()
	}
	return "[" + a.Addr().String() + "]"
}

// String is the answer in the trace language with canonical names, "" for one
// that states nothing.
func (a Answer) String() string { return a.Text(nil) }

// Text is the answer in the trace language. names gives an ID's name, see [Op.Text].
func (a Answer) Text(names func(ID) string) string { return string(a.append(nil, names)) }

func (a Answer) append(b []byte, names func(ID) string) []byte {
	if names == nil {
		names = ID.String
	}
	switch a.Kind {
	case Unstated:
		return b
	case OK:
		b = append(b, "ok"...)
		if a.Port != 0 {
			b = append(b, ' ')
			b = strconv.AppendUint(b, uint64(a.Port), 10)
		}
		return b
	case Failed:
		return append(b, a.Errno.String()...)
	case Received:
		return append(b, names(a.Who)...)
	case Nobody:
		return append(b, "none"...)
	case Exited:
		b = appendCount(append(b, "ok walks="...), a.Walks)
		return appendCount(append(b, " left="...), a.Left)
	}
	return append(b, nameOf(nil, int(a.Kind), "answer")...)
}

// appendCount writes ? for what was not counted, which no parser takes.
func appendCount(b []byte, n int32) []byte {
	if n == Uncounted {
		return append(b, '?')
	}
	return strconv.AppendInt(b, int64(n), 10)
}
