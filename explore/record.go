package explore

import "github.com/reusecheck/reusecheck/model"

// layout is how states are stored: kinds by number, four to a word, then the
// ports' words, then places where they count.
type layout struct {
	sockets, ports int
	ends, order    bool
	width          int
}

func newLayout(e *engine, ordered bool) layout {
	l := layout{sockets: e.sockets, ports: len(e.world.Ports), ends: !e.passive, order: ordered}
	ids := l.sockets
	if l.ends {
		ids *= 2
	}
	l.width = (ids+3)/4 + l.ports
	if l.order {
		l.width += 2
	}
	return l
}

// write packs a state into words; it fails when there are too many kinds.
func (l *layout) write(ks *kinds, st *model.State, words []uint64) bool {
	for i := range words {
		words[i] = 0
	}
	n := 0
	put := func(w uint64) bool {
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
		ok = put(st.Socks[i]) && ok
	}
	if l.ends {
		for i := range l.sockets {
			ok = put(st.Ends[i]) && ok
		}
	}
	at := (n + 3) / 4
	at += copy(words[at:], st.Ports[:l.ports])
	if l.order {
		copy(words[at:], st.Order[:])
	}
	return ok
}

func (l *layout) read(ks *kinds, words []uint64, st *model.State) {
	*st = model.State{}
	n := 0
	get := func() uint64 {
		id := words[n>>2] >> (16 * (n & 3)) & (maxKinds - 1)
		n++
		if id == 0 {
			return 0
		}
		return ks.number(int(id)).word
	}
	for i := range l.sockets {
		st.Socks[i] = get()
	}
	if l.ends {
		for i := range l.sockets {
			st.Ends[i] = get()
		}
	}
	at := (n + 3) / 4
	at += copy(st.Ports[:l.ports], words[at:])
	if l.order {
		copy(st.Order[:], words[at:])
	}
}
