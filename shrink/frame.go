package shrink

import (
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// frame is a trace without what its socket lines say: which sockets do what.
type frame struct {
	lines int // the sockets with a line; children come after them
	ops   []rc.Op
	// four and six say of each socket that an IPv4 or IPv6 address is asked
	// of it, or of a child of its.
	four, six []bool
}

// newFrame gives false for a frame in which a socket has addresses of two
// families.
func newFrame(lines, sockets int, ops []rc.Op) (frame, bool) {
	f := frame{lines: lines, ops: slices.Clone(ops), four: make([]bool, sockets), six: make([]bool, sockets)}
	from := make([]rc.ID, sockets)
	for i := range from {
		from[i] = rc.ID(i)
	}
	for i := range ops {
		op := &ops[i]
		if op.Verb == rc.VInherit {
			from[op.Child] = from[op.Sock]
		}
		if hasAddr(op) {
			four := op.Addr.Addr().Is4()
			f.four[from[op.Sock]] = f.four[from[op.Sock]] || four
			f.six[from[op.Sock]] = f.six[from[op.Sock]] || !four
		}
	}
	for i := range lines {
		if f.four[i] && f.six[i] {
			return f, false
		}
	}
	return f, true
}

// frames lists the frames with so many steps and sockets, children included.
func (g *grammar) frames(steps, sockets int) []frame {
	var all []frame
	for lines := sockets; lines > 0; lines-- {
		b := builder{g: g, steps: steps, lines: lines, sockets: sockets, lives: make([]life, sockets), bound: make([]bool, sockets)}
		b.extend(func(ops []rc.Op) {
			if f, ok := newFrame(lines, sockets, ops); ok {
				all = append(all, f)
			}
		})
		if lines == sockets && !slices.Contains(g.verbs, rc.VInherit) {
			break
		}
	}
	return all
}

// builder makes frames step by step.
type builder struct {
	g              *grammar
	steps          int
	lines, sockets int
	used, children int
	ops            []rc.Op
	lives          []life
	bound          []bool
}

func (b *builder) extend(emit func([]rc.Op)) {
	left := b.steps - len(b.ops)
	if left == 0 {
		if b.used == b.lines && b.lines+b.children == b.sockets {
			emit(b.ops)
		}
		return
	}
	if b.lines-b.used+b.sockets-b.lines-b.children > left {
		return
	}
	for _, v := range b.g.verbs {
		if left > 1 || b.g.last == 0 || v == b.g.last {
			b.verb(v, emit)
		}
	}
}

func (b *builder) verb(v rc.Verb, emit func([]rc.Op)) {
	for i := range b.sockets {
		id := rc.ID(i)
		fresh := i == b.used && i < b.lines
		if i > b.used && i < b.lines || i >= b.lines+b.children {
			continue
		}
		switch v {
		case rc.VBind, rc.VConnect:
			for _, a := range b.g.addrs {
				op := rc.Op{Verb: v, Sock: id, Addr: netip.AddrPortFrom(a, ports[0])}
				if v == rc.VConnect || !b.bound[i] {
					b.with(op, fresh, emit)
				}
				if op.Unaccepted = true; v == rc.VConnect && b.g.unaccepted {
					b.with(op, fresh, emit)
				}
			}
		case rc.VInherit:
			for _, a := range b.g.addrs {
				for _, p := range b.g.inherited {
					if fresh || b.lines+b.children >= b.sockets {
						continue
					}
					for _, on := range b.g.cpus {
						b.with(rc.InheritOn(id, rc.ID(b.lines+b.children), netip.AddrPortFrom(a, p), on), false, emit)
					}
				}
			}
		case rc.VSet:
			for _, s := range b.g.sets {
				if s.Sock = id; !fresh {
					b.with(s, false, emit)
				}
			}
		default:
			if !fresh {
				b.with(rc.Op{Verb: v, Sock: id}, false, emit)
			}
		}
	}
}

// with goes on behind one more step, if it can stand there.
func (b *builder) with(op rc.Op, fresh bool, emit func([]rc.Op)) {
	lives, bound, used, children := slices.Clone(b.lives), slices.Clone(b.bound), b.used, b.children
	if fresh {
		b.lives[op.Sock] = alive
		b.used++
	}
	if step(b.lives, &op) {
		switch op.Verb {
		case rc.VBind:
			b.bound[op.Sock] = true
		case rc.VInherit:
			b.bound[op.Child] = true
			b.children++
		}
		b.ops = append(b.ops, op)
		b.extend(emit)
		b.ops = b.ops[:len(b.ops)-1]
	}
	b.lives, b.bound, b.used, b.children = lives, bound, used, children
}

// dress gives a frame socket lines with so many attributes in all, in every way,
// until yield returns false.
func (f *frame) dress(g *grammar, attrs int, yield func([]rc.Op) bool) {
	lines := make([]rc.Op, 0, f.lines)
	var more func(left int) bool
	more = func(left int) bool {
		if len(lines) == f.lines {
			if left > 0 {
				return true
			}
			ops, ok := f.put(lines)
			return !ok || yield(ops)
		}
		for n := 0; n <= left && n < len(g.lines); n++ {
			for _, line := range g.lines[n] {
				if at := len(lines); line.Family.Is6() && f.four[at] || !line.Family.Is6() && f.six[at] {
					continue
				}
				line.Sock = rc.ID(len(lines))
				lines = append(lines, line)
				ok := more(left - n)
				lines = lines[:len(lines)-1]
				if !ok {
					return false
				}
			}
		}
		return true
	}
	more(attrs)
}

// put joins lines and steps; what is set must change.
func (f *frame) put(lines []rc.Op) ([]rc.Op, bool) {
	var few [8]rc.Op
	now := append(few[:0], lines...)
	ops := append(make([]rc.Op, 0, len(lines)+len(f.ops)), lines...)
	for i := range f.ops {
		ops = append(ops, f.ops[i])
		op := &ops[len(ops)-1]
		if op.Verb == rc.VInherit {
			now = append(now, now[op.Sock])
		}
		if op.Verb != rc.VSet {
			continue
		}
		switch s := &now[op.Sock]; op.Field {
		case rc.SetOpt:
			op.On = !s.Opts.Has(op.Opts)
			s.Opts ^= op.Opts
		case rc.SetUID:
			if s.UID == op.UID {
				op.UID = 0
			}
			s.UID = op.UID
		case rc.SetCPU:
			if s.CPU == op.CPU {
				return nil, false
			}
			s.CPU = op.CPU
		default:
			if s.Dev == op.Dev {
				return nil, false
			}
			s.Dev = op.Dev
		}
	}
	return ops, true
}
