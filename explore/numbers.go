package explore

import "github.com/reusecheck/reusecheck/model"

// numbers picks representatives as canon does, of states that are numbers.
type numbers struct {
	f          *fast
	best, cand numbered
}

type numbered struct {
	socks [model.MaxSockets]uint64
	ports [model.MaxPorts]uint64
}

// of makes ids those of their representative.
func (c *numbers) of(ids *[8]uint16) {
	s := c.f.w.step
	n, ports := s.e.sockets, len(s.e.world.Ports)
	var of [model.MaxSockets]*kind
	m := 0
	for _, id := range ids[:n] {
		if id != 0 {
			of[m] = s.kinds.number(int(id))
			m++
		}
	}
	var at [model.MaxPorts]*kind
	for p := range ports {
		if id := ids[n+p]; id != 0 {
			at[p] = s.ports.number(int(id))
		}
	}
	best, cand := &c.best, &c.cand
	for g := range s.e.group {
		sortInto(&cand.socks, of[:m], g)
		for p := range ports {
			if cand.ports[p] = 0; at[p] != nil {
				cand.ports[p] = at[p].renamed[g]
			}
		}
		if g == 0 || cand.less(best, m, ports) {
			best, cand = cand, best
		}
	}
	for i := range n {
		if ids[i] = 0; i < m {
			ids[i] = uint16(s.kinds.of(best.socks[i]).id)
		}
	}
	for p := range ports {
		if ids[n+p] = 0; best.ports[p] != 0 {
			ids[n+p] = uint16(s.ports.of(best.ports[p]).id)
		}
	}
}

// sortInto orders kinds by their words under a member of the group, the greatest first.
func sortInto(words *[model.MaxSockets]uint64, of []*kind, g int) {
	for i, k := range of {
		w := k.renamed[g]
		j := i
		for ; j > 0 && words[j-1] < w; j-- {
			words[j] = words[j-1]
		}
		words[j] = w
	}
}

func (a *numbered) less(b *numbered, socks, ports int) bool {
	for i := range socks {
		if a.socks[i] != b.socks[i] {
			return a.socks[i] < b.socks[i]
		}
	}
	for i := range ports {
		if a.ports[i] != b.ports[i] {
			return a.ports[i] < b.ports[i]
		}
	}
	return false
}
