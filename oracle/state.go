package oracle

import (
	"math/bits"

	"github.com/reusecheck/reusecheck"
)

func appendBools(dst []byte, bs ...bool) []byte {
	w := byte(0)
	for i, b := range bs {
		if b {
			w |= 1 << i
		}
	}
	return append(dst, w)
}

// AppendState appends all that u judges by, up to names: where two histories have
// come to the same, u says the same of what follows.
func (u *UDP) AppendState(dst []byte, order reusecheck.Order) []byte {
	for _, id := range order {
		s := u.find(id)
		if s == nil {
			dst = append(dst, 0)
			continue
		}
		dst = appendBools(s.AppendState(append(dst, 1), order), s.vague, s.lost, s.grouped, s.heard)
		if s.grouped {
			dst = s.was.AppendState(dst, order)
		}
	}
	return dst
}

// AppendState appends all that t judges by, up to names.
func (t *TCP) AppendState(dst []byte, order reusecheck.Order) []byte {
	for _, id := range order {
		for _, id := range [2]reusecheck.ID{id, id.OtherEnd()} {
			m := t.find(id)
			if m == nil {
				dst = append(dst, 0)
				continue
			}
			dst = appendBools(m.AppendState(append(dst, 1), order), m.vague, m.used, m.lost, m.shut, m.heard)
			dst = append(dst, order.Of(m.waits))
		}
	}
	return appendBools(dst, t.waiting)
}

// AppendState appends all that t judges by, up to names.
func (t *TimeWait) AppendState(dst []byte, order reusecheck.Order) []byte {
	dst = t.own.AppendState(dst, order)
	for _, id := range order {
		if i := t.index(id); i >= 0 && t.nets[i].id == id && t.nets[i].live {
			dst = append(dst, order.Of(id), byte(bits.Len(uint(t.nets[i].entries))))
			dst = t.nets[i].tcp.AppendState(dst, order)
		}
	}
	return dst
}
