package model

import rc "github.com/reusecheck/reusecheck"

// A group starts with room for 128 members and doubles, up to the largest number
// that its counter holds.
const (
	groupRoom = 128
	groupMost = 1<<16 - 1
)

// joinGroup puts a socket that is about to get its port into a reuseport group:
// that of the first socket of the port that is like it, which gets one if it has
// none, or one of its own. It reports whether there was room.
func (u *UDP) joinGroup(i int32, port uint16) bool {
	s := &u.socks[i]
	if p := u.index.get(port); p >= 0 {
		for j := u.ports[p].first; j >= 0; j = u.socks[j].next {
			o := &u.socks[j]
			if j != i && o.is6 == s.is6 && o.flags&v6only == s.flags&v6only && o.dev == s.dev &&
				o.flags&reusePort != 0 && o.uid == s.uid && o.addr == s.addr {
				if o.group < 0 {
					u.newGroup(j)
				}
				return u.addToGroup(i, o.group)
			}
		}
	}
	u.newGroup(i)
	return true
}

func (u *UDP) newGroup(i int32) {
	g := u.freeG
	if g >= 0 {
		u.freeG = int32(u.groups[g].max)
	} else {
		g = int32(len(u.groups))
		u.groups = append(u.groups, udpGroup{})
	}
	kept := u.groups[g].members[:0]
	u.groups[g] = udpGroup{members: append(kept, i), max: groupRoom, live: true, wanting: count(u.socks[i].cpu)}
	u.socks[i].group = g
}

func (u *UDP) addToGroup(i, g int32) bool {
	l := &u.groups[g]
	if len(l.members) == l.max {
		if 2*l.max > groupMost {
			return false
		}
		l.max *= 2
		if u.rules.growForgets {
			l.hasConns = false
		}
	}
	l.members = append(l.members, i)
	l.wanting += count(u.socks[i].cpu)
	u.socks[i].group = g
	return true
}

// leaveGroup ends a membership, for good: only a bind starts one.
func (u *UDP) leaveGroup(i int32) {
	g := u.socks[i].group
	if g < 0 {
		return
	}
	u.socks[i].group = none
	l := &u.groups[g]
	l.wanting -= count(u.socks[i].cpu)
	for k, j := range l.members {
		if j == i {
			l.members[k] = l.members[len(l.members)-1]
			l.members = l.members[:len(l.members)-1]
			break
		}
	}
	if len(l.members) == 0 {
		*l = udpGroup{members: l.members, max: int(u.freeG)}
		u.freeG = g
	}
}

// prefer makes a socket prefer a processor, as it is asked to. Its group counts
// it; that a datagram changes what a member prefers, it does not count.
func (u *UDP) prefer(i int32, cpu rc.CPU) {
	s := &u.socks[i]
	if s.group >= 0 {
		u.groups[s.group].wanting += count(cpu) - count(s.cpu)
	}
	s.asked, s.cpu = cpu, cpu
}

func count(cpu rc.CPU) int {
	if cpu == rc.NoCPU {
		return 0
	}
	return 1
}

// onProcessor leaves of the members that a group may choose those that prefer the
// datagram's processor, unless there are none.
func (u *UDP) onProcessor(g int32, ms []int32, on rc.CPU) []int32 {
	if !u.rules.groupByCPU || u.groups[g].wanting == 0 {
		return ms
	}
	var there []int32
	for _, m := range ms {
		if u.socks[m].cpu == on {
			there = append(there, m)
		}
	}
	if len(there) == 0 {
		return ms
	}
	return there
}

// uncounted is how many datagrams made a member prefer a processor that preferred
// none: so many more than were counted leave, and the group's count is wrong by it.
func (u *UDP) uncounted(g int32) int {
	n := -u.groups[g].wanting
	for _, m := range u.groups[g].members {
		n += count(u.socks[m].cpu)
	}
	if !u.rules.groupByCPU {
		return 0
	}
	return n
}

// moreSockets is how many more sockets than a state has may follow, so that two
// states are told apart that differ in a group's count. One that is wrong by more
// than there are sockets is never 0 again.
const moreSockets = 4
