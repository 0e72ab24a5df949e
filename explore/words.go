package explore

import (
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// The caller's bits of a socket's word: what the oracle knows of its past, and,
// where the oracle sees another socket than the stack has, what it sees.
const (
	usedAt    = model.PastShift
	usedBit   = 1 << usedAt
	vagueBit  = 2 << model.PastShift
	driftBit  = 4 << model.PastShift
	driftAddr = model.PastShift + 3  // 4 bits, a code
	driftOpts = model.PastShift + 7  // 3 bits: reuseaddr, reuseport, v6only
	driftPort = model.PastShift + 10 // 2 bits, a code
	driftHold = model.PastShift + 12 // 3 bits: port named, address named, port by connect
	shutAt    = model.PastShift + 15
	shutBit   = 1 << shutAt

	// driftBits are all that say what the oracle sees.
	driftBits = shutBit - driftBit
	// rememberedBits are all that the oracle remembers for certain.
	rememberedBits = driftBits | usedBit | shutBit
)

// past is what the oracle knows of a socket beside what the stack has.
func (s *stepper) past(w uint64, o *rc.Socket) uint64 {
	if w == 0 {
		return 0
	}
	known := s.judged.Past(o.ID)
	return s.drift(w, o) | when[uint64](known.Used, usedBit) | when[uint64](known.Vague, vagueBit) | when[uint64](known.Shut, shutBit)
}

// drift is what the oracle sees of a socket where that is not what the stack has.
func (s *stepper) drift(w uint64, o *rc.Socket) uint64 {
	const opts = rc.ReuseAddr | rc.ReusePort | rc.V6Only
	k := &s.kinds.of(w).sock
	hold := holds(o)
	if k.Local == o.Local && k.Opts&opts == o.Opts&opts && holds(k) == hold {
		return 0
	}
	code := s.codec.AddrCode(o.Local.Addr())
	if code < 0 {
		return vagueBit // an address that no step of this world names
	}
	port := 0
	for i, p := range s.e.world.Ports {
		if p == o.Local.Port() {
			port = i + 1
		}
	}
	return driftBit | uint64(code)<<driftAddr | uint64(o.Opts&opts)<<driftOpts | uint64(port)<<driftPort | hold<<driftHold
}

func holds(k *rc.Socket) (h uint64) {
	for i, b := range [3]bool{k.PortLocked, k.AddrLocked, k.ByConnect} {
		if b {
			h |= 1 << i
		}
	}
	return h
}

// seen is the socket of a word as the oracle sees it.
func (e *engine) seen(w uint64, sock rc.Socket, addr func(code int) netip.Addr) rc.Socket {
	if w&driftBit == 0 {
		return sock
	}
	port := uint16(0)
	if c := w >> driftPort & 3; c > 0 {
		port = e.world.Ports[c-1]
	}
	a := rc.Canonical(sock.Family, addr(int(w>>driftAddr&15)))
	sock.Local = netip.AddrPortFrom(a, port)
	h := w >> driftHold
	sock.PortLocked, sock.AddrLocked, sock.ByConnect = h&1 != 0, h&2 != 0, h&4 != 0
	sock.Opts = sock.Opts&^(rc.ReuseAddr|rc.ReusePort|rc.V6Only) | rc.Opt(w>>driftOpts&7)
	return sock
}

// portSeen and byConnectSeen are what the oracle sees of a socket's word.
func portSeen(w uint64) int {
	if w&driftBit != 0 {
		return int(w >> driftPort & 3)
	}
	return model.PortOf(w)
}

func byConnectSeen(w uint64) bool {
	if w&driftBit != 0 {
		return w>>driftHold&4 != 0
	}
	return model.CameByConnect(w)
}

// The ghost's bits of a port's word: fastreuse plus one, fastreuseport plus one,
// user, exists.
func ghostOf(w uint64, users []uint32) rc.Cache {
	g := w >> model.GhostShift
	if g>>7&1 == 0 {
		return rc.Cache{}
	}
	c := rc.Cache{Exists: true, FastReuse: int8(g&3) - 1, FastReusePort: int8(g>>2&3) - 1}
	if c.FastReusePort > 0 {
		c.UID = users[g>>4&7]
	}
	return c
}

func ghostWord(c rc.Cache, users []uint32) uint64 {
	if !c.Exists {
		return 0
	}
	g := uint64(c.FastReuse+1) | uint64(c.FastReusePort+1)<<2 | 1<<7
	if c.FastReusePort > 0 {
		for i, u := range users {
			if u == c.UID {
				g |= uint64(i) << 4
			}
		}
	}
	return g << model.GhostShift
}
