package shrink

import (
	"cmp"
	"iter"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// spaces makes do with fewer namespaces and smaller batches: one namespace takes
// the place of another or of the trace's own, a member leaves a batch, two exits
// become one, a socket is in another namespace, two namespaces change places.
func spaces(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		nets := d.namespaces()
		_ = len(nets) == 0 || leaveBatches(d, yield) && joinExits(d, yield) && mergeSpaces(d, nets, yield) &&
			moveSockets(d, nets, yield) && joinBatches(d, nets, yield)
	}
}

// namespaces are those that a step makes.
func (d *draft) namespaces() (ids []rc.ID) {
	for i := range d.ops {
		if d.ops[i].Verb == rc.VNetns {
			ids = append(ids, d.ops[i].Sock)
		}
	}
	return ids
}

// withBatch is d with another batch in step i.
func (d *draft) withBatch(i int, batch []rc.ID) draft {
	c := d.clone()
	c.ops[i].Batch = batch
	return c
}

// leaveBatches takes one member out of one batch.
func leaveBatches(d *draft, yield func(draft) bool) bool {
	for i := range d.ops {
		b := d.ops[i].Batch
		for j := range b {
			if len(b) > 1 && !yield(d.withBatch(i, slices.Delete(slices.Clone(b), j, j+1))) {
				return false
			}
		}
	}
	return true
}

// joinBatches puts one namespace more into a batch: no simpler by itself.
func joinBatches(d *draft, nets []rc.ID, yield func(draft) bool) bool {
	for i := range d.ops {
		for _, id := range nets[:min(wide, len(nets))] {
			b := d.ops[i].Batch
			if len(b) > 0 && !slices.Contains(b, id) && !yield(d.withBatch(i, append(slices.Clone(b), id))) {
				return false
			}
		}
	}
	return true
}

// joinExits lets two batches exit together, in the place of either.
func joinExits(d *draft, yield func(draft) bool) bool {
	for i := range d.ops {
		for j := max(0, i-wide); j < i; j++ {
			if d.ops[i].Verb != rc.VExit || d.ops[j].Verb != rc.VExit {
				continue
			}
			both := slices.Concat(d.ops[j].Batch, d.ops[i].Batch)
			for _, at := range [][2]int{{j, i}, {i, j}} {
				c := d.withBatch(at[0], both)
				if !yield(c.without(func(k int, _ *rc.Op) bool { return k == at[1] })) {
					return false
				}
			}
		}
	}
	return true
}

// mergeSpaces gives the sockets of one namespace to another, or to the trace's
// own, and exchanges two.
func mergeSpaces(d *draft, nets []rc.ID, yield func(draft) bool) bool {
	for i, a := range nets {
		if !yield(d.merged(a, rc.NoID)) {
			return false
		}
		for j, b := range nets {
			if len(nets) > wide && i-j != 1 {
				continue
			}
			if i != j && !yield(d.merged(a, b)) || i < j && !yield(d.exchanged(a, b)) {
				return false
			}
		}
	}
	return true
}

// merged is d less namespace a, whose sockets are in b.
func (d *draft) merged(a, b rc.ID) draft {
	c := d.without(func(_ int, op *rc.Op) bool { return op.Verb == rc.VNetns && op.Sock == a })
	for i := range c.ops {
		op := &c.ops[i]
		if op.HasNet && op.Net == a {
			*op = inSpace(*op, b)
		}
		if slices.Contains(op.Batch, a) {
			op.Batch = slices.DeleteFunc(slices.Clone(op.Batch), func(id rc.ID) bool { return id == a })
		}
	}
	return c
}

// exchanged is d with a for b and b for a in all but the lines that make them.
func (d *draft) exchanged(a, b rc.ID) draft {
	other := func(id rc.ID) rc.ID {
		switch id {
		case a:
			return b
		case b:
			return a
		}
		return id
	}
	c := d.clone()
	for i := range c.ops {
		op := &c.ops[i]
		if op.HasNet {
			op.Net = other(op.Net)
		}
		op.Batch = slices.Clone(op.Batch)
		for j := range op.Batch {
			op.Batch[j] = other(op.Batch[j])
		}
	}
	return c
}

// inSpace is a socket line in another namespace, NoID being the trace's own.
func inSpace(line rc.Op, net rc.ID) rc.Op {
	if line.HasNet, line.Net = net != rc.NoID, net; !line.HasNet {
		line.Net = 0
	}
	return line
}

// moveSockets puts one socket into another namespace.
func moveSockets(d *draft, nets []rc.ID, yield func(draft) bool) bool {
	for i := range d.ops {
		line := d.ops[i]
		if line.Verb != rc.VSocket {
			continue
		}
		for _, net := range nets[:min(wide, len(nets))] {
			if line.HasNet && line.Net == net {
				continue
			}
			c := d.clone()
			c.ops[i] = inSpace(line, net)
			if !yield(c) {
				return false
			}
		}
	}
	return true
}

// place is where hoist puts a step.
type place struct{ segment, class, first int }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.segment, q.segment), cmp.Compare(p.class, q.class), cmp.Compare(p.first, q.first))
}

// gather moves namespaces as far to the front as no exit is in between: what a
// new one finds may hang on what went before. Behind them come their sockets.
// Both are in the order in which the steps use them; those of the trace's own
// namespace stand before all.
func (d *draft) gather(first []int) {
	segment, of := 0, map[rc.ID]int{}
	type placed struct {
		op rc.Op
		at place
	}
	all := make([]placed, len(d.ops))
	for i, op := range d.ops {
		at := place{segment, 3, 0}
		switch {
		case op.Verb == rc.VNetns:
			of[op.Sock] = segment
			at.class, at.first = 1, first[op.Sock]
		case op.Verb == rc.VSocket && op.HasNet:
			at = place{of[op.Net], 2, first[op.Sock]}
		case op.Verb == rc.VSocket:
			at = place{0, 0, first[op.Sock]}
		case op.Verb == rc.VExit:
			segment++
		}
		all[i] = placed{op, at}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.at.compare(b.at) })
	for i := range all {
		d.ops[i] = all[i].op
	}
}
