package model

import (
	"encoding/binary"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// What is written down of a state is all that a rule reads, under the numbers
// that an order gives to names: two states of which the same is written answer
// every step alike and come to such states again. What is left out is the places
// in slices, and counters that count by their order only. The order of lists is
// kept: some rules end at the first that they find.

func appendAddr(dst []byte, a addr) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, a.hi), a.lo)
}

func appendPort(dst []byte, ports ...uint16) []byte {
	for _, p := range ports {
		dst = binary.LittleEndian.AppendUint16(dst, p)
	}
	return dst
}

func appendBools(dst []byte, bs ...bool) []byte {
	w := uint16(0)
	for i, b := range bs {
		if b {
			w |= 1 << i
		}
	}
	return binary.LittleEndian.AppendUint16(dst, w)
}

// appendSorted appends texts in order, each with its length.
func appendSorted(dst []byte, texts [][]byte) []byte {
	slices.SortFunc(texts, slices.Compare[[]byte])
	dst = append(dst, byte(len(texts)))
	for _, t := range texts {
		dst = append(binary.LittleEndian.AppendUint16(dst, uint16(len(t))), t...)
	}
	return dst
}

// AppendState appends the state up to names.
func (u *UDP) AppendState(dst []byte, order rc.Order) []byte {
	var groups []int32
	for _, id := range order {
		i := u.find(id)
		if i < 0 {
			dst = append(dst, 0)
			continue
		}
		s := &u.socks[i]
		g := byte(0)
		if s.group >= 0 {
			at := slices.Index(groups, s.group)
			if at < 0 {
				at, groups = len(groups), append(groups, s.group)
			}
			g = byte(at + 1)
		}
		dst = append(dst, 1, byte(s.flags), byte(s.dev), g)
		dst = binary.LittleEndian.AppendUint32(dst, s.uid)
		dst = appendAddr(appendAddr(appendAddr(dst, s.addr), s.peer), s.peer6)
		dst = appendPort(dst, s.num, s.dest, s.span.Lo, s.span.Hi, uint16(s.asked), uint16(s.cpu))
		dst = appendBools(dst, s.is6, s.connected, s.noPort, s.transparent, s.portLock, s.addrLock, s.fromConn, s.late, s.hashed)
		if s.hashed {
			dst = appendTuple(dst, s.key)
		}
	}
	for _, g := range groups {
		dst = binary.LittleEndian.AppendUint32(appendBools(dst, u.groups[g].hasConns), uint32(u.groups[g].max))
		dst = append(dst, byte(min(u.uncounted(g), len(order)+moreSockets)))
	}
	return u.appendLists(dst, order)
}

func appendTuple(dst []byte, k tuple) []byte {
	return appendPort(appendAddr(appendAddr(dst, k.local), k.peer), k.num, k.dest)
}

// appendLists appends the slots, in which the order of sockets decides.
func (u *UDP) appendLists(dst []byte, order rc.Order) []byte {
	var lists [][]byte
	list := func(head []byte, first int32, next func(*udpSock) int32) {
		for i := first; i >= 0; i = next(&u.socks[i]) {
			head = append(head, order.Of(u.socks[i].id))
		}
		lists = append(lists, head)
	}
	for i := range u.ports {
		if l := &u.ports[i]; l.count > 0 {
			list(appendPort([]byte{'p'}, l.port), l.first, nextInPort)
		}
	}
	for k, at := range u.addrOf {
		l := &u.addrs[at]
		head := appendPort(appendAddr([]byte{'a'}, k.addr), k.port)
		list(binary.LittleEndian.AppendUint32(head, uint32(l.hash4)), l.first, nextInAddr)
	}
	for k, first := range u.tuples {
		list(appendTuple([]byte{'t'}, k), first, func(s *udpSock) int32 { return s.nextT })
	}
	return appendSorted(dst, lists)
}

// AppendState appends the state up to names.
func (t *TCP) AppendState(dst []byte, order rc.Order) []byte {
	for _, id := range order {
		for _, id := range [2]rc.ID{id, id.OtherEnd()} {
			i := t.find(id)
			if i < 0 || t.socks[i].id != id {
				dst = append(dst, 0)
				continue
			}
			dst = t.appendSock(append(dst, 1), i, order)
		}
	}
	var ports [][]byte
	for p := range t.ports {
		if t.ports[p].live {
			ports = append(ports, t.appendBucket(nil, int32(p), order))
		}
	}
	return appendSorted(dst, ports)
}

func (t *TCP) appendSock(dst []byte, i int32, order rc.Order) []byte {
	s, o := &t.socks[i], &t.owns[i]
	idOf := func(j int32) rc.ID {
		if j < 0 {
			return rc.NoID
		}
		return t.socks[j].id
	}
	dst = append(dst, byte(o.flags), byte(o.dev), order.Of(idOf(s.queue)), order.Of(idOf(s.other)), t.rank(s.serial), t.rankOfGroup(s.group))
	dst = binary.LittleEndian.AppendUint32(dst, o.uid)
	dst = appendPort(appendAddr(appendAddr(dst, s.addr), s.peer), s.num, s.dest, s.span.Lo, s.span.Hi, uint16(s.cpu))
	return appendBools(dst, s.is6, s.noPort, s.transparent, s.portLock, s.addrLock, s.linked, s.sentSYN, s.listened, s.twin, s.behind, s.heard)
}

// rank counts the listeners before one, the first is 1; 0 is none.
func (t *TCP) rank(serial int32) byte {
	if serial < 0 {
		return 0
	}
	n := byte(1)
	for i := range t.socks {
		if s := &t.socks[i]; s.live && s.serial >= 0 && s.serial < serial {
			n++
		}
	}
	return n
}

// rankOfGroup numbers a reuseport group by its first member that is still there.
func (t *TCP) rankOfGroup(g int32) byte {
	least := none
	for i := range t.socks {
		if s := &t.socks[i]; s.live && g >= 0 && s.serial >= 0 && s.group == g && (least < 0 || s.serial < least) {
			least = s.serial
		}
	}
	return t.rank(least)
}

func (t *TCP) appendBucket(dst []byte, p int32, order rc.Order) []byte {
	b := &t.ports[p]
	dst = append(appendPort(dst, b.port), byte(b.fast), byte(b.share))
	if b.share > 0 {
		k := &b.key
		dst = append(appendAddr(binary.LittleEndian.AppendUint32(dst, k.uid), k.addr), byte(k.flags), byte(k.dev), byte(familyIndex(k.is6)))
	}
	if !t.rules.addrBuckets {
		return t.appendOwners(dst, b.owners, func(o *owner) int32 { return o.nextP }, order)
	}
	if !t.rules.addrOwnersOnly {
		dst = t.appendOwners(dst, b.owners, func(o *owner) int32 { return o.nextP }, order)
	}
	for a := b.addrs; a >= 0; a = t.addrs[a].next {
		l := &t.addrs[a]
		dst = append(appendAddr(dst, l.addr), byte(familyIndex(l.made6)), byte(l.fast), byte(l.share))
		dst = t.appendOwners(dst, l.owners, func(o *owner) int32 { return o.next }, order)
	}
	return dst
}

func (t *TCP) appendOwners(dst []byte, first int32, next func(*owner) int32, order rc.Order) []byte {
	for i := first; i >= 0; i = next(&t.owns[i]) {
		dst = append(dst, order.Of(t.socks[i].id))
	}
	return append(dst, 0)
}
