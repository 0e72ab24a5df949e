package model

import (
	"errors"

	rc "github.com/reusecheck/reusecheck"
)

// Do performs one operation.
func (w *TimeWait) Do(op rc.Op) (rc.Result, error) { return w.DoAs(op, rc.Answer{}) }

// Can reports what keeps the model from saying how an operation ends, nil for
// nothing: what keeps [TCP] from it.
func (w *TimeWait) Can(op rc.Op) error {
	switch op.Verb {
	case rc.VNetns:
		if op.Table == rc.OwnTable && !w.rules.ownTables {
			return &rc.Unsupported{What: "a connection table of a namespace's own", Why: "this kernel has one established table for all namespaces"}
		}
		return nil
	case rc.VExit:
		return nil
	case rc.VSend:
		return &rc.Unsupported{What: "send steps", Why: "they are not of system timewait"}
	}
	if k := w.netOf(op); k >= 0 && !w.nets[k].dead {
		err := w.in(k).Can(inside(op))
		if lacks := new(rc.Unsupported); op.Verb == rc.VSocket && errors.As(err, &lacks) {
			return &rc.Unsupported{What: op.Family.String() + " sockets", Why: "this model is of TCP namespaces"}
		}
		return err
	}
	return nil
}

// netOf is the namespace that a socket operation happens in.
func (w *TimeWait) netOf(op rc.Op) int32 {
	switch {
	case op.Verb != rc.VSocket:
		return w.homeOf(op.Sock)
	case op.HasNet:
		return w.homeOf(op.Net)
	}
	return 0
}

// inside is the operation as the namespace sees it.
func inside(op rc.Op) rc.Op {
	op.HasNet, op.Net = false, 0
	return op
}

func (w *TimeWait) in(k int32) *TCP { return &w.blocks[w.nets[k].block].tcp }

// DoAs performs one operation; where the rules leave a choice it is made as
// seen, if some choice leads there.
func (w *TimeWait) DoAs(op rc.Op, seen rc.Answer) (rc.Result, error) {
	r := rc.Result{Decider: rc.NoID}
	if err := w.Can(op); err != nil {
		return r, err
	}
	switch op.Verb {
	case rc.VNetns:
		k, err := w.make(op.Sock, w.slotsOf(op.Table))
		if err != nil {
			return r, err
		}
		w.settle(op.Sock, k)
		r.Answer, r.Path = rc.Success, rc.PathNone
		return r, nil
	case rc.VExit:
		return w.exit(op.Batch, r), nil
	}
	k := w.netOf(op)
	if k < 0 || w.nets[k].dead {
		return answer(r, rc.EBADF, rc.RefuseGone), nil
	}
	if id, ok := op.Defines(); ok {
		w.settle(id, k)
	}
	b := &w.blocks[w.nets[k].block]
	before := b.tcp.waits[0] + b.tcp.waits[1]
	r, err := b.tcp.DoAs(inside(op), seen)
	w.count(k, b.tcp.waits[0]+b.tcp.waits[1]-before)
	return r, err
}

// count lets the death row follow an operation in a namespace after which there
// are more or fewer TIME_WAIT sockets in its memory.
func (w *TimeWait) count(k, more int32) {
	b := &w.blocks[w.nets[k].block]
	if more < 0 && len(b.lost) > 0 {
		kept := b.lost[:0]
		for _, id := range b.lost {
			if b.tcp.find(id) >= 0 {
				kept = append(kept, id)
				continue
			}
			w.drop(w.homeOf(id))
			more++
		}
		b.lost = kept
	}
	for ; more < 0; more++ {
		w.drop(k)
	}
	w.rowOf(k).refs += more
}

// use reads or changes the death row of a namespace, which must still be there.
func (w *TimeWait) use(k int32) *row {
	r := w.rowOf(k)
	if r.freed {
		w.events = append(w.events, rc.Fault{Kind: faultUsed, Sock: rc.NoID,
			Text: "the death row of " + w.nets[k].id.String() + " is used after it was freed"})
	}
	return r
}

// drop takes one off the count of a namespace.
func (w *TimeWait) drop(k int32) {
	r := w.use(k)
	r.refs--
	if r.refs == 0 && w.rules.row == rowBlock {
		r.freed = true
	}
}
