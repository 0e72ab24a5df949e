package model

import (
	"fmt"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// families are those of the TIME_WAIT sockets that a pass takes.
type families [2]bool // IPv4, IPv6

var (
	only4    = families{true, false}
	only6    = families{false, true}
	bothFams = families{true, true}
)

// exit tears down a batch: what its sockets held is closed first, for an open
// socket keeps its namespace alive.
//
// The evidence is the entries stepped over, each once a walk: TIME_WAIT sockets
// and both ends of connections, of every namespace whose table it is. The slots,
// most of them empty, are the walks times the size of the table.
func (w *TimeWait) exit(batch []rc.ID, r rc.Result) rc.Result {
	var few [8]int32
	nets := few[:0]
	for _, id := range batch {
		k := w.homeOf(id)
		if k <= 0 || w.nets[k].id != id || w.nets[k].dead || slices.Contains(nets, k) {
			return answer(r, rc.EBADF, rc.RefuseGone)
		}
		nets = append(nets, k)
	}
	for _, k := range nets {
		w.in(k).closeAll()
		w.nets[k].dead = true
	}
	r.Kind, r.Path = rc.Exited, rc.PathFast
	if w.rules.ipv4First {
		w.exitIPv4(nets)
	}
	last := bothFams
	if !w.rules.onePass || w.rules.oneFamily {
		last = only4
	}
	if !w.rules.onePass && !w.rules.oneFamily {
		w.pass(nets, only6, &r)
	}
	if !w.rules.ipv4First {
		w.exitIPv4(nets)
	}
	w.pass(nets, last, &r)
	w.exitBatch(nets)
	for _, k := range nets {
		r.Left += w.forget(k)
	}
	switch {
	case w.rules.noPurge:
		r.Path, r.Reason = rc.PathNone, rc.WalkNever
	case r.Walks == 0:
		r.Reason = rc.SkipWalk
	default:
		r.Path = rc.PathScan
	}
	return r
}

// exitIPv4 is the IPv4 exit of each namespace.
func (w *TimeWait) exitIPv4(nets []int32) {
	if w.rules.row != rowBlock {
		return
	}
	for _, k := range nets {
		w.drop(k)
		if w.rules.skip == skipProposed && w.rowOf(k).freed {
			w.nets[k].cleared = true
		}
	}
}

// exitBatch is the end of the IPv4 batch exit.
func (w *TimeWait) exitBatch(nets []int32) {
	if w.rules.row != rowInside {
		return
	}
	for _, k := range nets {
		w.drop(k)
		if n := w.rowOf(k).refs; n != 0 {
			w.events = append(w.events, rc.Fault{Kind: faultLast, Sock: rc.NoID,
				Text: fmt.Sprintf("%s gives back its own 1, and its death row counts %d more", w.nets[k].id, n)})
		}
	}
}

// pass is the purge of one pass: at most one walk of each table.
func (w *TimeWait) pass(nets []int32, take families, r *rc.Result) {
	if w.rules.noPurge {
		return
	}
	r.Passes++
	shared := false
	for _, k := range nets {
		own := w.blocks[w.nets[k].block].slots != 0
		switch {
		case own && w.rules.ownAlways:
			w.walk(w.nets[k].block, take, r, rc.WalkAlways)
		case !own && shared:
		case !w.asks(k, take):
		case own:
			w.walk(w.nets[k].block, take, r, w.why())
		default:
			shared = true
			w.walk(none, take, r, w.why())
		}
	}
}

// asks reports whether a pass walks for the sake of this namespace.
func (w *TimeWait) asks(k int32, take families) bool {
	switch w.rules.skip {
	case skipProposed:
		return !w.nets[k].cleared && (take[0] || w.use(k).refs != w.rules.row.own())
	case skipMerged:
		return w.use(k).refs != w.rules.row.own()
	}
	return true
}

func (w *TimeWait) why() rc.Reason {
	if w.rules.skip == skipNever {
		return rc.WalkAlways
	}
	return rc.WalkCount
}

// walk steps over one table, that of a block or the shared one, and kills each
// TIME_WAIT socket of the families whose namespace is dead.
func (w *TimeWait) walk(table int32, take families, r *rc.Result, why rc.Reason) {
	r.Walks++
	if r.Reason != rc.WalkCount {
		r.Reason = why
	}
	for b := range w.blocks {
		m := &w.blocks[b]
		if m.slots != 0 && int32(b) != table || m.slots == 0 && table >= 0 {
			continue
		}
		for i := range m.tcp.socks {
			f := m.tcp.owns[i].flags
			if !m.tcp.socks[i].live || f&(established|timeWait) == 0 {
				continue
			}
			r.Visited++
			if f&timeWait != 0 && take[familyIndex(m.tcp.socks[i].is6)] && w.isDead(int32(b)) {
				w.kill(int32(b), int32(i))
			}
		}
	}
}

// isDead says what the kernel reads in the memory of a TIME_WAIT socket's
// namespace: who lives there now.
func (w *TimeWait) isDead(b int32) bool {
	k := w.blocks[b].lives
	return k < 0 || w.nets[k].dead
}

func (w *TimeWait) kill(b, i int32) {
	m := &w.blocks[b]
	id := m.tcp.socks[i].id
	m.tcp.leave(i)
	m.tcp.destroy(i)
	w.drop(w.homeOf(id))
	m.lost = slices.DeleteFunc(m.lost, func(l rc.ID) bool { return l == id })
}

// forget frees the memory of a namespace and gives the TIME_WAIT sockets of it
// that are left.
func (w *TimeWait) forget(k int32) (left int32) {
	b := w.nets[k].block
	m := &w.blocks[b]
	if m.tcp.waits != [2]int32{} {
		m.lost = m.lost[:0]
		for i := range m.tcp.socks {
			if s := &m.tcp.socks[i]; s.live {
				m.lost = append(m.lost, s.id)
				if w.homeOf(s.id) == k {
					left++
				}
			}
		}
	}
	m.lives = none
	if w.rules.row != rowBlock {
		m.row.freed = true
	}
	w.free = append(w.free, b)
	return left
}

// closeAll closes every socket as close does, so that TIME_WAIT sockets are all
// that is left.
func (t *TCP) closeAll() {
	for i := range t.socks {
		if t.socks[i].live && t.owns[i].flags&timeWait == 0 {
			t.close(int32(i))
		}
	}
}
