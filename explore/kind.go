package explore

import (
	"fmt"
	"sync"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// kind is what all sockets with one packed word have in common, or all ports.
type kind struct {
	id   int
	word uint64
	// renamed are the words that the symmetries make of it.
	renamed []uint64

	// Of sockets only:
	sock rc.Socket // without its ID
	seen rc.Socket // as the oracle sees it
	acts []action
	// plain says that the oracle sees the socket that the stack has, so that
	// tables may answer; rows are those of acts then, negative for none.
	plain bool
	rows  []int
	fresh []against // how it stands to the requests of fresh sockets
}

// maxKinds is how many kinds a stored state can tell apart.
const maxKinds = 1 << 16

// registry numbers kinds as they are met, for all workers.
type registry struct {
	mu    sync.Mutex
	ids   map[uint64]*kind
	kinds []*kind
	rows  []*row // those of fresh sockets first, nil where there is none
	acts  map[rc.Socket][]action
}

func newRegistry() *registry {
	return &registry{ids: map[uint64]*kind{}, acts: map[rc.Socket][]action{}}
}

// steps are the menu's for a socket. Most kinds share theirs, for they differ in
// what only the kernel remembers; so the menu is shown nothing else.
func (r *registry) steps(m *menu, s *rc.Socket) []action {
	shown := rc.Socket{Family: s.Family, Opts: s.Opts, UID: s.UID, Dev: s.Dev, State: s.State, Local: s.Local, AddrLocked: s.AddrLocked}
	as, ok := r.acts[shown]
	if !ok {
		as = m.of(&shown)
		r.acts[shown] = as
	}
	return as
}

// kinds is one worker's view of a registry: a table without locks in front.
type kinds struct {
	e        *engine
	registry *registry
	table    []kindSlot // open addressing, a power of two
	used     int
	byID     []*kind
	rows     []*row
	tcp      *model.TCP
	codec    *model.Codec
}

type kindSlot struct {
	word uint64
	kind *kind
}

func newKinds(e *engine, c *model.Codec, r *registry) *kinds {
	return &kinds{e: e, registry: r, codec: c, table: make([]kindSlot, 256), tcp: e.kernel.New()}
}

func mix(w uint64) uint64 {
	w *= 0x9e3779b97f4a7c15
	return w ^ w>>29
}

// of is the kind of a word that is not 0.
func (ks *kinds) of(w uint64) *kind {
	mask := uint64(len(ks.table) - 1)
	for i := mix(w) & mask; ; i = (i + 1) & mask {
		switch s := &ks.table[i]; s.word {
		case w:
			return s.kind
		case 0:
			return ks.meet(w)
		}
	}
}

// meet takes over a kind from the registry, which makes it if it is new.
func (ks *kinds) meet(w uint64) *kind {
	r := ks.registry
	r.mu.Lock()
	k := r.ids[w]
	if k == nil {
		k = ks.make(w)
		k.id = len(r.kinds) + 1
		r.ids[w] = k
		r.kinds = append(r.kinds, k)
	}
	ks.refresh()
	r.mu.Unlock()
	if ks.used++; ks.used*2 > len(ks.table) {
		old := ks.table
		ks.table = make([]kindSlot, 2*len(old))
		for _, s := range old {
			if s.word != 0 {
				ks.put(s)
			}
		}
	}
	ks.put(kindSlot{w, k})
	return k
}

func (ks *kinds) refresh() {
	ks.byID = append(ks.byID, ks.registry.kinds[len(ks.byID):]...)
	ks.rows = append(ks.rows, ks.registry.rows[len(ks.rows):]...)
}

func (ks *kinds) put(s kindSlot) {
	mask := uint64(len(ks.table) - 1)
	i := mix(s.word) & mask
	for ks.table[i].word != 0 {
		i = (i + 1) & mask
	}
	ks.table[i] = s
}

// number is the kind with an ID, from 1.
func (ks *kinds) number(id int) *kind {
	if id > len(ks.byID) {
		ks.registry.mu.Lock()
		ks.refresh()
		ks.registry.mu.Unlock()
	}
	return ks.byID[id-1]
}

// rowsNow are the rows, of which there are at least n.
func (ks *kinds) rowsNow(n int) []*row {
	if n > len(ks.rows) {
		ks.registry.mu.Lock()
		ks.refresh()
		ks.registry.mu.Unlock()
	}
	return ks.rows
}

func (ks *kinds) make(w uint64) *kind {
	k := &kind{word: w}
	if ks.registry == ks.e.ports {
		for _, g := range ks.e.group {
			k.renamed = append(k.renamed, renamePort(g, w))
		}
		return k
	}
	for _, g := range ks.e.group {
		k.renamed = append(k.renamed, renameSock(g, w))
	}
	st := model.State{}
	st.Socks[0] = w
	if err := ks.codec.Load(ks.tcp, ks.e.kernel, &st); err != nil {
		panic(fmt.Sprintf("a word that was packed cannot be loaded: %v", err))
	}
	ks.tcp.Sockets(func(s *rc.Socket) bool {
		k.sock = *s
		return false
	})
	k.seen = ks.e.seen(w, k.sock, ks.codec.Addr)
	k.acts = ks.registry.steps(ks.e.menu, &k.sock)
	if ks.e.pairwise(ks.codec) && w&(vagueBit|driftBit) == 0 {
		ks.tabulate(k)
	}
	return k
}

// begin makes the rows of fresh sockets.
func (ks *kinds) begin() {
	r := ks.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		for i := range ks.e.menu.fresh {
			r.rows = append(r.rows, ks.e.rowOf(&ks.e.menu.fresh[i], nil))
		}
	}
	ks.refresh()
}

// tabulate gives a kind its rows, and finds out how it stands to fresh sockets.
func (ks *kinds) tabulate(k *kind) {
	r := ks.registry
	k.plain = true
	for i := range k.acts {
		n := -1
		if row := ks.e.rowOf(&k.acts[i], k); row != nil {
			n = len(r.rows)
			r.rows = append(r.rows, row)
		}
		k.rows = append(k.rows, n)
	}
	for _, row := range r.rows[:len(ks.e.menu.fresh)] {
		a := isKnown
		if row != nil {
			a = ks.ask(row, k)
		}
		k.fresh = append(k.fresh, a)
	}
}
