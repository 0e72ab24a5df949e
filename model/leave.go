package model

import rc "github.com/reusecheck/reusecheck"

// toClose takes a socket to the CLOSE state: without a port lock its port goes
// with it.
func (t *TCP) toClose(i int32) {
	t.leaveListeners(i)
	t.dropQueue(i)
	t.owns[i].flags &^= listens | established
	if !t.socks[i].portLock {
		t.leave(i)
	}
}

// dropPeer ends the other end of a connection, which was reset.
func (t *TCP) dropPeer(i int32) {
	o := t.socks[i].other
	t.socks[i].other = none
	if o < 0 {
		return
	}
	t.socks[o].other = none
	if t.socks[o].id.IsOtherEnd() {
		t.leave(o)
		t.destroy(o)
		return
	}
	t.toClose(o) // the nameless end went first: its connector is reset
}

// dropQueue resets the connections that wait in the queue of a socket that
// stops listening.
func (t *TCP) dropQueue(l int32) {
	if t.waiting == 0 || t.owns[l].flags&listens == 0 {
		return
	}
	for c := range t.socks {
		if s := &t.socks[c]; s.live && s.queue == l {
			if o := s.other; o >= 0 {
				t.socks[o].other = none
				t.toClose(o)
			}
			t.leave(int32(c))
			t.destroy(int32(c))
		}
	}
}

// resetAddr takes back an address that no bind asked for.
func (t *TCP) resetAddr(i int32) {
	if s := &t.socks[i]; !s.addrLock {
		t.moveTo(i, wildcardOf(s.is6))
	}
}

func (t *TCP) disconnect(i int32) {
	if !t.idleState(i) {
		t.dropPeer(i)
		t.toClose(i)
	}
	t.resetAddr(i)
	s := &t.socks[i]
	s.linked, s.peer, s.dest = false, addr{}, 0
}

func (t *TCP) shutdown(i int32, r rc.Result) rc.Result {
	switch f := t.owns[i].flags; {
	case f&listens != 0:
		t.disconnect(i)
	case f&established != 0:
		// The other end answers with a reset: the address stays.
		t.dropPeer(i)
		t.toClose(i)
	default:
		return answer(r, rc.ENOTCONN, rc.RefuseState)
	}
	r.Answer = rc.Success
	return r
}

func (t *TCP) close(i int32) {
	t.dropPeer(i)
	t.leaveListeners(i)
	t.dropQueue(i)
	t.leave(i)
	t.destroy(i)
}

// timewait leaves a TIME_WAIT socket in place of a connected one: it keeps
// options, device, address and port, and belongs to no user.
func (t *TCP) timewait(i int32, r rc.Result) rc.Result {
	if t.owns[i].flags&established == 0 {
		return answer(r, rc.ENOTCONN, rc.RefuseState)
	}
	t.dropPeer(i)
	// The newcomer joins before the socket leaves, so the buckets stay.
	j := t.create(rc.NoID)
	s, o := t.socks[i], t.owns[i]
	w := &t.owns[j]
	w.uid, w.dev = o.uid, o.dev
	w.flags = o.flags&(reuseAddr|reusePort|v6only|byConnect) | timeWait
	if t.rules.timeWaitForgets {
		w.flags &^= reusePort
	}
	t.socks[j] = sock{id: s.id, addr: s.addr, peer: s.peer, num: s.num, dest: s.dest, is6: s.is6,
		live: true, queue: none, other: none, serial: none, group: none}
	if o.port >= 0 {
		t.join(j, o.port, o.addr)
	}
	t.leave(i)
	t.destroy(i)
	t.named[s.id] = j
	t.waits[familyIndex(s.is6)]++
	r.Answer = rc.Success
	return r
}

func (t *TCP) expire(i int32, r rc.Result) rc.Result {
	if t.owns[i].flags&timeWait == 0 {
		return answer(r, rc.EINVAL, rc.RefuseState)
	}
	t.leave(i)
	t.destroy(i)
	r.Answer = rc.Success
	return r
}
