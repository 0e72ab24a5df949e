package model

import rc "github.com/reusecheck/reusecheck"

// keyOf is the address slot of an address: IPv4 in the form that an IPv4 socket
// and a v4-mapped one share, all wildcards in one.
func keyOf(a addr, port uint16) addrKey {
	if a.wildcard() {
		a = addr{}
	}
	return addrKey{a, port}
}

// atEnd reports whether a socket goes to the end of a slot: IPv6 sockets with
// reuseport, so that IPv4 traffic meets IPv4 ones first.
func (s *udpSock) atEnd() bool { return s.is6 && s.flags&reusePort != 0 }

// enter puts a socket that got a port into its primary and its address slot.
func (u *UDP) enter(i int32) {
	s := &u.socks[i]
	p := u.index.get(s.num)
	if p < 0 {
		p = u.freeP
		if p >= 0 {
			u.freeP = u.ports[p].first
		} else {
			p = int32(len(u.ports))
			u.ports = append(u.ports, udpSlot{})
		}
		u.ports[p] = udpSlot{port: s.num, first: none, last: none}
		u.index.put(s.num, p)
	}
	l := &u.ports[p]
	s.slot = p
	if s.atEnd() {
		s.prev, s.next = l.last, none
	} else {
		s.prev, s.next = none, l.first
	}
	u.joinPort(i)
	l.count++
	u.enterAddr(i, s.atEnd())
}

// joinPort makes the neighbours of a socket's new place in its primary slot its own.
func (u *UDP) joinPort(i int32) {
	s, l := &u.socks[i], &u.ports[u.socks[i].slot]
	if s.prev >= 0 {
		u.socks[s.prev].next = i
	} else {
		l.first = i
	}
	if s.next >= 0 {
		u.socks[s.next].prev = i
	} else {
		l.last = i
	}
}

// leave takes a socket out of everything, and its port with it.
func (u *UDP) leave(i int32) {
	s := &u.socks[i]
	if s.slot < 0 {
		return
	}
	u.leaveGroup(i)
	u.unhashTuple(i)
	u.leaveAddr(i)
	p := s.slot
	l := &u.ports[p]
	if s.prev >= 0 {
		u.socks[s.prev].next = s.next
	} else {
		l.first = s.next
	}
	if s.next >= 0 {
		u.socks[s.next].prev = s.prev
	} else {
		l.last = s.prev
	}
	s.next, s.prev, s.slot, s.num = none, none, none, 0
	if l.count--; l.count == 0 {
		u.index.drop(l.port)
		u.ports[p] = udpSlot{first: u.freeP}
		u.freeP = p
	}
}

// slotFor finds or makes the slot of an address.
func (u *UDP) slotFor(k addrKey) int32 {
	if a, ok := u.addrOf[k]; ok {
		return a
	}
	a := u.freeA
	if a >= 0 {
		u.freeA = u.addrs[a].first
	} else {
		a = int32(len(u.addrs))
		u.addrs = append(u.addrs, addrSlot{})
	}
	u.addrs[a] = addrSlot{key: k, first: none, last: none}
	u.addrOf[k] = a
	return a
}

// slotAt is the slot of an address, nil when nothing is in it or counted there.
func (u *UDP) slotAt(a addr, port uint16) *addrSlot {
	if at, ok := u.addrOf[keyOf(a, port)]; ok {
		return &u.addrs[at]
	}
	return nil
}

func (u *UDP) enterAddr(i int32, end bool) {
	s := &u.socks[i]
	s.at = u.slotFor(keyOf(s.addr, s.num))
	l := &u.addrs[s.at]
	if end {
		l.back--
		s.order, s.prevA, s.nextA = l.back, l.last, none
	} else {
		l.front++
		s.order, s.prevA, s.nextA = l.front, none, l.first
	}
	if s.prevA >= 0 {
		u.socks[s.prevA].nextA = i
	} else {
		l.first = i
	}
	if s.nextA >= 0 {
		u.socks[s.nextA].prevA = i
	} else {
		l.last = i
	}
	l.count++
}

func (u *UDP) leaveAddr(i int32) {
	s := &u.socks[i]
	l := &u.addrs[s.at]
	if s.prevA >= 0 {
		u.socks[s.prevA].nextA = s.nextA
	} else {
		l.first = s.nextA
	}
	if s.nextA >= 0 {
		u.socks[s.nextA].prevA = s.prevA
	} else {
		l.last = s.prevA
	}
	l.count--
	at := s.at
	s.nextA, s.prevA, s.at = none, none, none
	u.dropSlot(at)
}

// dropSlot forgets an address slot that nothing is in, nor counted.
func (u *UDP) dropSlot(at int32) {
	if l := &u.addrs[at]; l.count == 0 && l.hash4 == 0 {
		delete(u.addrOf, l.key)
		u.addrs[at] = addrSlot{first: u.freeA}
		u.freeA = at
	}
}

// countTuple changes the counter of an address slot.
func (u *UDP) countTuple(at int32, by int32) {
	u.addrs[at].hash4 += by
	u.dropSlot(at)
}

// tuple is the 4-tuple of a socket as it is now.
func (s *udpSock) tuple() tuple {
	peer := s.peer
	if !s.addr.is4() {
		peer = s.peer6
	}
	return tuple{local: s.addr, peer: peer, num: s.num, dest: s.dest}
}

// inTable reports whether the table has a connected socket where it will be
// looked for.
func (s *udpSock) inTable() bool { return s.hashed && s.key == s.tuple() }

// offTable counts a socket that the table does not account for, 1 or 0: a
// connected one that is not where it is looked for, and an unconnected one that
// still has the points of a peer, or that device and processor give as many.
func (u *UDP) offTable(i int32) int {
	switch s := &u.socks[i]; {
	case !s.live:
	case s.connected && !s.inTable(), !s.connected && s.peer6 != addr{}, !s.connected && s.is6 && s.dev != rc.NoDev && s.cpu != rc.NoCPU:
		return 1
	}
	return 0
}

// addTuple enters a socket under a 4-tuple: at the front.
func (u *UDP) addTuple(i int32, k tuple) {
	s := &u.socks[i]
	s.hashed, s.key, s.prevT, s.nextT = true, k, none, none
	if first, ok := u.tuples[k]; ok {
		s.nextT = first
		u.socks[first].prevT = i
	}
	u.tuples[k] = i
}

// dropTuple takes a socket's entry out, and leaves the counter.
func (u *UDP) dropTuple(i int32) {
	s := &u.socks[i]
	switch {
	case s.prevT >= 0:
		u.socks[s.prevT].nextT = s.nextT
	case s.nextT >= 0:
		u.tuples[s.key] = s.nextT
	default:
		delete(u.tuples, s.key)
	}
	if s.nextT >= 0 {
		u.socks[s.nextT].prevT = s.prevT
	}
	s.hashed, s.key, s.nextT, s.prevT = false, tuple{}, none, none
}

// hashTuple enters a socket that has just connected, unless it is there already:
// under whatever 4-tuple.
func (u *UDP) hashTuple(i int32) {
	s := &u.socks[i]
	if !u.rules.table || s.slot < 0 || s.addr.wildcard() {
		return
	}
	if s.hashed {
		if u.rules.followsPeer {
			u.rehashTuple(i, s.tuple())
		}
		return
	}
	u.leaveGroup(i)
	u.addTuple(i, s.tuple())
	u.countTuple(s.at, 1)
}

// unhashTuple takes a socket's entry out.
func (u *UDP) unhashTuple(i int32) {
	if s := &u.socks[i]; s.hashed {
		u.dropTuple(i)
		u.countTuple(s.at, -1)
	}
}

// rehashTuple moves a socket's entry, the counter aside.
func (u *UDP) rehashTuple(i int32, k tuple) {
	if u.socks[i].key != k {
		u.dropTuple(i)
		u.addTuple(i, k)
	}
}

// rehash is what follows a change of address, and of a device: to another address
// slot if need be, and out of the reuseport group in any case. hashed is what the
// 4-tuple is taken for.
func (u *UDP) rehash(i int32, hashed tuple) {
	s := &u.socks[i]
	if s.slot < 0 {
		return
	}
	was := s.at
	moved := u.addrs[was].key != keyOf(s.addr, s.num)
	grouped := s.group >= 0
	u.leaveGroup(i)
	if !s.hashed {
		if moved {
			u.leaveAddr(i)
			u.enterAddr(i, false)
		}
		return
	}
	drop := s.addr.wildcard() && !u.rules.movesEntry
	if drop {
		u.unhashTuple(i)
	}
	if moved {
		if !drop {
			u.addrs[was].hash4-- // the slot goes with its last socket
		}
		u.leaveAddr(i)
		u.enterAddr(i, false)
		if !drop {
			u.addrs[s.at].hash4++
		}
	}
	if !drop && (!u.rules.onlyMoved || moved || grouped) {
		u.rehashTuple(i, hashed)
	}
}
