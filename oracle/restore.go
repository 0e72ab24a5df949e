package oracle

import "github.com/reusecheck/reusecheck"

// Known is a live socket with what an oracle knows of its past.
type Known struct {
	reusecheck.Socket
	Used  bool // it has connected, tried to, or listened
	Vague bool // its attributes cannot be known from the answers so far
}

// Restore forgets everything and takes in the given sockets, as if a history
// had led there: for an engine that comes back to a state. Every port that a
// socket holds is one that the stack has told.
func (t *TCP) Restore(c reusecheck.Config, socks []Known) {
	t.Reset(c)
	for i := range socks {
		if m := t.add(socks[i].Socket); m != nil {
			m.used, m.vague = socks[i].Used, socks[i].Vague
		}
	}
}

// Past gives what is known of a socket beside its attributes.
func (t *TCP) Past(id reusecheck.ID) (used, vague bool) {
	if m := t.find(id); m != nil {
		return m.used, m.vague
	}
	return false, false
}
