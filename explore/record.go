package explore

import "github.com/reusecheck/reusecheck/model"

// layout is how states are stored: kinds by number, four to a word, then the
// ports, by number too where tables answer and as words elsewhere, then places
// where they count.
type layout struct {
	sockets, ports int
	ends, order    bool
	portIDs        bool
	width          int
}

func newLayout(e *engine, c *model.Codec) layout {
	l := layout{sockets: e.sockets, ports: len(e.world.Ports), ends: !e.passive, order: c.Ordered(), portIDs: e.pairwise(c)}
	ids := l.sockets
	if l.ends {
		ids *= 2
	}
	if l.portIDs {
		l.width = (ids + l.ports + 3) / 4
		return l
	}
	l.width = (ids+3)/4 + l.ports
	if l.order {
		l.width += 2
	}
	return l
}

// write packs a state into words; it fails when there are too many kinds.
func (l *layout) write(s *stepper, st *model.State, words []uint64) bool {
	for i := range words {
		words[i] = 0
	}
	n := 0
	put := func(ks *kinds, w uint64) bool {
		if w != 0 {
			id := ks.of(w).id
			if id >= maxKinds {
				return false
			}
			words[n>>2] |= uint64(id) << (16 * (n & 3))
		}
		n++
		return true
	}
	ok := true
	for i := range l.sockets {
		ok = put(s.kinds, st.Socks[i]) && ok
	}
	if l.ends {
		for i := range l.sockets {
			ok = put(s.kinds, st.Ends[i]) && ok
		}
	}
	if l.portIDs {
		for _, w := range st.Ports[:l.ports] {
			ok = put(s.ports, w) && ok
		}
		return ok
	}
	at := (n + 3) / 4
	at += copy(words[at:], st.Ports[:l.ports])
	if l.order {
		copy(words[at:], st.Order[:])
	}
	return ok
}

func (l *layout) read(s *stepper, words []uint64, st *model.State) {
	*st = model.State{}
	n := 0
	get := func(ks *kinds) uint64 {
		id := words[n>>2] >> (16 * (n & 3)) & (maxKinds - 1)
		n++
		if id == 0 {
			return 0
		}
		return ks.number(int(id)).word
	}
	for i := range l.sockets {
		st.Socks[i] = get(s.kinds)
	}
	if l.ends {
		for i := range l.sockets {
			st.Ends[i] = get(s.kinds)
		}
	}
	if l.portIDs {
		for i := range l.ports {
			st.Ports[i] = get(s.ports)
		}
		return
	}
	at := (n + 3) / 4
	at += copy(st.Ports[:l.ports], words[at:])
	if l.order {
		copy(st.Order[:], words[at:])
	}
}
