package model

import (
	"fmt"

	rc "github.com/reusecheck/reusecheck"
)

// CacheOf is the cache of a port's bucket in the trace's own namespace.
func (w *TimeWait) CacheOf(port uint16) rc.Cache { return w.in(0).CacheOf(port) }

// Sockets calls yield for every live socket of every namespace that is not torn
// down. What a faulty kernel leaves behind of one that is, no step can name.
func (w *TimeWait) Sockets(yield func(*rc.Socket) bool) {
	on := true
	for b := range w.blocks {
		k := w.blocks[b].lives
		if k < 0 || !on {
			continue
		}
		w.blocks[b].tcp.Sockets(func(s *rc.Socket) bool {
			if w.homeOf(s.ID) == k {
				if id := w.nets[k].id; id != rc.NoID {
					s.HasNet, s.Net = true, id
				}
				on = yield(s)
			}
			return on
		})
	}
}

// The kinds of faults that the teardown of namespaces can have.
const (
	faultOutlives = "a TIME_WAIT socket outlives its namespace"
	faultStranger = "a namespace has a TIME_WAIT socket of another"
	faultFreed    = "a TIME_WAIT socket's death row is freed"
	faultTally    = "the count of TIME_WAIT sockets is wrong"
	faultEnd      = "the count of TIME_WAIT sockets does not end at zero"
	faultLast     = "a namespace's own 1 is not the last"
	faultUsed     = "the death row is used after it is freed"
)

// Check verifies that the death rows count what they count and end at zero, that
// nothing is used after it is freed, and the structure of every namespace. What
// is wrong with the kernel is a [rc.Faults]; an error of any other type is a
// mistake of the model, or what [TCP.Check] gives.
func (w *TimeWait) Check() error {
	tally := make([]int32, len(w.nets))
	faults := append(rc.Faults(nil), w.events...)
	for b := range w.blocks {
		m := &w.blocks[b]
		var waits [2]int32
		for i := range m.tcp.socks {
			s := &m.tcp.socks[i]
			if !s.live || m.tcp.owns[i].flags&timeWait == 0 {
				continue
			}
			waits[familyIndex(s.is6)]++
			tally[w.homeOf(s.id)]++
			faults = append(faults, w.checkSocket(int32(b), s.id)...)
		}
		if waits != m.tcp.waits {
			return fmt.Errorf("there are %d TIME_WAIT sockets, and %d are counted", waits, m.tcp.waits)
		}
		if err := m.tcp.Check(); err != nil {
			return err
		}
	}
	for k := range w.nets {
		faults = append(faults, w.checkNet(int32(k), tally[k])...)
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// checkSocket looks at one TIME_WAIT socket in the memory of block b.
func (w *TimeWait) checkSocket(b int32, id rc.ID) (faults rc.Faults) {
	k := w.homeOf(id)
	if w.blocks[b].lives == k {
		return nil
	}
	fault := func(kind, format string, args ...any) {
		faults = append(faults, rc.Fault{Kind: kind, Sock: id, Text: id.String() + " " + fmt.Sprintf(format, args...)})
	}
	if now := w.blocks[b].lives; now >= 0 {
		fault(faultStranger, "was left by %s, and %s has it for its own", w.nets[k].id, w.nets[now].id)
	} else {
		fault(faultOutlives, "is in TIME_WAIT, and its namespace %s is gone", w.nets[k].id)
	}
	if w.rowOf(k).freed {
		fault(faultFreed, "counts in the death row of %s, which is freed", w.nets[k].id)
	}
	return faults
}

// checkNet looks at the death row of one namespace with so many TIME_WAIT sockets.
func (w *TimeWait) checkNet(k, tally int32) rc.Faults {
	n := &w.nets[k]
	if w.rules.row != rowBlock && w.blocks[n.block].last != k {
		return nil // its row is somebody else's by now
	}
	own := w.rules.row.own()
	if n.dead {
		own = 0
	}
	r := w.rowOf(k)
	name := "the trace's own namespace"
	if n.id != rc.NoID {
		name = n.id.String()
	}
	switch {
	case r.refs-own != tally:
		return rc.Faults{{Kind: faultTally, Sock: rc.NoID,
			Text: fmt.Sprintf("the death row of %s counts %d, and there are %d TIME_WAIT sockets and its own %d", name, r.refs, tally, own)}}
	case n.dead && r.refs != 0:
		return rc.Faults{{Kind: faultEnd, Sock: rc.NoID, Text: fmt.Sprintf("%s is gone, and its death row counts %d", name, r.refs)}}
	case n.dead && w.rules.row == rowBlock && !r.freed:
		return rc.Faults{{Kind: faultEnd, Sock: rc.NoID, Text: fmt.Sprintf("%s is gone, and its death row is not freed", name)}}
	}
	return nil
}
