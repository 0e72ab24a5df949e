package live

import (
	"github.com/reusecheck/reusecheck"
)

// Watched is a Stack whose results carry the kernel's own caches, read by an
// Observer after every step. What cannot be seen is left out: a bucket that
// only TIME_WAIT sockets and connections that nobody accepted are in.
type Watched struct {
	*Stack
	observer *Observer

	bare  bool // the system has no caches to be read
	ids   []reusecheck.ID
	obs   []Observation
	ports map[reusecheck.ID]uint16
	cache map[uint16]reusecheck.Cache
}

// Watch makes s show its caches. Neither is closed with it.
func Watch(s *Stack, o *Observer) *Watched { return &Watched{Stack: s, observer: o} }

// Reset is the Stack's.
func (w *Watched) Reset(cfg reusecheck.Config) error {
	w.bare = cfg.System != "" && cfg.System != reusecheck.TCP
	w.ids = w.ids[:0]
	w.ports = map[reusecheck.ID]uint16{}
	w.cache = map[uint16]reusecheck.Cache{}
	return w.Stack.Reset(cfg)
}

// Do is the Stack's, with Before, After and AddrAfter of the port that the step
// is about: the one that the socket has afterwards, else the one it had.
func (w *Watched) Do(op reusecheck.Op) (reusecheck.Result, error) {
	if w.bare {
		return w.Stack.Do(op)
	}
	port := w.ports[op.Sock]
	switch {
	case op.Verb == reusecheck.VBind && port == 0, op.Verb == reusecheck.VInherit && op.Addr.Port() != 0:
		port = op.Addr.Port()
	}
	before, had := w.cache[port]
	r, err := w.Stack.Do(op)
	if err != nil {
		return r, err
	}
	w.follow(op, r.Answer)
	pairs, err := w.read()
	if err != nil {
		return r, err
	}
	if p := w.ports[op.Sock]; p != 0 && op.Verb != reusecheck.VInherit {
		port = p
	}
	after, has := w.cache[port]
	if port == 0 || !has {
		return r, nil
	}
	r.HasCache, r.After = true, after
	if had {
		r.Before = before
	}
	about := op.Sock
	if op.Verb == reusecheck.VInherit {
		about = op.Child
	}
	r.AddrAfter = pairs[about]
	return r, nil
}

// follow takes note of the sockets that a step makes.
func (w *Watched) follow(op reusecheck.Op, got reusecheck.Answer) {
	if got.Kind != reusecheck.OK {
		return
	}
	switch op.Verb {
	case reusecheck.VSocket:
		w.ids = append(w.ids, op.Sock)
	case reusecheck.VInherit:
		w.ids = append(w.ids, op.Child)
	case reusecheck.VConnect:
		w.ids = append(w.ids, op.Sock.OtherEnd())
	}
}

// read looks at the caches of all the sockets that are still there.
func (w *Watched) read() (map[reusecheck.ID]reusecheck.Pair, error) {
	var err error
	if w.obs, err = w.observer.Read(w.obs); err != nil {
		return nil, err
	}
	byFD := make(map[int]*Observation, len(w.obs))
	for i := range w.obs {
		byFD[w.obs[i].FD] = &w.obs[i]
	}
	clear(w.ports)
	clear(w.cache)
	pairs := map[reusecheck.ID]reusecheck.Pair{}
	for _, id := range w.ids {
		fd, ok := w.Descriptor(id)
		if !ok {
			continue
		}
		o := byFD[fd]
		if o == nil || o.Port == 0 {
			continue
		}
		w.ports[id], w.cache[o.Port] = o.Port, o.Cache
		if o.HasPair {
			pairs[id] = o.Pair
		}
	}
	return pairs, nil
}
