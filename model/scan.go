package model

import rc "github.com/reusecheck/reusecheck"

// ask is what the owner scan wants to know of every owner.
type ask struct {
	self  int32
	addr  addr
	flags flags
	uid   uint32
	dev   rc.Dev
	// relax lets reuseaddr sockets share, share lets reuseport sockets: both
	// for a port that was asked for, neither at first for an automatic one.
	relax, share bool
	// autoFirst is the first round of an automatic port.
	autoFirst bool
}

func (t *TCP) asking(i int32) ask {
	o := &t.owns[i]
	return ask{self: i, addr: t.socks[i].addr, flags: o.flags, uid: o.uid, dev: o.dev, relax: true, share: true}
}

// verdict is what a scan or a cache answered.
type verdict struct {
	path    rc.Path
	visited int
	decider int32
	reason  rc.Reason
}

func (v verdict) refused() bool { return v.reason >= rc.RefuseNotShared }

// pair gives the rule by which an overlapping owner stands against the asker,
// ReasonNone when it does not.
func (t *TCP) pair(q *ask, i int32) rc.Reason {
	o := &t.owns[i]
	if i == q.self || q.dev != 0 && o.dev != 0 && q.dev != o.dev {
		return rc.ReasonNone
	}
	both := q.flags & o.flags
	sharing := both&reusePort != 0 && (o.flags&timeWait != 0 || t.uid(i) == q.uid)
	if both&reuseAddr != 0 && o.flags&listens == 0 {
		switch {
		case q.relax && q.share:
			return rc.ReasonNone
		case q.relax && (!sharing || !t.rules.autoReuseNoTwin):
			return rc.ReasonNone
		case q.autoFirst && t.rules.autoSharesReuse:
			return rc.ReasonNone
		}
		return rc.RefuseAutomatic
	}
	if sharing && (q.share || q.autoFirst && t.rules.autoSharesPort) {
		return rc.ReasonNone
	}
	return refusal(q.flags, o.flags, !q.share)
}

// refusal names the rule that stands between two sockets that may not share.
func refusal(asker, owner flags, automatic bool) rc.Reason {
	switch both := asker & owner; {
	case automatic:
		return rc.RefuseAutomatic
	case both&reusePort != 0:
		return rc.RefuseUID
	case both&reuseAddr != 0:
		return rc.RefuseListening
	case asker&reusePort != 0:
		return rc.RefuseNoReusePort
	case asker&reuseAddr != 0:
		return rc.RefuseNoReuseAddr
	}
	return rc.RefuseNotShared
}

// uid is the user that an owner counts as.
func (t *TCP) uid(i int32) uint32 {
	if t.rules.childUID0 && t.owns[i].flags&pending != 0 {
		return 0
	}
	return t.owns[i].uid
}

// scan looks at the owners of a port until one conflicts. A wildcard binder
// meets every owner; another one, where there are address buckets, only those
// of the wildcards that reach it and of its own address.
func (t *TCP) scan(q *ask, p int32) verdict {
	v := verdict{path: rc.PathScan, decider: none, reason: rc.AdmitScan}
	r := &t.rules
	switch {
	case !r.addrBuckets, q.addr.wildcard(), !r.mappedByBucket && q.addr.is4() && t.socks[q.self].is6:
		t.scanAll(q, p, &v)
	default:
		is6 := t.socks[q.self].is6
		for b := t.ports[p].addrs; b >= 0 && !v.refused(); b = t.addrs[b].next {
			if t.reaches(b, q.addr, is6) {
				t.scanBucket(q, b, &v)
				if r.firstWildcard {
					break
				}
			}
		}
		if b := t.findAddrBucket(p, q.addr, is6); b >= 0 && !v.refused() {
			t.scanBucket(q, b, &v)
		}
	}
	if v.visited == 0 {
		v.path = rc.PathNone
	}
	return v
}

// scanAll meets every owner of the port.
func (t *TCP) scanAll(q *ask, p int32, v *verdict) {
	if !t.rules.addrOwnersOnly {
		for i := t.ports[p].owners; i >= 0; i = t.owns[i].nextP {
			v.visited++
			t.note(t.socks[i].id)
			if t.meets(q, i) && t.against(q, i, v) {
				return
			}
		}
		return
	}
	for b := t.ports[p].addrs; b >= 0; b = t.addrs[b].next {
		for i := t.addrs[b].owners; i >= 0; i = t.owns[i].next {
			v.visited++
			t.note(t.socks[i].id)
			if t.meets(q, i) && t.against(q, i, v) {
				return
			}
		}
	}
}

// meets reports whether the asker and an owner can be reached through one
// address. To an IPv4 wildcard every IPv6 socket that is not v6only seems to
// have an IPv4 address, also one that came to a specific IPv6 address by a
// connection (a bind to one makes it v6only; seen on 6.18).
func (t *TCP) meets(q *ask, i int32) bool {
	a, only := t.socks[i].addr, t.owns[i].flags&v6only != 0
	switch {
	case q.addr.is4() && only:
		return false
	case q.addr == any4 && !t.socks[q.self].is6 && !a.is4():
		return true
	}
	return overlap(q.addr, q.flags&v6only != 0, a, only)
}

// scanBucket meets the owners of one address bucket, which is known to overlap.
func (t *TCP) scanBucket(q *ask, b int32, v *verdict) {
	skip := flags(0) // v6only owners keep away from IPv4
	if q.addr.is4() && !(t.rules.mappedSeesV6Only && t.socks[q.self].is6) {
		skip = v6only
	}
	n := 0
	i := t.addrs[b].owners
	for owns := t.owns; i >= 0; {
		o := &owns[i]
		n++
		// The common case, two reuseaddr sockets, is answered here: this is
		// the loop that the first-bind bug makes long.
		if o.flags&skip == 0 && !(q.relax && q.share && q.flags&o.flags&reuseAddr != 0 && o.flags&listens == 0) &&
			t.against(q, i, v) {
			break
		}
		i = o.next
	}
	v.visited += n
	if t.watched {
		t.noteBucket(b, n)
	}
}

func (t *TCP) against(q *ask, i int32, v *verdict) bool {
	if r := t.pair(q, i); r != rc.ReasonNone {
		v.decider, v.reason = i, r
		return true
	}
	return false
}

// reaches reports whether a wildcard bucket can reach a binder of an address
// that is not a wildcard.
func (t *TCP) reaches(b int32, a addr, is6 bool) bool {
	w, r := &t.addrs[b], &t.rules
	switch {
	case w.addr.any6():
		return !(r.noAny6ForIPv4 && !is6)
	case w.addr != any4 || !a.is4():
		return false
	case r.linkedByIPv6:
		return true
	case !is6:
		// The old form knew an IPv4 binder's any4, and ::ffff:0.0.0.0 by an
		// exception made for it.
		return !w.made6 || !r.noAnyMForIPv4
	}
	return !w.made6 // a v4-mapped binder found 0.0.0.0 of an IPv4 socket only
}
