package model

import rc "github.com/reusecheck/reusecheck"

// fast asks the cache of a port that has owners.
func (t *TCP) fast(q *ask, p int32) rc.Reason {
	b := &t.ports[p]
	if b.fast > 0 && q.flags&reuseAddr != 0 && q.flags&listens == 0 {
		return rc.AdmitReuseAddr
	}
	return t.match(q, p)
}

// match is the reuseport half of the fast path: the binder is like the socket
// that the cache describes.
func (t *TCP) match(q *ask, p int32) rc.Reason {
	b := &t.ports[p]
	switch {
	case b.share <= 0, q.flags&reusePort == 0, b.key.uid != q.uid:
		return rc.ReasonNone
	case b.share == rc.FastAny:
		return rc.AdmitAny
	case t.strictMatch(q, &b.key):
		return rc.AdmitStrict
	}
	return rc.ReasonNone
}

func (t *TCP) strictMatch(q *ask, k *key) bool {
	kOnly, only := k.flags&v6only != 0, q.flags&v6only != 0
	switch r := &t.rules; {
	case r.exactStrict:
		const read = reuseAddr | reusePort | v6only
		return k.addr == q.addr && k.is6 == t.socks[q.self].is6 && k.flags&read == q.flags&read && k.dev == q.dev
	case r.standInStrict:
		return standsIn(q, k)
	case r.strictAsIPv4:
		return fourForm(k.addr) == fourForm(q.addr) || fourForm(k.addr) == 0 || fourForm(q.addr) == 0
	case r.symmetricStrict:
		return overlap(k.addr, kOnly, q.addr, only)
	}
	return covers(k.addr, k.is6, kOnly, q.addr, only)
}

// standsIn reports whether every owner that conflicts with the binder conflicts
// with the cached socket too: that one reaches all that the binder reaches, sees
// every device that it sees, and needed reuseaddr no more than it.
func standsIn(q *ask, k *key) bool {
	kOnly, only := k.flags&v6only != 0, q.flags&v6only != 0
	reaches := false
	switch {
	case k.addr.any6():
		reaches = !kOnly || !q.addr.is4() && (only || !q.addr.any6())
	case k.addr == any4:
		reaches = q.addr.is4()
	default:
		reaches = k.addr == q.addr
	}
	return reaches && (k.dev == 0 || k.dev == q.dev) && k.flags&reuseAddr&^q.flags == 0
}

// fourForm is what an IPv6 socket's address looks like to IPv4 code: a
// v4-mapped one is its IPv4 part, the wildcard is 0, every other is one and the
// same stand-in.
func fourForm(a addr) uint32 {
	switch {
	case a.is4():
		return uint32(a.lo)
	case a.any6():
		return 0
	}
	return 0x7f000006
}

// update enters a socket that was granted the port into the cache, before it
// becomes an owner.
func (t *TCP) update(q *ask, p, ab int32, hit bool) {
	b, r := &t.ports[p], &t.rules
	if hit && !r.updateOnHit {
		return
	}
	reuse := int8(0)
	if q.flags&reuseAddr != 0 && q.flags&listens == 0 {
		reuse = 1
	}
	first := b.count == 0
	switch r.first {
	case firstNever:
		first = false
	case firstInverted:
		first = !first
	}
	k := key{uid: q.uid, addr: q.addr, flags: q.flags & (reuseAddr | reusePort | v6only), dev: q.dev, is6: t.socks[q.self].is6}
	switch {
	case first:
		b.fast, b.share = reuse, 0
		if q.flags&reusePort != 0 {
			b.share, b.key = rc.FastAny, k
		}
	default:
		if reuse == 0 {
			b.fast = 0
		}
		switch {
		case q.flags&reusePort == 0:
			b.share = 0
		case t.match(q, p) != rc.ReasonNone:
		case r.strict:
			b.share, b.key = rc.FastStrict, k
		default:
			b.share = 0 // before STRICT another user's socket closed the way
		}
	}
	if ab >= 0 {
		t.addrs[ab].fast, t.addrs[ab].share = b.fast, b.share
	}
}

// request asks for a port (bind, and listen for the second time). On success
// the socket is an owner and the cache knows it; a refusal changes nothing.
func (t *TCP) request(i int32, port uint16) verdict {
	q := t.asking(i)
	p := t.index.get(port)
	v := verdict{path: rc.PathNone, decider: none, reason: rc.AdmitEmpty}
	if p >= 0 {
		if hit := t.fast(&q, p); hit != rc.ReasonNone {
			v.path, v.reason = rc.PathFast, hit
		} else if v = t.scan(&q, p); v.refused() {
			return v
		}
	}
	t.grant(&q, port, v.path == rc.PathFast)
	return v
}

// grant makes the asking socket an owner of the port.
func (t *TCP) grant(q *ask, port uint16, hit bool) {
	i := q.self
	s := &t.socks[i]
	p := t.portBucketFor(port)
	b := t.addrBucketFor(p, s.addr, s.is6, 0)
	t.update(q, p, b, hit)
	if t.owns[i].port < 0 {
		s.num = port
		t.join(i, p, b)
	}
}
