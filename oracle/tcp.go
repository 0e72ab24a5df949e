package oracle

import (
	"net/netip"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// TCP is the reference for a history of TCP operations: it follows the live
// sockets by what was done and what the stack answered, and judges each answer
// by visiting every owner of the port. It never asks the stack.
//
// A TCP is used by one goroutine at a time. IDs are expected to be small, as
// those of a trace are: memory grows with the largest.
type TCP struct {
	world world

	socks []member // by slot; a slot keeps its place while its socket lives
	free  []int32  // slots without a socket
	named []int32  // slot+1 by ID, 0 for none
	ends  []int32  // slot+1 by the ID of whose other end it is
	ports []port   // the ports in use, ascending
	lost  int      // sockets whose port the stack did not tell

	waiting bool // a connection has waited in some listener's queue

	conflicts []Conflict // the last verdict's
}

// member is a live socket with what only the oracle needs to know of it.
type member struct {
	reusecheck.Socket

	live bool
	// vague says that neither answer nor document tells whether it exists
	// with these attributes: nothing is judged that hangs on it.
	vague bool
	// used says that it has connected, tried to, or listened. Later kernels
	// refuse a second career (EINVAL) and nothing documents it.
	used bool
	lost bool // holds a port that is not known
	// shut says that it is what a shutdown left of a connection: listen(2)
	// knows it as connected until it is disconnected.
	shut bool
	// heard says that a packet came in after the socket asked for a processor:
	// SO_INCOMING_CPU, which is set and read, may name that packet's since.
	heard bool
	// waits is the listener in whose queue it is, NoID for none.
	waits reusecheck.ID

	next, prev int32 // the other owners of its port, none for the last and first
}

// port is one port in use and its first owner.
type port struct {
	number uint16
	first  int32
}

// none is the slot of no socket.
const none int32 = -1

// New is a TCP in a fresh namespace with the default configuration.
func New() *TCP {
	t := &TCP{}
	t.Reset(reusecheck.Config{})
	return t
}

// Reset forgets every socket and starts a fresh namespace.
func (t *TCP) Reset(c reusecheck.Config) {
	t.world.configure(&c)
	t.socks = t.socks[:0]
	t.free = t.free[:0]
	t.named = t.named[:0]
	t.ends = t.ends[:0]
	t.ports = t.ports[:0]
	t.lost, t.waiting = 0, false
}

// CopyFrom makes t the same as src, sharing nothing with it that changes.
func (t *TCP) CopyFrom(src *TCP) {
	t.world = src.world // its lists are never changed in place
	t.socks = append(t.socks[:0], src.socks...)
	t.free = append(t.free[:0], src.free...)
	t.named = append(t.named[:0], src.named...)
	t.ends = append(t.ends[:0], src.ends...)
	t.ports = append(t.ports[:0], src.ports...)
	t.lost, t.waiting = src.lost, src.waiting
}

// Sockets calls yield for every live socket until it returns false, TIME_WAIT
// sockets and nameless ends included, in no particular order. The socket is the
// oracle's own: read it, and only until the next call.
func (t *TCP) Sockets(yield func(*reusecheck.Socket) bool) {
	for i := range t.socks {
		if m := &t.socks[i]; m.live && !yield(&m.Socket) {
			return
		}
	}
}

// index is where id's slot is noted. Negative IDs are other ends.
func (t *TCP) index(id reusecheck.ID) (list *[]int32, i int) {
	if id.IsOtherEnd() {
		return &t.ends, int(id.OtherEnd())
	}
	return &t.named, int(id)
}

// find gives id's socket, nil when there is none.
func (t *TCP) find(id reusecheck.ID) *member {
	list, i := t.index(id)
	if i < 0 || i >= len(*list) || (*list)[i] == 0 {
		return nil
	}
	return &t.socks[(*list)[i]-1]
}

// slot is where m stands.
func (t *TCP) slot(m *member) int32 {
	list, i := t.index(m.ID)
	return (*list)[i] - 1
}

// add takes in a socket that holds no port yet. Earlier member pointers are
// invalid afterwards.
func (t *TCP) add(s reusecheck.Socket) *member {
	list, i := t.index(s.ID)
	if i < 0 {
		return nil
	}
	if old := t.find(s.ID); old != nil {
		t.remove(old)
	}
	for len(*list) <= i {
		*list = append(*list, 0)
	}
	var slot int32
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		slot = int32(len(t.socks))
		t.socks = append(t.socks, member{})
	}
	(*list)[i] = slot + 1
	m := &t.socks[slot]
	local := s.Local
	s.Local = netip.AddrPort{}
	*m = member{Socket: s, live: true, waits: reusecheck.NoID, next: none, prev: none}
	t.move(m, local)
	return m
}

// remove ends a socket, wherever it stands.
func (t *TCP) remove(m *member) {
	t.move(m, netip.AddrPort{})
	list, i := t.index(m.ID)
	slot := (*list)[i] - 1
	(*list)[i] = 0
	*m = member{}
	t.free = append(t.free, slot)
}

// move gives m another local address and port, and another place among the
// owners if the port differs.
func (t *TCP) move(m *member, local netip.AddrPort) {
	if m.lost {
		m.lost = false
		t.lost--
	}
	was, is := m.Local.Port(), local.Port()
	m.Local = local
	if was == is {
		return
	}
	if was != 0 {
		t.unlink(m, was)
	}
	if is != 0 {
		t.link(m, is)
	}
}

func (t *TCP) link(m *member, number uint16) {
	slot := t.slot(m)
	i, found := t.place(number)
	if !found {
		t.ports = slices.Insert(t.ports, i, port{number, none})
	}
	m.prev, m.next = none, t.ports[i].first
	if m.next != none {
		t.socks[m.next].prev = slot
	}
	t.ports[i].first = slot
}

func (t *TCP) unlink(m *member, number uint16) {
	if m.next != none {
		t.socks[m.next].prev = m.prev
	}
	switch {
	case m.prev != none:
		t.socks[m.prev].next = m.next
	default:
		i, _ := t.place(number)
		if t.ports[i].first = m.next; m.next == none {
			t.ports = slices.Delete(t.ports, i, i+1)
		}
	}
	m.next, m.prev = none, none
}

// place is where number stands, or would, among the ports in use.
func (t *TCP) place(number uint16) (int, bool) {
	lo, hi := 0, len(t.ports)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if t.ports[mid].number < number {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(t.ports) && t.ports[lo].number == number
}

// firstOf is the first owner of a port, none when it has no owner.
func (t *TCP) firstOf(number uint16) int32 {
	if i, found := t.place(number); found {
		return t.ports[i].first
	}
	return none
}
