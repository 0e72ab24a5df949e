package explore

import (
	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/oracle"
)

// row is a step of one kind of socket that is answered from tables: its answer
// is made of the cache and of how each single owner stands to it.
type row struct {
	act    *action
	binder *kind // nil for a fresh socket
	port   int   // index of the port at issue, negative for none
	asks   bool  // the owners are asked: bind and listen; else it acts alone
}

// against is how one owner of a port stands to a row's request: in the low byte
// the reasons for which the scan refuses, in the next one those of the oracle.
type against uint32

const (
	oracleShift         = 8
	isOwner     against = 1 << 16 // it owns the port at issue
	isVisited   against = 1 << 17 // the scan looks at it
	isKnown     against = 1 << 18

	scanBits   against = 1<<oracleShift - 1
	oracleBits against = scanBits << oracleShift
)

// reasonBit is the place of a refusal among eight.
func reasonBit(r rc.Reason) against { return 1 << (r - rc.RefuseNotShared) }

// oracleReasons are the oracle's refusals as a set of reasons.
func (a against) oracleReasons() uint64 {
	return uint64(a&oracleBits>>oracleShift) << rc.RefuseNotShared
}

// circumstance is all that a step's outcome depends on beside its row and the
// word of its port.
type circumstance int

const (
	alone     circumstance = iota // no owner, or none but the one who acts
	unvisited                     // owners, none of whom the scan looks at
	passing                       // owners that let the request pass
	refusing                      // owners of whom one does not
	circumstances
)

func (a against) circumstance() circumstance {
	switch {
	case a&scanBits != 0:
		return refusing
	case a&isVisited != 0:
		return passing
	case a&isOwner != 0:
		return unvisited
	}
	return alone
}

// pairwise reports whether steps are answered from tables: where nothing
// connects and neither the order of owners nor who made a bucket decides. The
// tables hold the model's answers and are compared with it step by step in the
// tests (see engine.thorough).
func (e *engine) pairwise(c *model.Codec) bool {
	return e.passive && !e.beyond && !c.Ordered() && !c.MakersCount()
}

// rowOf is the row of a step, nil where only the model itself answers.
func (e *engine) rowOf(a *action, k *kind) *row {
	r := &row{act: a, binder: k, port: -1}
	switch {
	case a.fresh:
		r.asks, r.port = a.op.Verb == rc.VBind, e.portIndex(a.op.Addr.Port())
		if !r.asks || r.port < 0 {
			return nil
		}
	case a.op.Verb == rc.VListen:
		r.asks, r.port = true, model.PortOf(k.word)-1
		if r.port < 0 || k.sock.State != rc.Idle {
			return nil
		}
	case a.op.Verb == rc.VClose || a.op.Verb == rc.VSet:
		r.port = model.PortOf(k.word) - 1
	default:
		return nil
	}
	return r
}

func (e *engine) portIndex(port uint16) int {
	for i, p := range e.world.Ports {
		if p == port {
			return i
		}
	}
	return -1
}

// ask puts a row's request to a stack with one owner and a cache that says
// nothing, and to the oracle.
func (ks *kinds) ask(r *row, owner *kind) against {
	if model.PortOf(owner.word) != r.port+1 {
		return isKnown
	}
	var st model.State
	st.Socks[0] = owner.word
	st.Ports[r.port] = model.BareCache
	binder := rc.Socket{Family: r.act.create.Family, Opts: r.act.create.Opts, UID: r.act.create.UID, Dev: r.act.create.Dev}
	addr := rc.Canonical(binder.Family, r.act.op.Addr.Addr())
	if r.binder != nil {
		st.Socks[1] = r.binder.word
		binder, addr = r.binder.sock, r.binder.sock.Local.Addr()
	}
	binder.ID = rc.NoID
	res := ks.once(&st, 1, r.act)
	a := isKnown | isOwner
	if res.Path == rc.PathScan {
		a |= isVisited
	}
	if res.Errno == rc.EADDRINUSE {
		a |= reasonBit(res.Reason)
	}
	o := [1]rc.Socket{owner.seen}
	o[0].ID = 0
	req := oracle.Request{Binder: &binder, Addr: addr, Port: ks.e.world.Ports[r.port], Purpose: oracle.Named}
	for _, c := range oracle.Conflicts(o[:], &req, nil) {
		a |= reasonBit(c.Reason) << oracleShift
	}
	return a
}

// once performs one step on a stack that is loaded for it.
func (ks *kinds) once(st *model.State, slot rc.ID, a *action) rc.Result {
	if ks.codec.Load(ks.tcp, ks.e.kernel, st) != nil {
		return rc.Result{}
	}
	create, op := a.at(slot)
	if a.fresh {
		if _, err := ks.tcp.Do(create); err != nil {
			return rc.Result{}
		}
	}
	res, err := ks.tcp.Do(op)
	if err != nil {
		return rc.Result{}
	}
	return res
}
