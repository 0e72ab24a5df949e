package shrink

import (
	"iter"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// A move is a draft one change away from another. It may be simpler or not, and
// is not tidied yet.
//
// The generators below list moves in both directions: [Run] takes only those
// that end up simpler, but a pair of moves may go up first.

// wide is the size from which generators that are quadratic in the steps or
// sockets keep to neighbours.
const wide = 40

// drops leaves out one step, or one socket with all its steps.
func drops(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for i := range d.ops {
			if _, ok := d.ops[i].Defines(); !ok && !yield(d.without(func(j int, _ *rc.Op) bool { return i == j })) {
				return
			}
		}
		for i := range d.ops {
			if id, ok := d.ops[i].Defines(); ok && !yield(d.without(func(_ int, op *rc.Op) bool { return about(op, id) })) {
				return
			}
		}
	}
}

// about reports whether op defines id or is a step on it. What hangs on it
// otherwise is repair's business.
func about(op *rc.Op, id rc.ID) bool {
	switch op.Verb {
	case rc.VSend, rc.VExit:
		return false
	case rc.VInherit:
		return op.Sock == id || op.Child == id
	}
	return op.Sock == id
}

// config makes the namespace's own settings simpler.
func config(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for i := range d.sysctl {
			c := d.clone()
			c.sysctl = slices.Delete(slices.Clone(d.sysctl), i, i+1)
			if !yield(c) {
				return
			}
		}
		if d.ports == (rc.PortRange{}) {
			return
		}
		for _, r := range ranges {
			c := d.clone()
			c.ports = r
			if r != d.ports && !yield(c) {
				return
			}
		}
		for _, v := range []rc.Verb{rc.VBind, rc.VListen, rc.VConnect} {
			for _, wild := range []bool{true, false} {
				if !yield(d.explicit(v, wild)) {
					return
				}
			}
		}
	}
}

// explicit names the ports that the steps take from the namespace's range:
// those of binds, of listens too, or of connects too. It needs no range then.
func (d *draft) explicit(upTo rc.Verb, wild bool) draft {
	c := d.without(func(int, *rc.Op) bool { return true })
	fam, bound := d.families(), make([]bool, d.maxID()+1)
	port := max(d.ports.Lo, 1)
	c.ports = rc.PortRange{}
	for _, op := range d.ops {
		if op.Verb == rc.VBind && op.Addr.Port() == 0 {
			op.Addr = withPort(op.Addr, port)
		}
		if rank(verbs, op.Verb) <= rank(verbs, upTo) && (op.Verb == rc.VListen || op.Verb == rc.VConnect) && !bound[op.Sock] {
			a := simplest(fam[op.Sock])
			if wild {
				a = rc.Canonical(fam[op.Sock], netip.Addr{})
			}
			c.ops = append(c.ops, rc.Bind(op.Sock, netip.AddrPortFrom(a, port)))
			bound[op.Sock] = true
		}
		switch op.Verb {
		case rc.VBind:
			bound[op.Sock] = true
		case rc.VInherit:
			bound[op.Child] = true
		}
		c.ops = append(c.ops, op)
	}
	return c
}

// everywhere takes one attribute or one kind of value away from all steps.
func everywhere(d *draft) iter.Seq[draft] {
	edits := []func(*rc.Op){
		func(op *rc.Op) { op.UID = 0 },
		func(op *rc.Op) { op.Dev = rc.NoDev },
		func(op *rc.Op) { op.CPU = rc.NoCPU },
		func(op *rc.Op) { op.Table = rc.TableAsSet },
		func(op *rc.Op) { op.HasNet, op.Net = false, 0 },
		func(op *rc.Op) { op.Range = rc.PortRange{} },
		func(op *rc.Op) { op.Unaccepted = false },
	}
	for _, o := range options {
		edits = append(edits, func(op *rc.Op) { op.Opts &^= o })
	}
	return func(yield func(draft) bool) {
		for _, edit := range edits {
			c := d.clone()
			for i := range c.ops {
				edit(&c.ops[i])
			}
			c = c.without(func(_ int, op *rc.Op) bool {
				return op.Verb == rc.VSet && op.Field == rc.SetOpt && op.Opts == 0
			})
			if !yield(c) {
				return
			}
		}
		for _, six := range []bool{false, true} {
			for _, native := range []bool{true, false} {
				c := d.clone()
				for i := range c.ops {
					translate(&c.ops[i], six, native)
				}
				if !yield(c) {
					return
				}
			}
		}
		for _, a := range addrs {
			c := d.clone()
			f := c.families()
			for i := range c.ops {
				if hasAddr(&c.ops[i]) && fits(f[c.ops[i].Sock], a) {
					setAddr(&c.ops[i], a)
				}
			}
			if !yield(c) {
				return
			}
		}
	}
}

// simplerVerbs replaces a step by one that asks less.
func simplerVerbs(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		fam := d.families()
		for i := range d.ops {
			op := d.ops[i]
			replace := func(by rc.Op) bool {
				c := d.clone()
				c.ops[i] = by
				return yield(c)
			}
			ok := true
			switch op.Verb {
			case rc.VBind:
				ok = withTwin(d, i, yield)
			case rc.VConnect:
				ok = replace(rc.Bind(op.Sock, op.Addr)) && replace(rc.Listen(op.Sock)) && asChildren(d, i, yield)
			case rc.VListen:
				ok = replace(rc.Bind(op.Sock, netip.AddrPortFrom(simplest(fam[op.Sock]), ports[0])))
			case rc.VTimeWait:
				ok = replace(rc.Close(op.Sock)) && replace(rc.Disconnect(op.Sock))
			case rc.VDisconnect:
				ok = replace(rc.Close(op.Sock)) && replace(rc.Shutdown(op.Sock))
			case rc.VShutdown, rc.VExpire:
				ok = replace(rc.Close(op.Sock))
			case rc.VSet:
				ok = yield(withSetInLine(d, i))
			case rc.VInherit:
				ok = yield(withOwnChild(d, i, rc.Bind)) && yield(withOwnChild(d, i, rc.Connect)) && yield(withConnect(d, i)) && yield(withFreshChild(d, i))
			}
			if !ok {
				return
			}
		}
	}
}

// withTwin lets a new socket bind in step i, in place of one that had to be
// freed for it by an earlier step, which is left out.
func withTwin(d *draft, i int, yield func(draft) bool) bool {
	op, from := d.ops[i], d.origin()
	for j := range d.ops[:i] {
		if d.ops[j].Sock != op.Sock || d.ops[j].Verb != rc.VShutdown && d.ops[j].Verb != rc.VDisconnect {
			continue
		}
		c, twin := d.clone(), d.maxID()+1
		for k := range c.ops {
			if line := c.ops[k]; line.Verb == rc.VSocket && line.Sock == from[op.Sock] {
				line.Sock = twin
				c.ops[j] = line
			}
			if k >= i && about(&c.ops[k], op.Sock) {
				c.ops[k].Sock = twin
			}
		}
		if !yield(c) {
			return false
		}
	}
	return true
}

// asChildren makes the socket that connects in step i the child of one that
// listens before: no simpler step, but one that needs less of the rest.
func asChildren(d *draft, i int, yield func(draft) bool) bool {
	op := d.ops[i]
	for j := range d.ops[:i] {
		l := d.ops[j].Sock
		if d.ops[j].Verb != rc.VListen || l == op.Sock {
			continue
		}
		c := d.clone()
		c.ops[i] = rc.Inherit(l, op.Sock, withPort(op.Addr, 0))
		c = c.without(func(k int, o *rc.Op) bool { return k < i && about(o, op.Sock) })
		if !yield(c) {
			return false
		}
	}
	return true
}

// withSetInLine gives the socket from the start what step i sets later.
func withSetInLine(d *draft, i int) draft {
	set, from := d.ops[i], d.origin()
	c := d.without(func(j int, _ *rc.Op) bool { return i == j })
	for j := range c.ops {
		line := &c.ops[j]
		if line.Verb != rc.VSocket || line.Sock != from[set.Sock] {
			continue
		}
		switch set.Field {
		case rc.SetUID:
			line.UID = set.UID
		case rc.SetDev:
			line.Dev = set.Dev
		case rc.SetCPU:
			line.CPU = set.CPU
		default:
			line.Opts &^= set.Opts
			if set.On {
				line.Opts |= set.Opts
			}
		}
	}
	return c
}

// withOwnChild makes the child of inherit step i a socket of its own that binds
// or connects to the address.
func withOwnChild(d *draft, i int, do func(rc.ID, netip.AddrPort) rc.Op) draft {
	op, from := d.ops[i], d.origin()
	c := d.clone()
	c.ops[i] = do(op.Child, inheritedAddr(d, &op))
	for j := range d.ops {
		if line := d.ops[j]; line.Verb == rc.VSocket && line.Sock == from[op.Sock] {
			line.Sock = op.Child
			c.ops = slices.Insert(c.ops, i, line)
			break
		}
	}
	return c
}

// withFreshChild leaves out inherit step i; what the child does later, a new
// socket does.
func withFreshChild(d *draft, i int) draft {
	op, from := d.ops[i], d.origin()
	c := d.clone()
	for j := range d.ops {
		if line := d.ops[j]; line.Verb == rc.VSocket && line.Sock == from[op.Sock] {
			line.Sock = op.Child
			c.ops[i] = line
		}
	}
	return c
}

// withConnect lets the listener of inherit step i connect itself, and do what
// the child does later.
func withConnect(d *draft, i int) draft {
	op := d.ops[i]
	c := d.clone()
	c.ops[i] = rc.Connect(op.Sock, inheritedAddr(d, &op))
	for j := range c.ops {
		if o := &c.ops[j]; o.Sock == op.Child && o.Verb != rc.VSend && o.Verb != rc.VExit {
			o.Sock = op.Sock
		}
	}
	return c
}

// inheritedAddr is the local address of an inherited connection, with a port.
func inheritedAddr(d *draft, op *rc.Op) netip.AddrPort {
	if op.Addr.Port() != 0 {
		return op.Addr
	}
	for i := range d.ops {
		if o := &d.ops[i]; o.Verb == rc.VBind && o.Sock == op.Sock {
			return withPort(op.Addr, o.Addr.Port())
		}
	}
	return withPort(op.Addr, ports[0])
}

// attributes changes one attribute of one socket line or set step.
func attributes(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		used, uids, ds, ps := optsUsed(d), usersOf(d), devsOf(d), cpusOf(d)
		for i := range d.ops {
			op := d.ops[i]
			try := func(edit func(*rc.Op)) bool {
				c := d.clone()
				edit(&c.ops[i])
				return compareValues(&c.ops[i], &op) == 0 || yield(c)
			}
			ok := true
			switch {
			case op.Verb == rc.VSocket:
				ok = lineMoves(&op, used, uids, ds, ps, try)
			case op.Verb == rc.VSet:
				ok = setMoves(&op, uids, ds, ps, try)
			case op.Verb == rc.VNetns:
				ok = each([]rc.ConnTable{rc.TableAsSet, rc.SharedTable, rc.OwnTable}, func(v rc.ConnTable) bool { return try(func(o *rc.Op) { o.Table = v }) })
			case op.Verb == rc.VInherit:
				ok = each(ps, func(v rc.CPU) bool { return try(func(o *rc.Op) { o.CPU = v }) })
			case op.Verb == rc.VConnect:
				ok = try(func(o *rc.Op) { o.Unaccepted = !o.Unaccepted })
			case op.Verb == rc.VSend:
				ok = each(ds, func(v rc.Dev) bool { return try(func(o *rc.Op) { o.Dev = v }) }) &&
					each(ps, func(v rc.CPU) bool { return try(func(o *rc.Op) { o.CPU = v }) })
			}
			if !ok {
				return
			}
		}
	}
}

func lineMoves(op *rc.Op, used rc.Opt, uids []uint32, ds []rc.Dev, ps []rc.CPU, try func(func(*rc.Op)) bool) bool {
	both := rc.ReuseAddr | rc.ReusePort
	if !try(func(o *rc.Op) {
		o.Opts, o.UID, o.Dev, o.CPU, o.HasNet, o.Net, o.Range = 0, 0, 0, 0, false, 0, rc.PortRange{}
	}) ||
		!each([]rc.Opt{0, rc.ReuseAddr, rc.ReusePort, both}, func(v rc.Opt) bool {
			return try(func(o *rc.Op) { o.Opts = o.Opts&^both | v })
		}) {
		return false
	}
	for _, n := range options[2:] {
		if n == rc.V6Only && !op.Family.Is6() || !used.Has(n) && n != rc.V6Only {
			continue
		}
		if !try(func(o *rc.Op) { o.Opts ^= n }) {
			return false
		}
	}
	ok := each(uids, func(v uint32) bool { return try(func(o *rc.Op) { o.UID = v }) }) &&
		each(ds, func(v rc.Dev) bool { return try(func(o *rc.Op) { o.Dev = v }) }) &&
		each(ps, func(v rc.CPU) bool { return try(func(o *rc.Op) { o.CPU = v }) }) &&
		try(func(o *rc.Op) { o.HasNet, o.Net = false, 0 })
	if ok && op.Range != (rc.PortRange{}) {
		ok = each(ranges, func(v rc.PortRange) bool { return try(func(o *rc.Op) { o.Range = v }) })
	}
	return ok
}

func setMoves(op *rc.Op, uids []uint32, ds []rc.Dev, ps []rc.CPU, try func(func(*rc.Op)) bool) bool {
	return each([]rc.Opt{rc.ReuseAddr, rc.ReusePort}, func(v rc.Opt) bool {
		return try(func(o *rc.Op) { *o = rc.SetOption(o.Sock, v, false) }) &&
			try(func(o *rc.Op) { *o = rc.SetOption(o.Sock, v, true) })
	}) && (op.Field != rc.SetOpt || try(func(o *rc.Op) { o.On = !o.On })) && each(uids, func(v uint32) bool {
		return try(func(o *rc.Op) { *o = rc.SetOwner(o.Sock, v) })
	}) && each(ds, func(v rc.Dev) bool {
		return try(func(o *rc.Op) { *o = rc.SetDevice(o.Sock, v) })
	}) && (len(ps) == 1 || each(ps, func(v rc.CPU) bool {
		return try(func(o *rc.Op) { *o = rc.SetProcessor(o.Sock, v) })
	}))
}

func each[T any](list []T, try func(T) bool) bool {
	for _, v := range list {
		if !try(v) {
			return false
		}
	}
	return true
}

// order moves one step to another place.
func order(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for i := range d.ops {
			for j := range d.ops {
				if i == j || len(d.ops) > wide && j-i != 1 {
					continue
				}
				c := d.clone()
				op := c.ops[i]
				c.ops = slices.Insert(slices.Delete(c.ops, i, i+1), j, op)
				if !yield(c) {
					return
				}
			}
		}
	}
}
