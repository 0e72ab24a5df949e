package model

import (
	"strconv"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// TimeWait is one modelled kernel's network namespaces, as they come and go: the
// established tables, the TIME_WAIT sockets in them, the counts of those, and the
// teardown of a batch. It is a reusecheck.Stack that can be told what to choose
// and be looked into. What sockets do inside a namespace is [TCP]'s.
//
// The settings of a trace hold in every namespace of it. Of them,
// tcp_child_ehash_entries is read in the trace's own namespace, whose children
// the others are: they get a table of their own each, unless their netns step says
// otherwise.
type TimeWait struct {
	rules   TimeWaitRules
	tcp     Rules
	profile *Profile

	cfg      rc.Config // what every namespace starts with
	ownSlots int32     // slots of a child's own table, 0 where children share unless they are told

	nets   []netns // in the order in which they were made; the first is the trace's own
	blocks []block
	free   []int32 // freed blocks, the last one freed is the next to be used
	home   []int32 // by ID: the namespace of a socket, or the namespace itself
	events rc.Faults
}

// netns is one life of a namespace.
type netns struct {
	id      rc.ID
	block   int32 // its memory
	dead    bool  // nobody uses it any more
	cleared bool  // its pointer to the death row is cleared
	row     row   // rowBlock: it outlives the namespace
}

// row is a death row.
type row struct {
	refs  int32
	freed bool
}

// block is the memory of a namespace. What is left in it when it is freed is
// still there when it is used again.
type block struct {
	tcp   TCP
	lives int32   // the namespace that lives in it, none when it is free
	last  int32   // the namespace that lived in it last
	slots int32   // of its own table, 0 for the shared one
	row   row     // rowInside, rowCounter
	lost  []rc.ID // TIME_WAIT sockets of namespaces that lived here before
}

// Reset drops everything and starts with the trace's own namespace.
func (w *TimeWait) Reset(cfg rc.Config) error {
	if cfg.System != "" && cfg.System != rc.TimeWaitExit {
		return &rc.Unsupported{What: "system " + string(cfg.System), Why: "this model is of timewait"}
	}
	w.nets, w.blocks, w.free, w.home = w.nets[:0], w.blocks[:0], w.free[:0], w.home[:0]
	w.events, w.ownSlots = nil, 0
	w.cfg = rc.Config{System: rc.TCP, Ports: cfg.Ports}
	slots := int32(0)
	for _, s := range cfg.Sysctl {
		if strings.TrimPrefix(s.Name, "net.ipv4.") != childTable {
			w.cfg.Sysctl = append(w.cfg.Sysctl, s)
			continue
		}
		n, err := w.childSlots(s.Name, s.Value)
		if err != nil {
			return err
		}
		slots = n
	}
	if _, err := w.make(rc.NoID, 0); err != nil {
		return err
	}
	w.ownSlots = slots
	return nil
}

// slotsOf is the size of the own table that a child gets which is told, or not, what
// to have, 0 for the shared one. A maker tells by its setting, which it changes back.
func (w *TimeWait) slotsOf(t rc.ConnTable) int32 {
	switch {
	case t == rc.SharedTable:
		return 0
	case t == rc.OwnTable && w.ownSlots == 0:
		return rc.OwnTableSize
	}
	return w.ownSlots
}

const childTable = "tcp_child_ehash_entries"

// childSlots is the size of the table that a child gets, which the kernel rounds
// up to a power of two (seen on 6.18.44).
func (w *TimeWait) childSlots(name, value string) (int32, error) {
	const most = 16 << 20
	n, err := strconv.ParseUint(value, 10, 32)
	switch {
	case err != nil || n > most:
		return 0, settingError(name, "want a number from 0 to %d, not %q", most, value)
	case n > 0 && !w.rules.ownTables:
		return 0, &rc.Unsupported{What: "sysctl " + childTable, Why: "this kernel has one established table for all namespaces"}
	case n == 0:
		return 0, nil
	}
	slots := int32(1)
	for uint64(slots) < n {
		slots <<= 1
	}
	return slots, nil
}

// make starts a namespace, in the memory that was freed last.
func (w *TimeWait) make(id rc.ID, slots int32) (int32, error) {
	k := int32(len(w.nets))
	b := w.takeBlock()
	m := &w.blocks[b]
	if len(m.lost) == 0 {
		m.tcp.rules, m.tcp.profile = w.tcp, w.profile
		if err := m.tcp.Reset(w.cfg); err != nil {
			return none, err
		}
	}
	m.lives, m.last, m.slots, m.row = k, k, slots, row{}
	w.nets = append(w.nets, netns{id: id, block: b})
	w.rowOf(k).refs = w.rules.row.own()
	return k, nil
}

// takeBlock gives the memory of a new namespace.
func (w *TimeWait) takeBlock() int32 {
	if n := len(w.free); n > 0 {
		b := w.free[n-1]
		w.free = w.free[:n-1]
		return b
	}
	w.addBlock()
	b := len(w.blocks) - 1
	w.blocks[b].lost = w.blocks[b].lost[:0]
	return int32(b)
}

// addBlock adds a block, with the memory of one that a Reset left behind.
func (w *TimeWait) addBlock() {
	if n := len(w.blocks); n < cap(w.blocks) {
		w.blocks = w.blocks[:n+1]
		return
	}
	w.blocks = append(w.blocks, block{})
}

// rowOf is the death row that the namespace, or what is left of it, points at.
func (w *TimeWait) rowOf(k int32) *row {
	if w.rules.row == rowBlock {
		return &w.nets[k].row
	}
	return &w.blocks[w.nets[k].block].row
}

// homeOf is the namespace of a socket, or of a namespace's name; none for an ID
// that was never defined.
func (w *TimeWait) homeOf(id rc.ID) int32 {
	if id.IsOtherEnd() {
		id = id.OtherEnd()
	}
	if id < 0 || int(id) >= len(w.home) {
		return none
	}
	return w.home[id]
}

func (w *TimeWait) settle(id rc.ID, k int32) {
	for int(id) >= len(w.home) {
		w.home = append(w.home, none)
	}
	w.home[id] = k
}

// CopyFrom makes w a copy of o, reusing w's memory.
func (w *TimeWait) CopyFrom(o *TimeWait) {
	w.rules, w.tcp, w.profile = o.rules, o.tcp, o.profile
	w.cfg, w.ownSlots = o.cfg, o.ownSlots
	w.nets = append(w.nets[:0], o.nets...)
	w.free = append(w.free[:0], o.free...)
	w.home = append(w.home[:0], o.home...)
	w.events = append(w.events[:0:0], o.events...)
	for len(w.blocks) < len(o.blocks) {
		w.addBlock()
	}
	w.blocks = w.blocks[:len(o.blocks)]
	for i := range o.blocks {
		m, from := &w.blocks[i], &o.blocks[i]
		m.tcp.CopyFrom(&from.tcp)
		m.lives, m.last, m.slots, m.row = from.lives, from.last, from.slots, from.row
		m.lost = append(m.lost[:0], from.lost...)
	}
}

// Clone is a copy that shares nothing with w.
func (w *TimeWait) Clone() *TimeWait {
	c := new(TimeWait)
	c.CopyFrom(w)
	return c
}
