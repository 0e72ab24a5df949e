package model

import rc "github.com/reusecheck/reusecheck"

// An automatic port is looked for from a random start. What is random is left
// to the caller: a search is told what another stack answered and does the same
// where some start would have led there; left alone it takes the lowest port of
// those that could have come first.

// part is a stretch of ports that one round searches: all of one parity of
// distance from its low end, then all of the other.
type part struct {
	lo, size int
	odd      bool // odd distances first
	step     int  // 2, or 1 for one pass without parity
}

// split gives the parts of a range in which bind searches: with reuseaddr, and
// four ports or more, the lower part comes first.
func split(r rc.PortRange, reuse bool, dst []part) []part {
	lo, n := int(r.Lo), r.Size()
	if !reuse || n < 4 {
		return append(dst, part{lo: lo, size: n, odd: true, step: 2})
	}
	half := n >> 2 << 1
	return append(dst, part{lo: lo, size: half, odd: true, step: 2},
		part{lo: lo + half, size: n - half, odd: true, step: 2})
}

// outcome of a search: a port, or 0 for none.
type outcome = int

// search looks for a usable port. seen is what another stack found (0: none,
// negative: nothing is known).
func (s part) search(usable func(port int) bool, seen int) (outcome, bool) {
	if s.size <= 2 || s.step == 1 {
		return s.pass(0, s.step, false, usable, seen)
	}
	first, second := 0, 1
	if s.odd {
		first, second = 1, 0
	}
	for _, from := range [2]int{first, second} {
		// In a part of odd size one even distance is missed: the last one,
		// or the first when the search starts elsewhere.
		misses := from == 0 && s.size%2 == 1
		if port, ok := s.pass(from, 2, misses, usable, seen); ok {
			return port, true
		}
	}
	return 0, false
}

// pass searches one parity. The second result says that it ends the search.
func (s part) pass(from, step int, misses bool, usable func(int) bool, seen int) (outcome, bool) {
	if s.size <= 2 && step == 2 {
		return s.short(usable, seen)
	}
	last := s.size - 1
	lowest, next, n := -1, -1, 0
	for d := from; d < s.size; d += step {
		if !usable(s.lo + d) {
			continue
		}
		n++
		if lowest < 0 {
			lowest = d
		} else if next < 0 {
			next = d
		}
		if seen < 0 && !misses {
			break
		}
	}
	if n == 0 {
		return 0, false
	}
	at := seen - s.lo
	may := at >= from && at < s.size && (at-from)%step == 0 && usable(seen)
	if !misses {
		if seen >= 0 && may {
			return seen, true
		}
		return s.lo + lowest, true
	}
	// The last is reached from a start behind the first only, and comes
	// first only if the one before it is taken.
	reached := s.size >= 5
	if may && at == last && (!reached || usable(s.lo+last-2)) {
		may = false
	}
	switch {
	case may:
		return seen, true
	case lowest == last && (seen < 0 || seen != s.lo+last) && !reached:
		return 0, false
	case n == 1 && lowest == last && (seen >= 0 || !reached):
		return 0, false // a start at the first misses it
	case n == 1 && lowest == 0 && seen >= 0 && reached && seen != s.lo:
		return 0, false // a start elsewhere misses it
	}
	return s.lo + lowest, true
}

// short is a part of one or two ports, of which every start tries all.
func (s part) short(usable func(int) bool, seen int) (outcome, bool) {
	for _, d := range [2]int{1, 0} {
		if !s.odd {
			d = 1 - d
		}
		if d < s.size && usable(s.lo+d) {
			return s.lo + d, true
		}
	}
	return 0, false
}

// reservedPort reports whether a port is kept from automatic use.
func (t *TCP) reservedPort(port int) bool {
	for _, r := range t.reserved {
		if r.Contains(uint16(port)) {
			return true
		}
	}
	return false
}

// rangeOf is the range that a socket's automatic port comes from. Each bound of
// its own range counts only if it lies in the namespace's.
func (t *TCP) rangeOf(i int32) rc.PortRange { return narrow(t.auto, t.socks[i].span) }

func narrow(r, own rc.PortRange) rc.PortRange {
	if own == (rc.PortRange{}) {
		return r
	}
	lo, hi := r.Lo, r.Hi
	if own.Lo != 0 && r.Contains(own.Lo) {
		lo = own.Lo
	}
	if own.Hi != 0 && r.Contains(own.Hi) {
		hi = own.Hi
	}
	if lo > hi {
		return r
	}
	return rc.PortRange{Lo: lo, Hi: hi}
}

// seenPort is what another stack picked: 0 when it found none, negative when
// nothing is known.
func seenPort(seen rc.Answer) int {
	switch seen.Kind {
	case rc.OK:
		if seen.Port != 0 {
			return int(seen.Port)
		}
		return -1
	case rc.Failed:
		return 0
	}
	return -1
}

// requestAuto asks for any port (bind to port 0, and listen without a port).
func (t *TCP) requestAuto(i int32, seen rc.Answer) verdict {
	q := t.asking(i)
	v := verdict{path: rc.PathNone, decider: none, reason: rc.RefuseExhausted}
	q.relax, q.share, q.autoFirst = false, false, true
	usable := func(port int) bool {
		if t.reservedPort(port) {
			return false
		}
		p := t.index.get(uint16(port))
		if p < 0 {
			return true
		}
		l := t.scan(&q, p)
		v.visited += l.visited
		if l.visited > 0 {
			v.path = rc.PathScan
		}
		if l.refused() && v.decider < 0 {
			v.decider = l.decider
		}
		return !l.refused()
	}
	var parts [2]part
	want := seenPort(seen)
	port, last := 0, false
	for round := 0; round < 2 && port == 0; round++ {
		if round == 1 {
			if !t.rules.autoReuse || !t.autobind {
				break
			}
			q.relax, q.autoFirst = true, false
		}
		for _, s := range split(t.rangeOf(i), q.flags&reuseAddr != 0, parts[:0]) {
			if t.rules.lastResort {
				port, last = t.searchLastResort(&q, s, usable, want)
			} else {
				port, _ = s.search(usable, want)
			}
			if port != 0 {
				break
			}
		}
	}
	if port == 0 {
		return v
	}
	v.decider, v.reason = none, rc.AdmitScan
	if v.visited == 0 {
		v.reason = rc.AdmitEmpty
	}
	if last {
		q.relax, q.share, q.autoFirst = true, true, false
		if l := t.scan(&q, t.index.get(uint16(port))); l.refused() {
			return l
		}
	}
	t.grant(&q, uint16(port), false)
	return v
}

// searchLastResort is the search up to 4.10: when a pass over one parity finds
// no port free, the least used port of it whose cache admits the socket is taken.
func (t *TCP) searchLastResort(q *ask, s part, usable func(int) bool, seen int) (port int, last bool) {
	for _, from := range [2]int{1, 0} {
		at, least := 0, int32(0)
		for d := from; d < max(s.size, from+1) && d-from < s.size; d += 2 {
			c := s.lo + d%s.size
			if usable(c) {
				return c, false
			}
			p := t.index.get(uint16(c))
			if p >= 0 && t.fast(q, p) != rc.ReasonNone && (at == 0 || t.ports[p].count < least) {
				at, least = c, t.ports[p].count
			}
		}
		if at != 0 {
			return at, true
		}
	}
	return 0, false
}
