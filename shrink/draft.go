package shrink

import (
	"encoding/binary"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// draft is a candidate: what counts of a trace. Its ops are never changed in
// place once it is weighed; a move copies them.
type draft struct {
	ops    []rc.Op
	ports  rc.PortRange
	sysctl []rc.Sysctl
	w      weight
	free   *spare // where copies take their ops from; nil for new ones
}

// spare are the ops of candidates that were thrown away, for the next ones: most
// of the many that a pass makes are.
type spare [][]rc.Op

func (s *spare) put(d *draft) { *s = append(*s, d.ops[:0]) }

// room is for n ops, none yet.
func (s *spare) room(n int) []rc.Op {
	if s == nil || len(*s) == 0 {
		return make([]rc.Op, 0, n)
	}
	last := len(*s) - 1
	ops := (*s)[last]
	*s = (*s)[:last]
	return ops
}

func fromTrace(t *rc.Trace) draft {
	d := draft{ops: make([]rc.Op, len(t.Steps)), ports: t.Config.Ports, sysctl: slices.Clone(t.Config.Sysctl)}
	for i := range t.Steps {
		d.ops[i] = t.Steps[i].Op
	}
	return d
}

// trace gives d what t has beside its steps, and canonical names.
func (d *draft) trace(t *rc.Trace) *rc.Trace {
	n := *t
	n.Config.Ports = d.ports
	n.Config.Sysctl = slices.Clone(d.sysctl)
	n.Names = make([]string, 0, d.w[wSockets])
	n.Steps = make([]rc.Step, len(d.ops))
	for i, op := range d.ops {
		op.Batch = slices.Clone(op.Batch)
		n.Steps[i].Op = op
		if id, ok := op.Defines(); ok {
			n.Names = append(n.Names, id.String())
		}
	}
	return &n
}

func (d *draft) clone() draft {
	c := *d
	c.ops = append(d.free.room(len(d.ops)), d.ops...)
	return c
}

// without is d less the ops for which gone holds.
func (d *draft) without(gone func(int, *rc.Op) bool) draft {
	c := *d
	c.ops = d.free.room(len(d.ops))
	for i := range d.ops {
		if !gone(i, &d.ops[i]) {
			c.ops = append(c.ops, d.ops[i])
		}
	}
	return c
}

// life is what a name stands for at one point of a trace.
type life uint8

const (
	undefined life = iota
	alive
	connected // alive, and a timewait step may follow
	waiting   // a TIME_WAIT socket
	namespace
	gone
)

// tidy makes d a trace again after a move: it drops the steps whose
// precondition is lost and numbers the sockets in the order of definition. With
// hoist, it also drops sockets that no step uses, creates the others first, in
// the order of their use, and spells addresses in one way.
func (d *draft) tidy(hoist bool) {
	d.repair()
	if hoist {
		d.hoist()
		d.spell()
	}
	d.renumber()
	d.weigh()
}

func (d *draft) maxID() rc.ID {
	m := rc.ID(-1)
	for i := range d.ops {
		m = max(m, d.ops[i].Sock, d.ops[i].Child, d.ops[i].Net)
		for _, id := range d.ops[i].Batch {
			m = max(m, id)
		}
	}
	return m
}

// repair drops every step that cannot stand where it stands: on a name that is
// not defined (yet, or any more), of a second definition, a timewait without a
// connection, an expire without a TIME_WAIT socket. d.ops is d's alone: every
// move copies it.
func (d *draft) repair() {
	var few [32]life
	lives := few[:]
	if n := int(d.maxID()) + 1; n > len(few) {
		lives = make([]life, n)
	}
	var in map[rc.ID]rc.ID // the namespaces of sockets that are in one
	kept := d.ops[:0]
	for i := range d.ops {
		op := &d.ops[i]
		if op.Verb == rc.VExit {
			op.Batch = members(op.Batch, lives)
		}
		if !step(lives, op) {
			continue
		}
		kept = append(kept, *op)
		switch {
		case op.HasNet:
			if in == nil {
				in = map[rc.ID]rc.ID{}
			}
			in[op.Sock] = op.Net
		case op.Verb == rc.VInherit && in != nil:
			if net, ok := in[op.Sock]; ok {
				in[op.Child] = net
			}
		case op.Verb == rc.VExit:
			for id, net := range in {
				if lives[net] == gone {
					lives[id] = gone // with its namespace
				}
			}
		}
	}
	d.ops = kept
}

// members are those of a batch that live, each once.
func members(batch []rc.ID, lives []life) []rc.ID {
	var b []rc.ID
	for _, id := range batch {
		if lives[id] == namespace && !slices.Contains(b, id) {
			b = append(b, id)
		}
	}
	return b
}

// step advances lives over op and reports whether op may stand there.
func step(lives []life, op *rc.Op) bool {
	if op.Verb == rc.VSend {
		return true
	}
	if op.Verb == rc.VExit {
		for _, id := range op.Batch {
			lives[id] = gone
		}
		return len(op.Batch) > 0
	}
	is := lives[op.Sock]
	up := is == alive || is == connected
	switch op.Verb {
	case rc.VSocket:
		if is != undefined || op.HasNet && lives[op.Net] != namespace {
			return false
		}
		lives[op.Sock] = alive
	case rc.VNetns:
		if is != undefined {
			return false
		}
		lives[op.Sock] = namespace
	case rc.VInherit:
		if !up || lives[op.Child] != undefined || op.Addr.Addr().Unmap().IsUnspecified() {
			return false
		}
		lives[op.Child] = connected
	case rc.VConnect:
		if !up {
			return false
		}
		lives[op.Sock] = connected
	case rc.VClose:
		if !up {
			return false
		}
		lives[op.Sock] = gone
	case rc.VTimeWait:
		if is != connected {
			return false
		}
		lives[op.Sock] = waiting
	case rc.VExpire:
		if is != waiting {
			return false
		}
		lives[op.Sock] = gone
	case rc.VDisconnect, rc.VShutdown:
		if !up {
			return false
		}
		lives[op.Sock] = alive
	default:
		return up
	}
	return true
}

// hoist moves the socket lines to the front, in the order in which the steps use
// the sockets, and drops those that none uses; those of other namespaces and the
// namespaces themselves as far as gather says.
func (d *draft) hoist() {
	var few [32]int
	first := few[:]
	if n := int(d.maxID()) + 1; n > len(few) {
		first = make([]int, n)
	}
	d.firstUses(first)
	exited := false // a namespace that comes after an exit may be what matters
	unused := func(op *rc.Op) bool {
		return (op.Verb == rc.VSocket || op.Verb == rc.VNetns && !exited) && first[op.Sock] == 0
	}
	own := func(op *rc.Op) bool { return op.Verb == rc.VSocket && !op.HasNet }
	spaces := false
	before := func(a, b *rc.Op) bool { return own(a) && (!own(b) || first[a.Sock] < first[b.Sock]) }
	kept := d.ops[:0]
	for i := range d.ops {
		if op := d.ops[i]; !unused(&op) {
			spaces = spaces || op.Verb == rc.VNetns
			exited = exited || op.Verb == rc.VExit
			// Insertion keeps the rest in place, and is quick on what is
			// nearly sorted: the usual case is a move away from canonical.
			kept = append(kept, op)
			for k := len(kept) - 1; k > 0 && before(&kept[k], &kept[k-1]); k-- {
				kept[k], kept[k-1] = kept[k-1], kept[k]
			}
		}
	}
	if d.ops = kept; spaces {
		d.gather(first)
	}
}

// firstUses notes, for each ID, one more than the index of the step that uses
// it first; 0 for none.
func (d *draft) firstUses(first []int) {
	use := func(id rc.ID, i int) {
		if first[id] == 0 {
			first[id] = i + 1
		}
	}
	for i := range d.ops {
		op := &d.ops[i]
		switch op.Verb {
		case rc.VNetns, rc.VSend, rc.VSocket:
		case rc.VExit:
			for _, id := range op.Batch {
				use(id, i)
			}
		default:
			use(op.Sock, i)
		}
	}
	for i := range d.ops { // a namespace is used by the steps of its sockets
		if op := &d.ops[i]; op.HasNet && first[op.Sock] > 0 && (first[op.Net] == 0 || first[op.Sock] < first[op.Net]) {
			first[op.Net] = first[op.Sock]
		}
	}
}

// spell writes the addresses of IPv6 sockets as they store them: 127.0.0.1 is
// ::ffff:127.0.0.1 to them, and no simpler.
func (d *draft) spell() {
	six := func(id rc.ID) bool {
		for i := range d.ops {
			switch op := &d.ops[i]; {
			case op.Verb == rc.VSocket && op.Sock == id:
				return op.Family.Is6()
			case op.Verb == rc.VInherit && op.Child == id:
				id = op.Sock
			}
		}
		return false
	}
	for i := range d.ops {
		if op := &d.ops[i]; hasAddr(op) && op.Addr.Addr().Is4() && six(op.Sock) {
			setAddr(op, netip.AddrFrom16(op.Addr.Addr().As16()))
		}
	}
}

// renumber gives the names the numbers of their definitions.
func (d *draft) renumber() {
	var few [32]rc.ID
	to := few[:]
	if n := int(d.maxID()) + 1; n > len(few) {
		to = make([]rc.ID, n)
	}
	next := rc.ID(0)
	for i := range d.ops {
		op := &d.ops[i]
		if id, ok := op.Defines(); ok {
			to[id] = next
			next++
		}
		switch op.Verb {
		case rc.VSend:
		case rc.VExit:
			for j, id := range op.Batch {
				op.Batch[j] = to[id]
			}
			slices.Sort(op.Batch)
		default:
			op.Sock = to[op.Sock]
		}
		if op.Verb == rc.VInherit {
			op.Child = to[op.Child]
		}
		if op.HasNet {
			op.Net = to[op.Net]
		}
	}
}

// families gives each socket's family, a child's being its listener's.
func (d *draft) families() []rc.Family {
	f := make([]rc.Family, d.maxID()+1)
	for i := range d.ops {
		switch op := &d.ops[i]; op.Verb {
		case rc.VSocket:
			f[op.Sock] = op.Family
		case rc.VInherit:
			f[op.Child] = f[op.Sock]
		}
	}
	return f
}

// origin gives, for each socket, the ID whose socket line made it: its own, or
// its listener's.
func (d *draft) origin() []rc.ID {
	o := make([]rc.ID, d.maxID()+1)
	for i := range d.ops {
		switch op := &d.ops[i]; op.Verb {
		case rc.VSocket:
			o[op.Sock] = op.Sock
		case rc.VInherit:
			o[op.Child] = o[op.Sock]
		}
	}
	return o
}

// text is d in bytes, to tell candidates apart. Equal texts are equal drafts.
func (d *draft) text(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(d.ports.Lo)<<16|uint64(d.ports.Hi))
	b = binary.AppendUvarint(b, uint64(len(d.sysctl)))
	for _, s := range d.sysctl {
		b = append(append(b, s.Name...), ' ')
		b = append(append(b, s.Value...), '\n')
	}
	for i := range d.ops {
		op := &d.ops[i]
		flags := flag(op.On) | flag(op.HasNet)<<1 | flag(op.Unaccepted)<<2
		b = append(b, byte(op.Verb), byte(op.Family), byte(op.Opts), byte(op.Field), byte(op.Dev), byte(flags))
		b = append(binary.AppendUvarint(b, uint64(op.CPU)), byte(op.Table))
		for _, n := range [...]uint32{uint32(op.Sock), uint32(op.Child), uint32(op.Net), op.UID, uint32(op.Range.Lo)<<16 | uint32(op.Range.Hi)} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = appendAddr(appendAddr(b, op.From), op.Addr)
		b = binary.AppendUvarint(b, uint64(len(op.Batch)))
		for _, id := range op.Batch {
			b = binary.AppendUvarint(b, uint64(uint32(id)))
		}
	}
	return b
}

func appendAddr(b []byte, a netip.AddrPort) []byte {
	b = binary.BigEndian.AppendUint16(b, a.Port())
	if !a.Addr().IsValid() {
		return append(b, 0)
	}
	if a.Addr().Is4() {
		v4 := a.Addr().As4()
		return append(append(b, 4), v4[:]...)
	}
	v6 := a.Addr().As16()
	return append(append(b, 6), v6[:]...)
}
