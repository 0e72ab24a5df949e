package spec

import (
	"cmp"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// Stated is a part of a machine, the stack above all, that can write down its
// state. Two states of which the same is written, each under some order of its
// own names, answer every step alike and lead to such states again.
type Stated interface {
	AppendState(dst []byte, order reusecheck.Order) []byte
}

// AppendState appends the state of a machine up to names: the stack's, and what
// oracle and ghost judge by. It is false where one of them cannot tell.
func (m *Machine) AppendState(dst []byte, order reusecheck.Order) ([]byte, bool) {
	for _, part := range [...]any{m.stack, m.oracle, m.ghost} {
		s, ok := part.(Stated)
		if !ok {
			return dst, false
		}
		dst = append(s.AppendState(dst, order), 0xff)
	}
	return dst, true
}

func (a *admissions) AppendState(dst []byte, order reusecheck.Order) []byte {
	for _, id := range order {
		if s := a.Admitted(id); s != nil {
			dst = s.AppendState(append(dst, order.Of(id)), order)
		}
	}
	return dst
}

func (r *remains) AppendState(dst []byte, order reusecheck.Order) []byte {
	return r.admissions.AppendState(append(dst, byte(flag(r.left > 0))), order)
}

func (g *tcpGhost) AppendState(dst []byte, order reusecheck.Order) []byte {
	for _, id := range order {
		for _, id := range [2]reusecheck.ID{id, id.OtherEnd()} {
			if s := g.Admitted(id); s != nil {
				dst = s.AppendState(append(dst, order.Of(id)), order)
			}
		}
	}
	// A port's place in the list tells only when it was first in use.
	byPort := slices.Clone(g.ports)
	slices.SortFunc(byPort, func(a, b ghostPort) int { return cmp.Compare(a.port, b.port) })
	for i := range byPort {
		p := &byPort[i]
		if !p.cache.Exists && !p.hasKey {
			continue
		}
		c := &p.cache
		dst = append(dst, byte(p.port), byte(p.port>>8), byte(flag(p.hasKey)), byte(flag(c.Exists)), byte(c.FastReuse), byte(c.FastReusePort), byte(c.UID), byte(c.UID>>8))
		if p.hasKey {
			dst = p.key.AppendState(dst, order)
		}
	}
	return dst
}
