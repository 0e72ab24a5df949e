package explore

import (
	"fmt"
	"sync"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// kind is what all sockets with one packed word have in common.
type kind struct {
	id   int
	word uint64
	sock rc.Socket // without its ID
	seen rc.Socket // as the oracle sees it
	acts []action
	// renamed are the words that the symmetries make of it.
	renamed []uint64
}

// maxKinds is how many kinds a stored state can tell apart.
const maxKinds = 1 << 16

// registry numbers kinds as they are met, for all workers.
type registry struct {
	mu    sync.Mutex
	ids   map[uint64]*kind
	kinds []*kind
}

func newRegistry() *registry { return &registry{ids: map[uint64]*kind{}} }

// kinds is one worker's view of the registry: a table without locks in front.
type kinds struct {
	e     *engine
	table []kindSlot // open addressing, a power of two
	used  int
	byID  []*kind
	tcp   *model.TCP
	codec *model.Codec
}

type kindSlot struct {
	word uint64
	kind *kind
}

func newKinds(e *engine, c *model.Codec) *kinds {
	return &kinds{e: e, codec: c, table: make([]kindSlot, 256), tcp: e.kernel.New()}
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
	r := ks.e.registry
	r.mu.Lock()
	k := r.ids[w]
	if k == nil {
		k = ks.make(w)
		k.id = len(r.kinds) + 1
		r.ids[w] = k
		r.kinds = append(r.kinds, k)
	}
	ks.byID = append(ks.byID[:0], r.kinds...)
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
		r := ks.e.registry
		r.mu.Lock()
		ks.byID = append(ks.byID[:0], r.kinds...)
		r.mu.Unlock()
	}
	return ks.byID[id-1]
}

func (ks *kinds) make(w uint64) *kind {
	k := &kind{word: w}
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
	k.acts = ks.e.menu.of(&k.sock)
	for _, g := range ks.e.group {
		k.renamed = append(k.renamed, renameSock(g, w))
	}
	return k
}
