package model

import rc "github.com/reusecheck/reusecheck"

// enterListeners gives a listener its place and, with reuseport, its group:
// that of a listener on the same port, family, v6only, device and address, of
// the same user.
func (t *TCP) enterListeners(i int32) {
	s, o := &t.socks[i], &t.owns[i]
	s.serial = t.listenSerial
	t.listenSerial++
	s.group = none
	s.behind = s.is6 && o.flags&reusePort != 0 && !t.rules.frontIPv6
	if o.flags&reusePort == 0 {
		return
	}
	s.group = s.serial
	t.ownersOf(o.port, func(j int32) bool {
		m, mo := &t.socks[j], &t.owns[j]
		if j != i && mo.flags&listens != 0 && m.serial >= 0 && mo.flags&reusePort != 0 && m.is6 == s.is6 && m.addr == s.addr &&
			mo.flags&v6only == o.flags&v6only && mo.dev == o.dev && mo.uid == o.uid {
			if m.group < 0 {
				m.group = m.serial // it got the option after it had begun to listen
			}
			s.group = m.group
			return false
		}
		return true
	})
}

func (t *TCP) leaveListeners(i int32) { t.socks[i].serial, t.socks[i].group = none, none }

// lookup finds the listener that takes a connection which arrives on the
// loopback: first among those of exactly that address, then among the
// wildcards; a listener on the loopback device beats one on none, an IPv4 one
// a dual-stack one, and one that asked for the connection's processor one that did
// not. With a reuseport group it gives the group too.
func (t *TCP) lookup(dst addr, port uint16, on rc.CPU) (listener, group int32) {
	p := t.index.get(port)
	if p < 0 {
		return none, none
	}
	if l, g := t.best(p, dst, dst, on); l >= 0 {
		return l, g
	}
	if l, g := t.best(p, dst, any4, on); l >= 0 && dst.is4() {
		// The wildcards of both families stand in one list.
		return l, g
	}
	if dst.is4() {
		return none, none
	}
	return t.best(p, dst, addr{}, on)
}

// topScore is the best score of a listener: 1, one more on the loopback device,
// one more for an IPv4 socket that takes IPv4, one more for the connection's
// processor (as seen on 6.18).
const topScore = 4

// best is the best listener bound to at, which is dst or a wildcard; for IPv4
// the wildcards of both families are looked at as one.
func (t *TCP) best(p int32, dst, at addr, on rc.CPU) (listener, group int32) {
	// first[n] is the listener with a score of n or more that is met first.
	first := [topScore + 1]int32{none, none, none, none, none}
	t.ownersOf(p, func(j int32) bool {
		n := t.score(j, dst, at, on)
		for ; n > 0; n-- {
			if first[n] < 0 || t.place(j) < t.place(first[n]) {
				first[n] = j
			}
		}
		return true
	})
	listener, group = none, none
	for n := 1; n <= topScore; n++ {
		if first[n] < 0 {
			break
		}
		listener = first[n]
		if t.rules.firstReuseport && t.grouped(listener) {
			break // the first group whose score is better than what was met before
		}
	}
	if listener >= 0 && t.grouped(listener) {
		group = t.socks[listener].group
	}
	return listener, group
}

// grouped reports whether a listener that is met hands over to its group: it
// must still have reuseport, the other members need not.
func (t *TCP) grouped(j int32) bool {
	return t.socks[j].group >= 0 && t.owns[j].flags&reusePort != 0
}

// score is 0 for a socket that cannot take a connection to dst.
func (t *TCP) score(j int32, dst, at addr, on rc.CPU) int {
	o, s := &t.owns[j], &t.socks[j]
	switch {
	case o.flags&listens == 0 || s.serial < 0,
		s.addr != at && !(at == any4 && s.addr.any6()),
		o.dev != rc.NoDev && o.dev != rc.DevLo,
		dst.is4() && s.is6 && o.flags&v6only != 0,
		!dst.is4() && !s.is6:
		return 0
	}
	n := 1
	if o.dev == rc.DevLo {
		n++
	}
	if dst.is4() && !s.is6 {
		n++
	}
	if on != rc.NoCPU && s.cpu == on {
		n++
	}
	return n
}

// place orders listeners as the look-up meets them: the newest first, and IPv6
// ones with reuseport behind all others, oldest first.
func (t *TCP) place(j int32) int {
	s := &t.socks[j]
	if s.behind {
		return 1<<30 + int(s.serial)
	}
	return -int(s.serial)
}
