package shrink

import (
	"iter"
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// alone replaces a connection that arrives by one that a socket has with itself,
// which needs neither a listener nor a port of its own range.
func alone(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for i := range d.ops {
			if op := &d.ops[i]; op.Verb == rc.VInherit && !yield(d.itself(i)) {
				return
			}
		}
	}
}

// itself is d with a socket like the listener in place of the child that step i
// makes: bound to the wildcard, so that it has no more of the address than a child.
func (d *draft) itself(i int) draft {
	in := d.ops[i]
	line, port := d.line(in.Sock), in.Addr.Port()
	if port == 0 { // the listener's, which is that nearly always
		port = ports[0]
	}
	line.Sock = in.Child
	to := netip.AddrPortFrom(rc.Canonical(line.Family, in.Addr.Addr()), port)
	c := d.without(func(int, *rc.Op) bool { return true })
	c.ops = append(c.ops, d.ops[:i]...)
	c.ops = append(c.ops, line,
		rc.Bind(in.Child, netip.AddrPortFrom(rc.Canonical(line.Family, netip.Addr{}), port)), rc.Connect(in.Child, to))
	c.ops = append(c.ops, d.ops[i+1:]...)
	return c
}

// line is the socket line that made a socket, or its listener.
func (d *draft) line(id rc.ID) rc.Op {
	from := d.origin()[id]
	for _, op := range d.ops {
		if op.Verb == rc.VSocket && op.Sock == from {
			return op
		}
	}
	return rc.Op{}
}
