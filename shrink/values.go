package shrink

import (
	"iter"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// What a trace uses beside the simple values; each list starts with these.

func addrsOf(d *draft) []netip.Addr {
	return gather(addrs, d, func(op *rc.Op) []netip.Addr {
		switch {
		case op.Verb == rc.VSend:
			return []netip.Addr{op.From.Addr(), op.Addr.Addr()}
		case hasAddr(op):
			return []netip.Addr{op.Addr.Addr()}
		}
		return nil
	})
}

func portsOf(d *draft) []uint16 {
	return gather(ports, d, func(op *rc.Op) []uint16 {
		switch {
		case op.Verb == rc.VSend:
			return []uint16{op.From.Port(), op.Addr.Port()}
		case hasAddr(op):
			return []uint16{op.Addr.Port()}
		}
		return nil
	})
}

func usersOf(d *draft) []uint32 {
	return gather(users, d, func(op *rc.Op) []uint32 { return []uint32{op.UID} })
}

// devsOf is only what is used, and all devices once one is: the loopback alone
// is there in every namespace, but no step is about it until one names it.
func devsOf(d *draft) []rc.Dev {
	used := gather(nil, d, func(op *rc.Op) []rc.Dev { return []rc.Dev{op.Dev} })
	if len(used) > 1 || len(used) == 1 && used[0] != rc.NoDev {
		return devs
	}
	return devs[:1]
}

// cpusOf is no processor, and the first two once one is used.
func cpusOf(d *draft) []rc.CPU {
	used := gather(cpus[:1], d, func(op *rc.Op) []rc.CPU { return []rc.CPU{op.CPU} })
	if len(used) == 1 {
		return used
	}
	return gather(cpus, d, func(op *rc.Op) []rc.CPU { return []rc.CPU{op.CPU} })
}

// few caps a list of values, so that a trace with a thousand ports does not
// give a million moves.
const few = 16

func gather[T comparable](simple []T, d *draft, of func(*rc.Op) []T) []T {
	list := slices.Clone(simple)
	for i := range d.ops {
		for _, v := range of(&d.ops[i]) {
			if len(list) < few && !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	return list
}

func optsUsed(d *draft) (o rc.Opt) {
	for i := range d.ops {
		o |= d.ops[i].Opts
	}
	return o
}

// hasAddr reports whether op is a socket's step with an address.
func hasAddr(op *rc.Op) bool {
	return op.Verb == rc.VBind || op.Verb == rc.VConnect || op.Verb == rc.VInherit
}

func setAddr(op *rc.Op, a netip.Addr) { op.Addr = netip.AddrPortFrom(a, op.Addr.Port()) }

func withPort(a netip.AddrPort, p uint16) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), p) }

func fits(f rc.Family, a netip.Addr) bool { return f.Is6() != a.Is4() }

// simplest is the first address of a family.
func simplest(f rc.Family) netip.Addr { return one(f.Is6()) }

func one(six bool) netip.Addr {
	if six {
		return one6
	}
	return one4
}

var (
	any4, any6 = netip.IPv4Unspecified(), netip.IPv6Unspecified()
	one4, one6 = addrs[0], addrs[3]
)

// translated is a in the other family: the wildcard and the loopback as such
// (native) or by way of the mapped form.
func translated(a netip.Addr, six, native bool) netip.Addr {
	switch {
	case !a.IsValid() || a.Is4() != six:
		return a
	case six && native && a == any4:
		return any6
	case six && native && a == one4:
		return one6
	case six:
		return netip.AddrFrom16(a.As16())
	case a.Is4In6():
		return a.Unmap()
	case a == any6:
		return any4
	case native:
		return one4
	}
	return addrs[1]
}

// translate moves op to the other family.
func translate(op *rc.Op, six, native bool) {
	if op.Verb == rc.VSocket && op.Family.Is6() != six {
		op.Family = op.Family.Of(one(six))
		if !six {
			op.Opts &^= rc.V6Only
		}
	}
	if op.Verb == rc.VSend {
		op.From = netip.AddrPortFrom(translated(op.From.Addr(), six, native), op.From.Port())
	}
	setAddr(op, translated(op.Addr.Addr(), six, native))
	if !op.Addr.IsValid() {
		op.Addr = netip.AddrPort{}
	}
}

// families moves one socket, its children and their addresses to the other
// family.
func families(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		from := d.origin()
		for i := range d.ops {
			line := d.ops[i]
			if line.Verb != rc.VSocket {
				continue
			}
			for _, native := range []bool{true, false} {
				c := d.clone()
				for j := range c.ops {
					if op := &c.ops[j]; (op.Verb == rc.VSocket || hasAddr(op)) && from[op.Sock] == line.Sock {
						translate(op, !line.Family.Is6(), native)
					}
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// values changes the address or the port of one step.
func values(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		as, ps, fam := addrsOf(d), portsOf(d), d.families()
		for i := range d.ops {
			op := d.ops[i]
			if op.Verb != rc.VSend && !hasAddr(&op) {
				continue
			}
			put := func(to, from netip.AddrPort) bool {
				if to == op.Addr && from == op.From {
					return true
				}
				c := d.clone()
				c.ops[i].Addr, c.ops[i].From = to, from
				return yield(c)
			}
			ok := each(as, func(a netip.Addr) bool {
				if op.Verb == rc.VSend {
					return put(netip.AddrPortFrom(a, op.Addr.Port()), op.From) && put(op.Addr, netip.AddrPortFrom(a, op.From.Port()))
				}
				return !fits(fam[op.Sock], a) || put(netip.AddrPortFrom(a, op.Addr.Port()), op.From)
			}) && each(ps, func(p uint16) bool {
				if op.Verb == rc.VSend {
					return put(withPort(op.Addr, p), op.From) && put(op.Addr, withPort(op.From, p))
				}
				return put(withPort(op.Addr, p), op.From)
			})
			if !ok {
				return
			}
		}
	}
}

// renames puts one value for another throughout the trace, or exchanges two.
func renames(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		_ = renameAll(d, addrsOf(d), renameAddr, yield) &&
			renameAll(d, addrsOf(d), renameUnmapped, yield) &&
			renameAll(d, portsOf(d), renamePort, yield) &&
			renameAll(d, usersOf(d), renameUser, yield) &&
			renameAll(d, devsOf(d), renameDev, yield) &&
			renameAll(d, cpusOf(d), renameCPU, yield)
	}
}

// renameAll renames each value of the list that d uses to each other one.
func renameAll[T comparable](d *draft, list []T, in func(*rc.Op, func(T) T), yield func(draft) bool) bool {
	used := make([]bool, len(list))
	for _, op := range d.ops {
		in(&op, func(x T) T {
			if i := slices.Index(list, x); i >= 0 {
				used[i] = true
			}
			return x
		})
	}
	for i, v := range list {
		for j, w := range list {
			if i == j || !used[i] {
				continue
			}
			if !yield(renamed(d, in, func(x T) T {
				if x == v {
					return w
				}
				return x
			})) {
				return false
			}
			if i < j && used[j] && !yield(renamed(d, in, func(x T) T {
				switch x {
				case v:
					return w
				case w:
					return v
				}
				return x
			})) {
				return false
			}
		}
	}
	return true
}

func renamed[T comparable](d *draft, in func(*rc.Op, func(T) T), sub func(T) T) draft {
	c := d.clone()
	for i := range c.ops {
		in(&c.ops[i], sub)
	}
	if p, ok := any(sub).(func(uint16) uint16); ok {
		shift(&c, p)
	}
	return c
}

// shift moves the namespace's port range with its first port.
func shift(d *draft, sub func(uint16) uint16) {
	lo := sub(d.ports.Lo)
	if n := d.ports.Size(); n > 0 && lo > 0 && int(lo)+n <= 1<<16 {
		d.ports = rc.PortRange{Lo: lo, Hi: lo + uint16(n-1)}
	}
}

func renameAddr(op *rc.Op, sub func(netip.Addr) netip.Addr) {
	if op.Verb == rc.VSend {
		op.From = netip.AddrPortFrom(sub(op.From.Addr()), op.From.Port())
	}
	if op.Verb == rc.VSend || hasAddr(op) {
		setAddr(op, sub(op.Addr.Addr()))
	}
}

// renameUnmapped renames IPv4 addresses in the plain and the mapped form alike.
func renameUnmapped(op *rc.Op, sub func(netip.Addr) netip.Addr) {
	renameAddr(op, func(a netip.Addr) netip.Addr {
		if !a.Is4In6() {
			return sub(a)
		}
		if b := sub(a.Unmap()); b.Is4() {
			return netip.AddrFrom16(b.As16())
		}
		return a
	})
}

func renameUser(op *rc.Op, sub func(uint32) uint32) {
	if op.Verb == rc.VSocket || op.Field == rc.SetUID {
		op.UID = sub(op.UID)
	}
}

func renameDev(op *rc.Op, sub func(rc.Dev) rc.Dev) {
	if op.Verb == rc.VSocket || op.Verb == rc.VSend || op.Field == rc.SetDev {
		op.Dev = sub(op.Dev)
	}
}

// renameCPU lets the steps that are about no processor be.
func renameCPU(op *rc.Op, sub func(rc.CPU) rc.CPU) {
	if op.CPU != rc.NoCPU {
		op.CPU = sub(op.CPU)
	}
}

func renamePort(op *rc.Op, sub func(uint16) uint16) {
	if op.Verb == rc.VSend {
		op.From = withPort(op.From, sub(op.From.Port()))
	}
	if op.Verb == rc.VSend || hasAddr(op) && !(op.Verb == rc.VInherit && op.Addr.Port() == 0) {
		op.Addr = withPort(op.Addr, sub(op.Addr.Port()))
	}
	if n := op.Range.Size(); n > 0 {
		if lo := sub(op.Range.Lo); lo > 0 && int(lo)+n <= 1<<16 {
			op.Range = rc.PortRange{Lo: lo, Hi: lo + uint16(n-1)}
		}
	}
}

// merges makes one socket do another's steps, gives one step to another socket,
// or copies or exchanges what two socket lines say.
func merges(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		var lines, all []int
		for i := range d.ops {
			if _, ok := d.ops[i].Defines(); ok && d.ops[i].Verb != rc.VNetns {
				all = append(all, i)
			}
			if d.ops[i].Verb == rc.VSocket {
				lines = append(lines, i)
			}
		}
		for x, i := range all {
			for y, j := range all {
				if i == j || len(all) > wide && x-y != 1 {
					continue
				}
				from, _ := d.ops[i].Defines()
				to, _ := d.ops[j].Defines()
				c := d.without(func(k int, _ *rc.Op) bool { return k == i })
				for k := range c.ops {
					if op := &c.ops[k]; op.Sock == from && op.Verb != rc.VSend && op.Verb != rc.VExit {
						op.Sock = to
					}
				}
				if !yield(c) {
					return
				}
			}
		}
		for x, i := range lines {
			for y, j := range lines {
				if i == j || len(lines) > wide && x-y != 1 {
					continue
				}
				copied := d.clone()
				copied.ops[i] = like(d.ops[i], d.ops[j])
				swapped := copied.clone()
				swapped.ops[j] = like(d.ops[j], d.ops[i])
				if !yield(copied) || i < j && !yield(swapped) {
					return
				}
			}
		}
		retarget(d, all, yield)
	}
}

// like is line a with what line b says, family aside.
func like(a, b rc.Op) rc.Op {
	a.Opts, a.UID, a.Dev, a.CPU, a.Range = b.Opts, b.UID, b.Dev, b.CPU, b.Range
	if !a.Family.Is6() {
		a.Opts &^= rc.V6Only
	}
	return a
}

func retarget(d *draft, all []int, yield func(draft) bool) {
	if len(all) > wide {
		return
	}
	for i := range d.ops {
		switch d.ops[i].Verb {
		case rc.VSocket, rc.VNetns, rc.VSend, rc.VExit:
			continue
		}
		for _, j := range all {
			if id, _ := d.ops[j].Defines(); id != d.ops[i].Sock {
				c := d.clone()
				c.ops[i].Sock = id
				if !yield(c) {
					return
				}
			}
		}
	}
}
