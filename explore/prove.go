package explore

import (
	"fmt"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Prover proves properties of one kernel for any number of sockets. It keeps what
// it learns of the kernel's rules from one proof to the next.
type Prover struct {
	Kernel *model.Profile
	Memory int64 // of a search for a history, in bytes; 0 is 1 GiB
	t      *tables
	closed map[closureKey]*invariant
}

// NewProver fails for a kernel whose rules are not made of pairs.
func NewProver(kernel *model.Profile) (*Prover, error) {
	t, err := newTables(kernel)
	if err != nil {
		return nil, err
	}
	return &Prover{Kernel: kernel, t: t, closed: map[closureKey]*invariant{}}, nil
}

type closureKey struct {
	assume Assumption
	right  bool
}

// Verdict is what is known of a property under assumptions.
type Verdict struct {
	Property string
	Assume   Assumption
	Without  Assumption // the assumption that was given up, of a verdict by Weakest
	// Proved says that no pair of a cache and an owner violates the property,
	// for any number of sockets.
	Proved bool
	// Owners is how many tracked owners the proof has, and Refined why two of
	// them do not do where there is none, "" where that was not tried.
	Owners  int
	Refined string
	// Caches and Pairs are the size of the invariant.
	Caches, Pairs int
	// Pair is what stands in the way of a proof, in words.
	Pair string
	// World is where a concrete history was looked for, and Trace the one
	// that was found, with its answers; nil if there is none with so many Sockets.
	World   string
	Sockets int
	Trace   *History
	Failure spec.Failure
	// Cut says that a search for it was full before it had seen everything.
	Cut bool
	// NeverFirst says of a property that is not proved that it never fails
	// before some grant of a named port was wrong already: another property's
	// fault comes first. Trace then goes on after that.
	NeverFirst bool
}

// Prove closes the kernel's buckets under every step that the assumptions leave
// and looks for a pair in which the property fails.
func (p *Prover) Prove(prop *spec.Property, a Assumption) Verdict {
	v := p.invariant(a)
	d := Verdict{Property: prop.Name, Assume: a}
	d.Caches, d.Pairs = v.pairs()
	bad, found := v.violation(prop)
	if d.Proved = !found; d.Proved {
		d.Owners = 1
	}
	if found {
		d.Pair = p.t.describe(bad)
		d.World = p.t.worldOf(bad, feature(a))
	}
	return d
}

func (p *Prover) invariant(a Assumption) *invariant { return p.closure(a, false) }

func (p *Prover) closure(a Assumption, right bool) *invariant {
	k := closureKey{a, right}
	if p.closed[k] == nil {
		p.closed[k] = p.t.closure(a, right)
	}
	return p.closed[k]
}

// describe says what a violating pair is.
func (t *tables) describe(b abstract) string {
	q := &t.asks[b.row]
	cache := "an unowned port"
	if b.cache >= 0 {
		c := t.step.codec.Cache(t.caches[b.cache])
		cache = fmt.Sprintf("fastreuse %d, fastreuseport %d", c.FastReuse, c.FastReusePort)
		if c.FastReusePort > 0 {
			cache += fmt.Sprintf(" keyed to %s %s uid %d", c.Family, c.Addr, c.UID)
		}
	}
	s := fmt.Sprintf("with %s, %s by a socket that is %s", cache, q.act.op.Verb, t.sock(q.word))
	if b.owner >= 0 {
		s += ", beside an owner that is " + t.sock(t.words[b.owner])
	}
	return s
}

func (t *tables) sock(w uint64) string {
	k := t.step.kinds.of(w).sock
	s := fmt.Sprintf("%s %s %s", k.Family, k.Local.Addr(), k.State)
	if k.Opts != 0 {
		s += " " + k.Opts.String()
	}
	if k.UID != 0 {
		s += fmt.Sprintf(" uid=%d", k.UID)
	}
	if k.Dev != rc.NoDev {
		s += " dev=" + k.Dev.String()
	}
	return s
}

// worldOf is a small world that has what a violating pair is made of.
func (t *tables) worldOf(b abstract, without feature) string {
	var socks []rc.Socket
	q := &t.asks[b.row]
	socks = append(socks, t.step.kinds.of(q.word).sock)
	if b.owner >= 0 {
		socks = append(socks, t.step.kinds.of(t.words[b.owner]).sock)
	}
	if b.cache >= 0 {
		if c := t.step.codec.Cache(t.caches[b.cache]); c.FastReusePort > 0 {
			k := rc.Socket{Family: c.Family, Local: rcPort2(c.Addr), UID: c.UID, Opts: rc.ReusePort}
			if c.V6Only {
				k.Opts |= rc.V6Only
			}
			socks = append(socks, k)
		}
	}
	var words, addrs []string
	add := func(w string) { words = with(words, w) }
	joined := false // somebody came by a connection
	for i := range socks {
		s := &socks[i]
		add(s.Family.String())
		addrs = with(addrs, s.Local.Addr().String())
		if s.UID != 0 {
			add("uid=2")
		}
		if s.Dev != rc.NoDev {
			add("dev=2")
		}
		if s.Opts.Has(rc.V6Only) {
			add("v6only")
		}
		if s.State == rc.Connected || s.ByConnect || s.State == rc.TimeWait {
			joined = true // perhaps at a wildcard
			if s.Family.Is6() {
				addrs = with(addrs, "::")
			} else {
				addrs = with(addrs, "0.0.0.0")
			}
		}
	}
	slices.Sort(words)
	for i := range socks {
		for _, o := range []rc.Opt{rc.ReuseAddr, rc.ReusePort} {
			if socks[i].Opts.Has(o) {
				add(o.String())
			}
		}
	}
	words = append(words, "listen", "close")
	if joined {
		words = append(words, "inherit", "timewait", "expire", "shutdown", "disconnect")
		if without&fConnect == 0 {
			words = append(words, "connect", "ports=2")
		}
	}
	if without != 0 {
		for _, f := range []struct {
			f     feature
			words string
		}{{fSetOpt, "set-opt"}, {fSetUID, "uid=2 set-uid"}, {fSetDev, "dev=2 set-dev"}, {fRedirect | fInherit, "inherit other-port ports=2"}} {
			if without&f.f == 0 {
				words = append(words, f.words)
			}
		}
	}
	return remaining(strings.Join(words, " ")+" addr="+strings.Join(addrs, ","), without)
}
