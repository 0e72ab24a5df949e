package model

// portBucketFor finds or makes the bucket of a port.
func (t *TCP) portBucketFor(port uint16) int32 {
	if p := t.index.get(port); p >= 0 {
		return p
	}
	p := t.freeP
	if p >= 0 {
		t.freeP = t.ports[p].owners
	} else {
		p = int32(len(t.ports))
		t.ports = append(t.ports, portBucket{})
	}
	t.ports[p] = portBucket{port: port, live: true, owners: none, addrs: none}
	t.index.put(port, p)
	return p
}

// dropPortBucket removes a port bucket that nobody owns.
func (t *TCP) dropPortBucket(p int32) {
	t.index.drop(t.ports[p].port)
	t.ports[p] = portBucket{owners: t.freeP}
	t.freeP = p
}

// findAddrBucket finds the address bucket that a socket of this address
// belongs to.
func (t *TCP) findAddrBucket(p int32, a addr, is6 bool) int32 {
	for b := t.ports[p].addrs; b >= 0; b = t.addrs[b].next {
		if t.addrs[b].addr == a && (!t.rules.noMappedTwin || t.addrs[b].made6 == is6) {
			return b
		}
	}
	return none
}

// addrBucketFor finds or makes it; a new one starts with the given pair.
func (t *TCP) addrBucketFor(p int32, a addr, is6 bool, pair int8) int32 {
	if !t.rules.addrBuckets {
		return none
	}
	if b := t.findAddrBucket(p, a, is6); b >= 0 {
		return b
	}
	b := t.freeA
	if b >= 0 {
		t.freeA = t.addrs[b].next
	} else {
		b = int32(len(t.addrs))
		t.addrs = append(t.addrs, addrBucket{})
	}
	head := t.ports[p].addrs
	t.addrs[b] = addrBucket{addr: a, made6: is6, live: true, fast: pair, share: pair, port: p,
		owners: none, last: none, next: head, prev: none}
	if head >= 0 {
		t.addrs[head].prev = b
	}
	t.ports[p].addrs = b
	return b
}

func (t *TCP) dropAddrBucket(b int32) {
	a := &t.addrs[b]
	if a.prev >= 0 {
		t.addrs[a.prev].next = a.next
	} else {
		t.ports[a.port].addrs = a.next
	}
	if a.next >= 0 {
		t.addrs[a.next].prev = a.prev
	}
	*a = addrBucket{next: t.freeA}
	t.freeA = b
}

// join makes socket i an owner of a port bucket and an address bucket.
func (t *TCP) join(i, p, b int32) {
	o := &t.owns[i]
	o.port = p
	pb := &t.ports[p]
	pb.count++
	if !t.rules.addrOwnersOnly {
		o.prevP, o.nextP = none, pb.owners
		if pb.owners >= 0 {
			t.owns[pb.owners].prevP = i
		}
		pb.owners = i
	}
	if b >= 0 && (!t.rules.noTimeWait2 || o.flags&timeWait == 0) {
		t.joinAddr(i, b)
	}
}

// joinAddr enters socket i into an address bucket, newest first; up to 6.7
// TIME_WAIT sockets stand in a list of their own behind the others.
func (t *TCP) joinAddr(i, b int32) {
	o, ab := &t.owns[i], &t.addrs[b]
	o.addr = b
	ab.count++
	if o.flags&byConnect != 0 {
		ab.connects++
	}
	after := none
	if o.flags&timeWait != 0 && !t.rules.addrOwnersOnly {
		after = ab.last
		for after >= 0 && t.owns[after].flags&timeWait != 0 {
			after = t.owns[after].prev
		}
	}
	o.prev = after
	if after >= 0 {
		o.next = t.owns[after].next
		t.owns[after].next = i
	} else {
		o.next = ab.owners
		ab.owners = i
	}
	if o.next >= 0 {
		t.owns[o.next].prev = i
	} else {
		ab.last = i
	}
}

// leaveAddr takes socket i out of its address bucket and drops that when it is
// empty. It reports nothing to the port bucket.
func (t *TCP) leaveAddr(i int32) {
	o := &t.owns[i]
	b := o.addr
	if b < 0 {
		return
	}
	ab := &t.addrs[b]
	ab.count--
	if o.flags&byConnect != 0 {
		ab.connects--
	}
	if o.prev >= 0 {
		t.owns[o.prev].next = o.next
	} else {
		ab.owners = o.next
	}
	if o.next >= 0 {
		t.owns[o.next].prev = o.prev
	} else {
		ab.last = o.prev
	}
	o.next, o.prev, o.addr = none, none, none
	switch {
	case ab.count == 0:
		t.dropAddrBucket(b)
	case t.rules.releaseUpdate && ab.connects == ab.count:
		ab.fast, ab.share = -1, -1
	}
}

// leave takes socket i out of its buckets: its port is free for it no more.
func (t *TCP) leave(i int32) {
	o := &t.owns[i]
	p := o.port
	if p < 0 {
		return
	}
	t.leaveAddr(i)
	pb := &t.ports[p]
	if !t.rules.addrOwnersOnly {
		if o.prevP >= 0 {
			t.owns[o.prevP].nextP = o.nextP
		} else {
			pb.owners = o.nextP
		}
		if o.nextP >= 0 {
			t.owns[o.nextP].prevP = o.prevP
		}
	}
	o.nextP, o.prevP, o.port = none, none, none
	o.flags &^= byConnect
	pb.count--
	switch {
	case pb.count == 0 && pb.addrs < 0:
		t.dropPortBucket(p)
	case t.rules.releaseUpdate && t.allByConnect(p):
		pb.fast, pb.share = -1, -1
	}
	t.socks[i].num = 0
}

func (t *TCP) allByConnect(p int32) bool {
	for b := t.ports[p].addrs; b >= 0; b = t.addrs[b].next {
		if t.addrs[b].fast != -1 || t.addrs[b].share != -1 {
			return false
		}
	}
	return true
}

// moveTo changes the local address of a socket that may hold a port. The socket
// leaves its address bucket and joins one anew, even for the same address: a
// bucket that it was alone in loses its pair (seen on 6.18).
func (t *TCP) moveTo(i int32, a addr) {
	s, o := &t.socks[i], &t.owns[i]
	s.addr = a
	if o.port < 0 || !t.rules.addrBuckets || t.rules.stuckBucket || o.addr < 0 {
		return
	}
	p := o.port
	t.leaveAddr(i)
	pair := int8(0)
	if o.flags&byConnect != 0 && t.rules.releaseUpdate {
		pair = -1
	}
	t.joinAddr(i, t.addrBucketFor(p, a, s.is6, pair))
}
