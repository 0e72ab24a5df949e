package model

import rc "github.com/reusecheck/reusecheck"

// early is the socket that a datagram is given to before any look-up: the first of
// its address slot, whoever that is, if it is connected to the sender and not bound
// to another device. What the loopback carries has its route already and is not
// shown to it.
func (u *UDP) early(d *datagram) int32 {
	if !u.rules.earlyDemux || u.noEarly || d.dev == rc.DevLo {
		return none
	}
	l := u.slotAt(d.to, d.port)
	if l == nil || l.count == 0 {
		return none
	}
	s := &u.socks[l.first]
	k := tuple{local: d.to, peer: d.from, num: d.port, dest: d.sport}
	if s.tuple() != k || s.dev != rc.NoDev && s.dev != d.dev || !d.to.is4() && !s.connected {
		return none
	}
	return l.first
}

// insteadOfEarly finds who would have got a datagram that was given away early.
func (u *UDP) insteadOfEarly(d *datagram) {
	if to, _ := u.fromTable(d); to >= 0 {
		u.look.Scored = append(u.look.Scored, u.socks[to].id)
	} else {
		for _, o := range u.byScore(d) {
			for _, w := range o.winners {
				u.look.Scored = append(u.look.Scored, u.socks[w].id)
			}
		}
	}
	u.look.Table, u.look.Compared = rc.TableNone, 0 // it was not asked
}
