package explore

import "github.com/reusecheck/reusecheck/model"

// canon picks one state of all those that differ by a renaming: the least by
// its words, with the sockets in order.
type canon struct {
	s    *stepper
	idx  [model.MaxSockets]uint8
	best model.State
	cand model.State
}

// of makes st its own representative.
func (c *canon) of(st *model.State) {
	if !c.s.e.reduce {
		return
	}
	n := c.s.e.sockets
	if len(c.s.e.group) == 1 {
		c.sorted(st, &c.best, n)
		*st = c.best
		return
	}
	for g := range c.s.e.group {
		c.rename(st, g, n)
		if g == 0 {
			c.sorted(&c.cand, &c.best, n)
			continue
		}
		var sorted model.State
		c.sorted(&c.cand, &sorted, n)
		if less(&sorted, &c.best, n) {
			c.best = sorted
		}
	}
	*st = c.best
}

// rename fills the candidate with the state under one member of the group.
func (c *canon) rename(st *model.State, g, n int) {
	for i := range n {
		c.cand.Socks[i], c.cand.Ends[i] = 0, 0
		if w := st.Socks[i]; w != 0 {
			c.cand.Socks[i] = c.s.kinds.of(w).renamed[g]
		}
		if w := st.Ends[i]; w != 0 {
			c.cand.Ends[i] = c.s.kinds.of(w).renamed[g]
		}
	}
	r := c.s.e.group[g]
	for p, w := range st.Ports {
		c.cand.Ports[p] = renamePort(r, w)
	}
	c.cand.Order = st.Order
}

// sorted writes st into dst with its sockets in order; equal ones by their
// place among the owners, where the state knows it.
func (c *canon) sorted(st, dst *model.State, n int) {
	for i := range n {
		j := i
		for ; j > 0 && c.before(st, i, int(c.idx[j-1])); j-- {
			c.idx[j] = c.idx[j-1]
		}
		c.idx[j] = uint8(i)
	}
	for i := range n {
		dst.Socks[i], dst.Ends[i] = st.Socks[c.idx[i]], st.Ends[c.idx[i]]
	}
	for i := n; i < model.MaxSockets; i++ {
		dst.Socks[i], dst.Ends[i] = 0, 0
	}
	dst.Ports, dst.Order = st.Ports, st.Order
	if st.Order != [2]uint64{} {
		var number [16]uint64
		for i := range n {
			number[c.idx[i]+1] = uint64(i + 1)
			number[int(c.idx[i])+1+model.MaxSockets] = uint64(i + 1 + model.MaxSockets)
		}
		for k, w := range st.Order {
			dst.Order[k] = renumber(w, &number)
		}
	}
}

func renumber(w uint64, number *[16]uint64) uint64 {
	n := uint64(0)
	for at := uint(0); w>>at != 0; at += 4 {
		n |= number[w>>at&15] << at
	}
	return n
}

// before orders two sockets: the empty ones last.
func (c *canon) before(st *model.State, i, j int) bool {
	a, b := st.Socks[i], st.Socks[j]
	if a != b {
		return a > b
	}
	if a, b = st.Ends[i], st.Ends[j]; a != b {
		return a > b
	}
	if st.Order == [2]uint64{} {
		return false
	}
	for k := range st.Order {
		if a, b := place(st.Order[k], uint64(i+1)), place(st.Order[k], uint64(j+1)); a != b {
			return a < b
		}
	}
	return false
}

// place is where an owner's number stands in an order word, 16 for nowhere.
func place(w, number uint64) uint {
	for at := uint(0); at < 16; at++ {
		if w>>(4*at)&15 == number {
			return at
		}
	}
	return 16
}

func less(a, b *model.State, n int) bool {
	for i := range n {
		if a.Socks[i] != b.Socks[i] {
			return a.Socks[i] < b.Socks[i]
		}
	}
	for i := range n {
		if a.Ends[i] != b.Ends[i] {
			return a.Ends[i] < b.Ends[i]
		}
	}
	for i := range a.Ports {
		if a.Ports[i] != b.Ports[i] {
			return a.Ports[i] < b.Ports[i]
		}
	}
	for i := range a.Order {
		if a.Order[i] != b.Order[i] {
			return a.Order[i] < b.Order[i]
		}
	}
	return false
}
