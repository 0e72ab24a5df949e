package oracle

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// TimeWait is the reference for a history of network namespaces that come and go.
// Each namespace is a world of its own, judged by a [TCP] of its own: nothing in
// one stands in the way of anything in another. Of an exit it says that nothing
// of the batch is left, after a look at every socket of every namespace.
//
// A namespace that is made begins with the settings that Linux ships, whatever
// those of the trace's own namespace are (seen on 6.18.44); the one setting that
// reaches it is its parent's tcp_child_ehash_entries (ip-sysctl), which gives it
// a connection table of its own.
//
// An exit ends whatever sockets its namespaces still have, as the end of the last
// process there does, and their TIME_WAIT sockets with them
// (network_namespaces(7): a namespace is freed when its last process is gone).
//
// A TimeWait is used by one goroutine at a time.
type TimeWait struct {
	own     TCP          // the trace's own namespace
	nets    []*namespace // those that were made, in order
	spare   []*namespace // to be used again
	in      []int32      // index+1 in nets by the ID of a socket or namespace, 0 for the trace's own
	entries int          // slots of a made namespace's own table, 0 where it shares its parent's unless it is told
	config  reusecheck.Config

	exit Exit // the last verdict's
}

type namespace struct {
	id      reusecheck.ID
	live    bool
	entries int // slots of its own table, 0 where it shares its parent's
	tcp     TCP
}

// Exit is what an exit meets, by a look at every socket of every namespace.
type Exit struct {
	// Own is how many namespaces of the batch have a connection table of their
	// own; the others share one.
	Own int
	// Namespaces is the size of the batch, Waiting the number of those in it
	// that have TIME_WAIT sockets.
	Namespaces, Waiting int
	// Four and Six are the TIME_WAIT sockets of the batch by the family of
	// the socket: what is left of an IPv4 connection of a dual-stack socket
	// is an IPv6 one.
	Four, Six int
	// Need is the walks through a table that two passes, one a family, need:
	// none for a family of which the table's namespaces have no TIME_WAIT
	// socket. Most is what can be justified: one a pass through each table
	// whose namespaces have any.
	Need, Most int
	// Gone are the TIME_WAIT sockets of the batch, Spared those of all other
	// namespaces of which it is certain that they are there. Both are valid
	// until the next call.
	Gone, Spared []reusecheck.ID
}

// NewTimeWait is a TimeWait with no namespace but the trace's own.
func NewTimeWait() *TimeWait {
	t := &TimeWait{}
	t.Reset(reusecheck.Config{})
	return t
}

// Reset forgets everything and starts anew.
func (t *TimeWait) Reset(c reusecheck.Config) {
	t.own.Reset(c)
	t.config = c
	t.spare = append(t.spare, t.nets...)
	t.nets, t.in = t.nets[:0], t.in[:0]
	t.entries = 0
	for _, s := range c.Sysctl {
		name := strings.ReplaceAll(s.Name, "/", ".")
		if name[strings.LastIndexByte(name, '.')+1:] == "tcp_child_ehash_entries" {
			if n, err := strconv.Atoi(s.Value); err == nil && n > 0 {
				t.entries = 1 << bits.Len(uint(n-1)) // rounded up to a power of two (ip-sysctl)
			}
		}
	}
}

// Sockets calls yield for every live socket of every namespace that lives until
// it returns false. The socket is the oracle's own: read it, and only until the
// next call.
func (t *TimeWait) Sockets(yield func(*reusecheck.Socket) bool) {
	more := true
	each := func(s *reusecheck.Socket) bool {
		more = yield(s)
		return more
	}
	t.own.Sockets(each)
	for _, n := range t.nets {
		if more && n.live {
			n.tcp.Sockets(each)
		}
	}
}

// index is the place of id's namespace (id's own if it is one) in nets, -1 for
// the trace's own namespace.
func (t *TimeWait) index(id reusecheck.ID) int {
	if id < 0 || int(id) >= len(t.in) {
		return -1
	}
	return int(t.in[id]) - 1
}

// world is the namespace of a socket, nil when that is gone.
func (t *TimeWait) world(id reusecheck.ID) *TCP {
	switch i := t.index(id); {
	case i < 0:
		return &t.own
	case t.nets[i].live:
		return &t.nets[i].tcp
	}
	return nil
}

// put notes that id is a socket of the i-th namespace.
func (t *TimeWait) put(id reusecheck.ID, i int) {
	if id < 0 {
		return
	}
	for len(t.in) <= int(id) {
		t.in = append(t.in, 0)
	}
	t.in[id] = int32(i + 1)
}

// openDead is why a step on a socket is left open that went with its namespace.
const openDead = "the socket's namespace is gone"

// openUncounted is why an exit is left open that may have been right.
const openUncounted = "what the exit did was not counted"

// Judge says what op should be answered, given what the stack answered. It
// changes nothing.
func (t *TimeWait) Judge(op reusecheck.Op, got reusecheck.Answer) Verdict {
	switch op.Verb {
	case reusecheck.VSocket, reusecheck.VNetns:
		return agree(got)
	case reusecheck.VExit:
		return t.judgeExit(op.Batch, got)
	}
	w := t.world(op.Sock)
	if w == nil {
		return open(got, openDead)
	}
	return w.Judge(op, got)
}

// judgeExit: nothing of the batch is left, and no table is walked for nothing.
// How the TIME_WAIT sockets are found is not prescribed: both families in one
// walk are as good as one walk a family.
func (t *TimeWait) judgeExit(batch []reusecheck.ID, got reusecheck.Answer) Verdict {
	t.look(batch)
	v := Verdict{Want: got, Agrees: true, Exit: &t.exit}
	if got.Kind == reusecheck.Failed {
		return v // it has not happened
	}
	e := &t.exit
	if got.Kind == reusecheck.Exited && got.Left <= 0 && int(got.Walks) <= e.Most {
		if !got.Counted() {
			v.Open = openUncounted
		}
		return v
	}
	v.Agrees = false
	v.Want = reusecheck.Answer{Kind: reusecheck.Exited, Walks: got.Walks}
	if got.Kind != reusecheck.Exited || int(got.Walks) > e.Most || got.Walks == 0 {
		v.Want.Walks = int32(e.Need)
	}
	return v
}

// look goes through every socket of every namespace.
func (t *TimeWait) look(batch []reusecheck.ID) {
	e := &t.exit
	*e = Exit{Namespaces: len(batch), Gone: e.Gone[:0], Spared: e.Spared[:0]}
	t.own.spared(e)
	shared4, shared6 := 0, 0 // of those who share a table
	for _, n := range t.nets {
		if !n.live {
			continue
		}
		if !slices.Contains(batch, n.id) {
			n.tcp.spared(e)
			continue
		}
		four, six := n.tcp.count(e)
		e.Four, e.Six = e.Four+four, e.Six+six
		if four+six > 0 {
			e.Waiting++
		}
		if n.entries == 0 {
			shared4, shared6 = shared4+four, shared6+six
			continue
		}
		e.Own++
		e.walks(four, six)
	}
	e.walks(shared4, shared6)
}

// walks adds those of one table that has so many TIME_WAIT sockets of the batch.
func (e *Exit) walks(four, six int) {
	e.Need += min(four, 1) + min(six, 1)
	e.Most += 2 * min(four+six, 1)
}

// count tallies a namespace's TIME_WAIT sockets by family.
func (t *TCP) count(e *Exit) (four, six int) {
	for i := range t.socks {
		m := &t.socks[i]
		if !m.live || m.State != reusecheck.TimeWait {
			continue
		}
		e.Gone = append(e.Gone, m.ID)
		if m.Family.Is6() {
			six++
		} else {
			four++
		}
	}
	return four, six
}

// spared notes the TIME_WAIT sockets that are certain.
func (t *TCP) spared(e *Exit) {
	for i := range t.socks {
		if m := &t.socks[i]; m.live && m.State == reusecheck.TimeWait && !m.vague {
			e.Spared = append(e.Spared, m.ID)
		}
	}
}

// Follow takes note that op was answered got: right or wrong, it has happened.
func (t *TimeWait) Follow(op reusecheck.Op, got reusecheck.Answer) {
	done := got.Kind != reusecheck.Failed
	switch op.Verb {
	case reusecheck.VNetns:
		if done {
			t.make(op.Sock, op.Table)
		}
		return
	case reusecheck.VExit:
		if done {
			t.end(op.Batch)
		}
		return
	case reusecheck.VSocket:
		if op.HasNet {
			t.put(op.Sock, t.index(op.Net))
			t.create(op, done)
			return
		}
	case reusecheck.VInherit:
		if i := t.index(op.Sock); i >= 0 {
			t.put(op.Child, i)
		}
	}
	w := t.world(op.Sock)
	if w == nil {
		return
	}
	if op.Verb == reusecheck.VTimeWait && w != &t.own && t.nets[t.index(op.Sock)].full() {
		op.Verb = reusecheck.VClose
	}
	w.Follow(op, got)
}

// create adds a socket of a made namespace; what its listener accepts takes after it.
func (t *TimeWait) create(op reusecheck.Op, done bool) {
	w, net := t.world(op.Sock), op.Net
	if w == nil || !done {
		return
	}
	op.HasNet, op.Net = false, 0
	w.Follow(op, reusecheck.Success)
	if m := w.find(op.Sock); m != nil {
		m.HasNet, m.Net = true, net
	}
}

// make adds a namespace. The settings of a trace hold in each that it makes; which
// table of connections it has can be said of each.
func (t *TimeWait) make(id reusecheck.ID, table reusecheck.ConnTable) {
	n := &namespace{}
	if k := len(t.spare); k > 0 {
		n, t.spare = t.spare[k-1], t.spare[:k-1]
	}
	n.id, n.live, n.entries = id, true, t.entries
	switch {
	case table == reusecheck.SharedTable:
		n.entries = 0
	case table == reusecheck.OwnTable && n.entries == 0:
		n.entries = reusecheck.OwnTableSize
	}
	n.tcp.Reset(t.config)
	t.nets = append(t.nets, n)
	t.put(id, len(t.nets)-1)
}

// end tears down a batch.
func (t *TimeWait) end(batch []reusecheck.ID) {
	for _, n := range t.nets {
		if slices.Contains(batch, n.id) {
			n.live = false
		}
	}
}

// full reports whether a namespace can have no further TIME_WAIT socket: one with
// a table of its own has half as many as slots (ip-sysctl, tcp_child_ehash_entries
// and tcp_max_tw_buckets), and a connection then ends without one.
func (n *namespace) full() bool {
	if n.entries == 0 {
		return false
	}
	waiting := 0
	for i := range n.tcp.socks {
		if m := &n.tcp.socks[i]; m.live && m.State == reusecheck.TimeWait {
			waiting++
		}
	}
	return waiting >= n.entries/2
}
