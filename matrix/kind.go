package matrix

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/reusecheck/reusecheck"
)

// Kind is a sort of socket: what it is made with, the address it is bound to
// and whether it listens there.
type Kind struct {
	Family reusecheck.Family
	Addr   netip.Addr
	Opts   reusecheck.Opt // of ReuseAddr, ReusePort and V6Only
	UID    uint32
	Dev    reusecheck.Dev
	Listen bool
}

// String is the kind as [Parse] reads it.
func (k Kind) String() string {
	s := k.Family.String() + " " + k.Addr.String()
	if k.Opts != 0 {
		s += " " + k.Opts.String()
	}
	if k.UID != 0 {
		s += " uid=" + strconv.FormatUint(uint64(k.UID), 10)
	}
	if k.Dev != reusecheck.NoDev {
		s += " dev=" + k.Dev.String()
	}
	if k.Listen {
		s += " listen"
	}
	return s
}

// MarshalText makes a kind a string in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(text []byte) error {
	p := parser{"kind", string(text)}
	words := p.words(0, len(text))
	var err error
	if len(words) == 0 {
		return p.errorAt(0, "a kind is missing", usage)
	}
	*k, err = p.kind(words)
	return err
}

// second is the kind as the second socket of a pair: it does not listen yet,
// for that is what it is asked to do.
func (k Kind) second() Kind {
	k.Listen = false
	return k
}

// columns are the rows whose kinds are the second sockets: the first row of
// each kind, whether it listens or not.
func columns(kinds []Kind) []int {
	var cols []int
	for i, k := range kinds {
		if !slices.ContainsFunc(cols, func(c int) bool { return kinds[c].second() == k.second() }) {
			cols = append(cols, i)
		}
	}
	return cols
}

// port is the one that every pair meets at.
const port = 40000

// ops are the operations that make socket id one of this kind; what it is asked
// for last, bind or listen, stands last.
func (k Kind) ops(id reusecheck.ID) []reusecheck.Op {
	make := reusecheck.NewSocket(id, k.Family, k.Opts)
	make.UID, make.Dev = k.UID, k.Dev
	ops := []reusecheck.Op{make, reusecheck.Bind(id, netip.AddrPortFrom(k.Addr, port))}
	if k.Listen {
		ops = append(ops, reusecheck.Listen(id))
	}
	return ops
}
