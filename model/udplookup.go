package model

import rc "github.com/reusecheck/reusecheck"

// datagram is one that arrives; IPv4 addresses are in mapped form.
type datagram struct {
	from, to    addr
	sport, port uint16
	dev         rc.Dev
	on          rc.CPU
}

// arriving is the datagram of a send: on the loopback and on the first processor,
// if nothing else is said.
func arriving(op rc.Op) datagram {
	d := datagram{from: makeAddr(op.From.Addr()), to: makeAddr(op.Addr.Addr()), sport: op.From.Port(), port: op.Addr.Port(), dev: op.Dev, on: op.CPU}
	if d.dev == rc.NoDev {
		d.dev = rc.DevLo
	}
	if d.on == rc.NoCPU {
		d.on = rc.Processor(0)
	}
	return d
}

// outcomes is one way in which a walk can end: the sockets that it may give, each
// as likely as the other, none for nobody, and how many sockets it scored.
type outcomes struct {
	winners []int32
	group   bool // a hash picked among them
	scored  int
}

// send delivers a datagram.
func (u *UDP) send(op rc.Op, seen rc.Answer, r rc.Result) rc.Result {
	d := arriving(op)
	u.look = rc.Lookup{Could: u.look.Could[:0], Scored: u.look.Scored[:0]}
	r.Lookup = &u.look
	r.Path = rc.PathNone
	if to := u.early(&d); to >= 0 {
		u.insteadOfEarly(&d)
		u.look.Could = append(u.look.Could, u.socks[to].id)
		r.Path, r.Reason = rc.PathFast, rc.TakeEarly
		return u.gets(to, &d, r)
	}
	to, first := u.fromTable(&d)
	if to >= 0 {
		u.look.Could = append(u.look.Could, u.socks[to].id)
		r.Path, r.Reason = rc.PathFast, rc.TakeTuple
		u.scoredInstead(&d, to, first)
	} else {
		var o *outcomes
		to, o = u.choose(u.byScore(&d), &d, seen)
		r.Visited, r.Reason = o.scored, rc.TakeScore
		if o.group {
			r.Reason = rc.TakeGroup
		}
		if o.scored > 0 {
			r.Path = rc.PathScan
		}
	}
	if to < 0 {
		r.Answer, r.Reason = rc.Answer{Kind: rc.Nobody}, rc.TakeNone
		return r
	}
	return u.gets(to, &d, r)
}

// gets ends a send with a receiver.
func (u *UDP) gets(to int32, d *datagram, r rc.Result) rc.Result {
	s := &u.socks[to]
	if d.to.is4() && s.peer != (addr{}) || !d.to.is4() && s.peer6 != (addr{}) {
		u.received(to, d.on)
	}
	r.Answer, r.Decider = rc.Answer{Kind: rc.Received, Who: s.id}, s.id
	return r
}

// received: a socket with a peer prefers the processor of what it received last,
// whatever it was asked to.
func (u *UDP) received(i int32, on rc.CPU) {
	if u.rules.keepsAsked {
		return
	}
	u.stale -= u.offTable(i)
	u.socks[i].cpu = on
	u.stale += u.offTable(i)
}

// fromTable asks the 4-tuple table: the first entry of the 4-tuple whose socket
// still has it, on the right device, gets the datagram. first is the first entry.
func (u *UDP) fromTable(d *datagram) (hit, first int32) {
	if !u.rules.table {
		return none, none
	}
	l := u.slotAt(d.to, d.port)
	if l == nil || l.hash4 == 0 {
		u.look.Table = rc.TableSkipped
		return none, none
	}
	u.look.Table = rc.TableMissed
	k := tuple{local: d.to, peer: d.from, num: d.port, dest: d.sport}
	first, ok := u.tuples[k]
	if !ok {
		return none, none
	}
	for i := first; i >= 0; i = u.socks[i].nextT {
		u.look.Compared++
		if s := &u.socks[i]; s.tuple() == k && (s.dev == rc.NoDev || s.dev == d.dev) {
			u.look.Table = rc.TableHit
			return i, first
		}
	}
	return none, first
}

// scoredInstead finds who would have got a datagram that the table placed if
// every socket had been scored. Only others with the same 4-tuple can be in its
// way, and those the table has too, unless an entry is stale.
func (u *UDP) scoredInstead(d *datagram, hit, first int32) {
	if u.stale > 0 {
		for _, o := range u.byScore(d) {
			for _, w := range o.winners {
				u.look.Scored = append(u.look.Scored, u.socks[w].id)
			}
		}
		return
	}
	best, points := hit, u.score(hit, d, d.to)
	for i := first; i >= 0; i = u.socks[i].nextT {
		p := u.score(i, d, d.to)
		if p > points || p == points && u.socks[i].order > u.socks[best].order {
			best, points = i, p
		}
	}
	u.look.Scored = append(u.look.Scored, u.socks[best].id)
}

// choose makes the choice that the rules leave: as seen, or by a hash of the
// addresses that stands for the kernel's, whose seed nobody knows.
func (u *UDP) choose(ends []outcomes, d *datagram, seen rc.Answer) (int32, *outcomes) {
	for _, o := range ends {
		for _, w := range o.winners {
			u.look.Could = append(u.look.Could, u.socks[w].id)
		}
	}
	if seen.Kind == rc.Received {
		for k := range ends {
			for _, w := range ends[k].winners {
				if u.socks[w].id == seen.Who {
					return w, &ends[k]
				}
			}
		}
	}
	h := (d.from.lo ^ d.from.hi ^ d.to.lo<<7 ^ uint64(d.sport)<<16 ^ uint64(d.port)) * 0x9e3779b97f4a7c15 >> 33
	o := &ends[h%uint64(len(ends))]
	if len(o.winners) == 0 {
		return none, o
	}
	return o.winners[h/uint64(len(ends))%uint64(len(o.winners))], o
}

// score is how well a socket fits, negative for not at all. at is the address
// that it must have: the datagram's, or the wildcard.
func (u *UDP) score(i int32, d *datagram, at addr) int {
	s := &u.socks[i]
	if s.num != d.port {
		return -1
	}
	if d.to.is4() {
		return u.score4(s, d, at)
	}
	if !s.is6 || s.addr != at {
		return -1
	}
	each := 1
	if u.rules.weights6 {
		each = 4
	}
	return s.points(d, s.peer6, 0, each, u.rules.deviceAny)
}

func (u *UDP) score4(s *udpSock, d *datagram, at addr) int {
	if s.flags&v6only != 0 {
		return -1
	}
	if at.wildcard() != s.addr.wildcard() || !at.wildcard() && s.addr != at {
		return -1
	}
	base := 2
	if s.is6 {
		base = 1
	}
	return s.points(d, s.peer, base, 4, u.rules.deviceAny)
}

// points adds to a socket's base what peer, device and processor are worth.
func (s *udpSock) points(d *datagram, peer addr, base, each int, deviceAny bool) int {
	if peer != (addr{}) {
		if peer != d.from {
			return -1
		}
		base += each
	}
	if s.dest != 0 {
		if s.dest != d.sport {
			return -1
		}
		base += each
	}
	if s.dev != rc.NoDev && s.dev != d.dev {
		return -1
	}
	if s.dev != rc.NoDev || deviceAny {
		base += each
	}
	if s.cpu == d.on {
		base++
	}
	return base
}

// byScore is the look-up by scores: the ways in which it can end.
func (u *UDP) byScore(d *datagram) []outcomes {
	u.ends = u.ends[:0]
	p := u.index.get(d.port)
	if p < 0 {
		return u.nobody(0)
	}
	if u.rules.walkPrimary && u.ports[p].count <= manyInSlot {
		u.walkSlot(walk{d: d, first: u.ports[p].first, next: nextInPort, whole: true})
		return u.ends
	}
	exact, any := u.slotAt(d.to, d.port), u.slotAt(addr{}, d.port)
	if exact != nil {
		u.walkSlot(walk{d: d, at: d.to, first: exact.first, next: nextInAddr})
	} else {
		u.nobody(0)
	}
	// Whatever the first walk found is the answer.
	for k := range u.ends {
		if len(u.ends[k].winners) > 0 {
			continue
		}
		scored := u.ends[k].scored
		u.ends = append(u.ends[:k], u.ends[k+1:]...)
		u.elsewhere(d, p, any, scored)
		break
	}
	return u.ends
}

// elsewhere looks among the wildcards, and then among all sockets of the port.
func (u *UDP) elsewhere(d *datagram, p int32, any *addrSlot, scored int) {
	from := len(u.ends)
	if any != nil {
		u.walkSlot(walk{d: d, first: any.first, next: nextInAddr, scored: scored})
	} else {
		u.nobody(scored)
	}
	if !u.rules.scorePrimary {
		return
	}
	for k := from; k < len(u.ends); k++ {
		if o := &u.ends[k]; len(o.winners) == 0 {
			*o = u.bestOfAll(d, p, o.scored)
		}
	}
}

// bestOfAll scores the sockets of a port without regard to their groups.
func (u *UDP) bestOfAll(d *datagram, p int32, scored int) outcomes {
	o := outcomes{scored: scored}
	best := u.least(d)
	for j := u.ports[p].first; j >= 0; j = u.socks[j].next {
		o.scored++
		if n := u.score(j, d, d.to); n > best {
			best = n
			o.winners = append(o.winners[:0], j)
		}
	}
	return o
}

// least is what a score has to be more than.
func (u *UDP) least(d *datagram) int {
	if d.to.is4() {
		return 0
	}
	return -1
}

func (u *UDP) nobody(scored int) []outcomes {
	u.ends = append(u.ends, outcomes{scored: scored})
	return u.ends
}
