package model

// walk is a walk through a slot, at some point of it.
type walk struct {
	d     *datagram
	at    addr // the address that a socket must have, unless whole
	whole bool // of a primary slot: addresses are worth points
	first int32
	next  func(*udpSock) int32

	result  []int32 // the best so far: any of these
	group   bool    // ... picked by a hash
	badness int
	scored  int
	begun   bool
}

// walkSlot notes every way in which a walk can end. It splits where a group's
// choice decides how the walk goes on.
func (u *UDP) walkSlot(w walk) {
	if !w.begun {
		w.begun, w.badness = true, u.least(w.d)
	}
	for j := w.first; j >= 0; j = w.next(&u.socks[j]) {
		w.scored++
		score := u.scoreIn(&w, j)
		if score <= w.badness {
			continue
		}
		var members []int32
		if u.rules.connectedWin || !u.socks[j].connected {
			members = u.choices(&w, j)
		}
		if len(members) == 0 {
			w.badness, w.result, w.group = score, []int32{j}, false
			continue
		}
		if u.rules.connectedWin || !u.rules.pastGroup && !u.groups[u.socks[j].group].hasConns {
			u.ends = append(u.ends, outcomes{members, len(members) > 1, w.scored})
			return
		}
		if u.rules.firstAnswers {
			w.badness, w.result, w.group = score, []int32{j}, false
			continue
		}
		if !u.rules.rescoreChoice {
			w.badness, w.result, w.group = score, members, len(members) > 1
			continue
		}
		u.split(w, j, score, members)
		return
	}
	u.ends = append(u.ends, outcomes{w.result, w.group, w.scored})
}

// split goes on behind socket j with each score that the group's choice may have.
func (u *UDP) split(w walk, j int32, score int, members []int32) {
	w.scored++ // the choice is scored too
	w.first = w.next(&u.socks[j])
	done := map[int]bool{}
	for _, m := range members {
		badness := max(score, u.scoreIn(&w, m))
		if done[badness] {
			continue
		}
		done[badness] = true
		w.badness, w.result = badness, nil
		for _, o := range members {
			if max(score, u.scoreIn(&w, o)) == badness {
				w.result = append(w.result, o)
			}
		}
		w.group = len(members) > 1
		u.walkSlot(w)
	}
}

// choices are the members that the group of a socket may choose, none when it is
// in no group: the unconnected ones, unless connected ones win too, and of these
// those that prefer the datagram's processor.
func (u *UDP) choices(w *walk, j int32) []int32 {
	s := &u.socks[j]
	if s.group < 0 || s.flags&reusePort == 0 {
		return nil
	}
	var ms []int32
	for _, m := range u.groups[s.group].members {
		if (u.rules.connectedWin || !u.socks[m].connected) && (!u.rules.fittingChoice || u.scoreIn(w, m) >= 0) {
			ms = append(ms, m)
		}
	}
	return u.onProcessor(s.group, ms, w.d.on)
}

// scoreIn is a socket's score in a walk.
func (u *UDP) scoreIn(w *walk, j int32) int {
	if !w.whole {
		return u.score(j, w.d, w.at)
	}
	s := &u.socks[j]
	if s.addr.wildcard() {
		return u.score(j, w.d, addr{})
	}
	n := u.score(j, w.d, w.d.to)
	if n < 0 {
		return n
	}
	if w.d.to.is4() {
		return n + 4
	}
	return n + 1
}
