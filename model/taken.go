package model

import rc "github.com/reusecheck/reusecheck"

// takenAs is the listener that takes a connection, none where nobody does: l
// wherever it may, else the one seen on another stack if that one may. A connection
// of which nobody says where it arrives may arrive on any processor; where
// nothing was seen, on one that no listener asked for.
func (t *TCP) takenAs(l int32, dst addr, port uint16, on rc.CPU, seen rc.Answer) int32 {
	by := t.taken(l, dst, port, on, seen)
	if on != rc.NoCPU || seen.Kind != rc.OK && seen.Kind != rc.Received || t.wasSeen(by, l, seen) {
		return by
	}
	for j := range t.socks {
		if s := &t.socks[j]; s.live && s.serial >= 0 && s.num == port && s.cpu != rc.NoCPU {
			if other := t.taken(l, dst, port, s.cpu, seen); t.wasSeen(other, l, seen) {
				return other
			}
		}
	}
	return by
}

// wasSeen reports whether another stack's answer tells of the same taker.
func (t *TCP) wasSeen(by, l int32, seen rc.Answer) bool {
	if seen.Kind == rc.OK {
		return by == l
	}
	return by >= 0 && by != l && t.socks[by].id == seen.Who
}

// taken is takenAs on one processor.
func (t *TCP) taken(l int32, dst addr, port uint16, on rc.CPU, seen rc.Answer) int32 {
	by, group := t.lookup(dst, port, on)
	if by < 0 || group < 0 {
		return by
	}
	wanted := t.rules.groupByCPU && t.wanted(group, on)
	// Of a member that heard an answer to a SYN before it listened nobody knows
	// its processor: it may be preferred, however often it is tried (seen on 6.1
	// and 6.12), and it may not.
	heard := func(j int32) bool { return t.rules.groupByCPU && t.socks[j].heard }
	sure := func(j int32) bool {
		return j >= 0 && t.socks[j].group == group && (!wanted || t.socks[j].cpu == on)
	}
	may := func(j int32) bool { return sure(j) || j >= 0 && t.socks[j].group == group && heard(j) }
	o := none
	if seen.Kind == rc.Received {
		o = t.find(seen.Who)
	}
	switch {
	case may(o) && (!sure(l) || heard(o)):
		return o
	case may(l):
		return l
	case may(by):
		return by
	}
	for j := range t.socks {
		if may(int32(j)) {
			return int32(j)
		}
	}
	return none
}

// wanted reports whether a member of a group asked for a processor: then one that
// did takes what arrives there, and else any member.
func (t *TCP) wanted(group int32, on rc.CPU) bool {
	if on == rc.NoCPU {
		return false
	}
	for i := range t.socks {
		if s := &t.socks[i]; s.live && s.group == group && s.cpu == on {
			return true
		}
	}
	return false
}
