package oracle

import "github.com/reusecheck/reusecheck"

// Known is a live socket with what an oracle knows of its past.
type Known struct {
	reusecheck.Socket
	Used  bool // it has connected, tried to, or listened
	Vague bool // its attributes cannot be known from the answers so far
	Shut  bool // a shutdown ended its connection, and it was not disconnected
}

// Restore forgets everything and takes in the given sockets, as if a history
// had led there: for an engine that comes back to a state. Every port that a
// socket holds is one that the stack has told.
func (t *TCP) Restore(c reusecheck.Config, socks []Known) {
	t.Reset(c)
	for i := range socks {
		if m := t.add(socks[i].Socket); m != nil {
			m.used, m.vague, m.shut = socks[i].Used, socks[i].Vague, socks[i].Shut
		}
	}
}

// Past gives what is known of a socket, the zero Known of one that is not there.
func (t *TCP) Past(id reusecheck.ID) Known {
	if m := t.find(id); m != nil {
		return Known{m.Socket, m.used, m.vague, m.shut}
	}
	return Known{}
}
