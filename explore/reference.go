package explore

import (
	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// byRelation judges a request for a named port by the oracle's pairwise
// relation. It leaves what is not such a request, or not answered by its owners,
// to the whole oracle.
func (s *stepper) byRelation(t *transition) (agrees, short bool) {
	var binder *rc.Socket
	row := 0
	port := 0
	switch {
	case s.vague, !t.act.fresh && s.slots[t.slot].word&driftBit != 0:
		return false, false
	case t.op.Verb == rc.VClose || t.op.Verb == rc.VSet && t.res.Kind == rc.OK || t.op.Verb == rc.VExpire:
		return t.res.Kind == rc.OK, t.res.Kind == rc.OK
	case t.res.Kind != rc.OK && !(t.res.Kind == rc.Failed && t.res.Errno == rc.EADDRINUSE):
		return false, false
	case t.op.Verb == rc.VBind && t.op.Addr.Port() != 0 && t.act.fresh:
		if t.create.Opts.Has(rc.V6Only) && t.op.Addr.Addr().Is4In6() {
			return false, false
		}
		s.before[0] = rc.Socket{ID: rc.NoID, Family: t.create.Family, Opts: t.create.Opts, UID: t.create.UID, Dev: t.create.Dev}
		binder, row = &s.before[0], t.act.id
		port = int(t.op.Addr.Port())
	case t.op.Verb == rc.VListen && !t.act.fresh && s.slots[t.slot].sock.Owner() && s.slots[t.slot].sock.State == rc.Idle:
		k := s.slots[t.slot]
		s.before[0] = k.sock
		s.before[0].ID = rc.NoID
		binder, row = &s.before[0], s.relation.fresh+k.id
		port = int(k.sock.Local.Port())
	default:
		return false, false
	}
	addr := rc.Canonical(binder.Family, t.op.Addr.Addr())
	if t.op.Verb == rc.VListen {
		addr = binder.Local.Addr()
	}
	req := oracle.Request{Binder: binder, Addr: addr, Port: uint16(port), Purpose: oracle.Named}
	for i, k := range s.slots[:s.e.sockets] {
		if k != nil && i != t.slot {
			t.reasons |= s.relation.ask(row, k, &req)
		}
		if e := s.ends[i]; e != nil {
			t.reasons |= s.relation.ask(row, e, &req)
		}
	}
	return (t.res.Kind == rc.OK) == (t.reasons == 0), true
}

// relation remembers what the oracle says of a binder and one owner: its
// verdict on a request is made of these alone.
type relation struct {
	fresh int
	rows  [][]uint8 // by binder, then by owner's kind: 0 unknown, else reason+1
	buf   []oracle.Conflict
	one   [1]rc.Socket
}

func (r *relation) init(fresh int) { r.fresh = fresh }

func (r *relation) ask(row int, owner *kind, req *oracle.Request) uint64 {
	for row >= len(r.rows) {
		r.rows = append(r.rows, nil)
	}
	rw := r.rows[row]
	if owner.id >= len(rw) {
		rw = append(rw, make([]uint8, owner.id+1-len(rw)+32)...)
		r.rows[row] = rw
	}
	v := rw[owner.id]
	if v == 0 {
		r.one[0] = owner.seen
		r.one[0].ID = 0
		v = 1
		if r.buf = oracle.Conflicts(r.one[:], req, r.buf[:0]); len(r.buf) > 0 {
			v = uint8(r.buf[0].Reason) + 1
		}
		rw[owner.id] = v
	}
	if v == 1 {
		return 0
	}
	return 1 << (v - 1)
}

// byOracle judges a step by an oracle that is brought to the state, and follows.
func (s *stepper) byOracle(t *transition) (agrees bool, reasons uint64) {
	if !s.restored {
		s.restored = true
		s.known = s.known[:0]
		for i := range s.e.sockets {
			s.know(s.slots[i], s.state.Socks[i], rc.ID(i))
			s.know(s.ends[i], s.state.Ends[i], rc.ID(i).OtherEnd())
		}
		s.origin.Restore(s.e.config, s.known)
	}
	s.judged.CopyFrom(s.origin)
	if t.act.fresh {
		s.judged.Follow(t.create, rc.Success)
	}
	v := s.judged.Judge(t.op, t.res.Answer)
	for _, c := range v.Conflicts {
		reasons |= 1 << c.Reason
	}
	s.judged.Follow(t.op, t.res.Answer)
	return v.Agrees, reasons
}

func (s *stepper) know(k *kind, w uint64, id rc.ID) {
	if k == nil {
		return
	}
	n := oracle.Known{Socket: k.seen, Used: w&usedBit != 0, Vague: w&vagueBit != 0, Shut: w&shutBit != 0}
	n.ID = id
	s.known = append(s.known, n)
}
