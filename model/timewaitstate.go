package model

import (
	"cmp"
	"encoding/binary"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// AppendState appends the state up to names: every namespace that lives, what is
// left of those that do not, and the memory that is free, as far as it can be
// told from memory that was never used.
func (w *TimeWait) AppendState(dst []byte, order rc.Order) []byte {
	order = w.withLeft(order)
	dst = w.appendNet(dst, 0, order)
	for _, id := range order {
		if k := w.homeOf(id); k > 0 && w.nets[k].id == id {
			dst = w.appendNet(append(dst, order.Of(id)), k, order)
		}
	}
	dst = append(dst, 'f')
	used := false
	for _, b := range w.free {
		if used = used || w.spoiled(b); used {
			dst = w.appendBlock(dst, b, order)
		}
	}
	dst = append(dst, 'e')
	for _, e := range w.events {
		dst = append(append(dst, e.Kind...), 0)
	}
	return dst
}

// withLeft adds to an order what nobody can name any more and is there all the
// same: TIME_WAIT sockets that outlive their namespace, by what they are, and
// namespaces that are gone and whose count is not at its end.
func (w *TimeWait) withLeft(order rc.Order) rc.Order {
	type socket struct {
		id   rc.ID
		text []byte
	}
	var left []socket
	for b := range w.blocks {
		m := &w.blocks[b]
		for i := range m.tcp.socks {
			s := &m.tcp.socks[i]
			if s.live && s.id >= 0 && order.Of(s.id) == 0 && (m.lives >= 0 || len(m.lost) > 0) {
				left = append(left, socket{s.id, m.tcp.appendSock([]byte{w.placeOf(int32(b), order)}, int32(i), nil)})
			}
		}
	}
	slices.SortFunc(left, func(a, b socket) int { return cmp.Or(slices.Compare(a.text, b.text), cmp.Compare(a.id, b.id)) })
	order = slices.Clone(order)
	for _, s := range left {
		order = append(order, s.id)
	}
	for _, s := range left {
		if id := w.nets[w.homeOf(s.id)].id; id != rc.NoID && order.Of(id) == 0 {
			order = append(order, id)
		}
	}
	for k := range w.nets {
		n := &w.nets[k]
		if r := w.rowOf(int32(k)); n.dead && order.Of(n.id) == 0 && (w.rules.row == rowBlock || w.blocks[n.block].last == int32(k)) && r.refs != 0 {
			order = append(order, n.id)
		}
	}
	return order
}

// placeOf is where a block of memory is, apart from names: free, or whose.
func (w *TimeWait) placeOf(b int32, order rc.Order) byte {
	if k := w.blocks[b].lives; k >= 0 {
		return order.Of(w.nets[k].id)
	}
	return 0xff - byte(slices.Index(w.free, b))
}

func (w *TimeWait) appendNet(dst []byte, k int32, order rc.Order) []byte {
	n := &w.nets[k]
	dst = appendRow(appendBools(dst, n.dead, n.cleared, w.blocks[n.block].lives == k, w.blocks[n.block].last == k), &n.row)
	if w.blocks[n.block].lives != k {
		return dst
	}
	return w.appendBlock(dst, n.block, order)
}

func appendRow(dst []byte, r *row) []byte {
	return binary.LittleEndian.AppendUint32(appendBools(dst, r.freed), uint32(r.refs))
}

// spoiled reports whether free memory still holds what another namespace left.
func (w *TimeWait) spoiled(b int32) bool {
	return len(w.blocks[b].lost) > 0 || w.blocks[b].row.refs != 0
}

func (w *TimeWait) appendBlock(dst []byte, b int32, order rc.Order) []byte {
	m := &w.blocks[b]
	dst = appendRow(append(binary.LittleEndian.AppendUint32(dst, uint32(m.slots)), byte(len(m.lost))), &m.row)
	var lost [][2]byte
	for _, id := range m.lost {
		lost = append(lost, [2]byte{order.Of(id), order.Of(w.nets[w.homeOf(id)].id)})
	}
	slices.SortFunc(lost, func(a, b [2]byte) int { return slices.Compare(a[:], b[:]) })
	for _, l := range lost {
		dst = append(dst, l[:]...)
	}
	if m.lives < 0 && len(m.lost) == 0 {
		return append(dst, 0)
	}
	return m.tcp.AppendState(append(dst, 1), order)
}
