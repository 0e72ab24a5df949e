package explore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
	t      *tables
	closed map[Assumption]*invariant
}

// NewProver fails for a kernel whose rules are not made of pairs.
func NewProver(kernel *model.Profile) (*Prover, error) {
	t, err := newTables(kernel)
	if err != nil {
		return nil, err
	}
	return &Prover{Kernel: kernel, t: t, closed: map[Assumption]*invariant{}}, nil
}

// Verdict is what is known of a property under assumptions.
type Verdict struct {
	Property string
	Assume   Assumption
	Without  Assumption // the assumption that was given up, of a verdict by Weakest
	// Proved says that no pair of a cache and an owner violates the property,
	// for any number of sockets.
	Proved bool
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
}

// Prove closes the kernel's buckets under every step that the assumptions leave
// and looks for a pair in which the property fails.
func (p *Prover) Prove(prop *spec.Property, a Assumption) Verdict {
	v := p.invariant(a)
	d := Verdict{Property: prop.Name, Assume: a}
	d.Caches, d.Pairs = v.pairs()
	bad, found := v.violation(prop)
	d.Proved = !found
	if found {
		d.Pair = p.t.describe(bad)
		d.World = p.t.worldOf(bad, feature(a))
	}
	return d
}

func (p *Prover) invariant(a Assumption) *invariant {
	if p.closed[a] == nil {
		p.closed[a] = p.t.closure(a)
	}
	return p.closed[a]
}

// Weakest finds assumptions under which a property is proved and of which none
// can be given up: it starts with all and gives up one after the other, so that
// those named first in Assumptions are kept only where they must be. Of each that
// stays, why has the verdict without it: what is violated with more assumptions is
// violated with fewer too. If even all together do not help, ok is false.
func (p *Prover) Weakest(prop *spec.Property, keep Assumption) (a Assumption, why []Verdict, ok bool) {
	a = Assumption(1<<features-1)&^Assumption(fReusePort|fListen|fClose|fWildcard) | keep
	if v := p.Prove(prop, a); !v.Proved {
		return a, []Verdict{v}, false
	}
	for i := features - 1; i >= 0; i-- {
		bit := Assumption(1) << i
		if a&bit == 0 || keep&bit != 0 {
			continue
		}
		if v := p.Prove(prop, a&^bit); v.Proved {
			a &^= bit
		} else {
			v.Without = bit
			why = append(why, v)
		}
	}
	slices.Reverse(why)
	return a, why, true
}

// Concrete looks for a history that shows what a verdict's pair does and keeps
// its assumptions: with what the pair shows, then with both options and another
// address, then with connections, which may have led there without being seen in
// it, and of which those that the history opens need one socket more.
func (p *Prover) Concrete(ctx context.Context, d *Verdict, prop *spec.Property, sockets int) error {
	first, without := d.World, feature(d.Assume)
	for _, w := range []struct {
		more    string
		sockets int
	}{
		{"", sockets},
		{"reuseaddr reuseport addr=127.0.0.1,127.0.0.2", sockets},
		{"connect disconnect ports=2 addr=127.0.0.1", min(sockets+1, model.MaxSockets)},
		{"inherit disconnect addr=127.0.0.1", sockets},
	} {
		more := w.more
		if more != "" && strings.Contains(first, "tcp6") {
			more = strings.Replace(more, "127.0.0.1", "127.0.0.1,::,::1", 1)
		}
		if more != "" && strings.Contains(first, "::ffff:") {
			more += ",::ffff:0.0.0.0"
		}
		words := remaining(first+" "+more, without)
		if words == d.World && w.more != "" {
			continue
		}
		if err := p.concrete(ctx, d, prop, words, w.sockets); err != nil || d.Trace != nil {
			return err
		}
	}
	return nil
}

// wordNeeds are the features that a world's words are about.
var wordNeeds = map[string]feature{
	"tcp6": fV6, "v6only": fV6Only, "reuseaddr": fReuseAddr, "reuseport": fReusePort, "uid": fUID, "dev": fDev,
	"listen": fListen, "close": fClose, "shutdown": fShutdown, "disconnect": fShutdown, "connect": fConnect,
	"inherit": fInherit, "other-port": fRedirect | fInherit, "timewait": fTimeWait, "expire": fTimeWait, "auto": fAuto,
	"set-opt": fSetOpt, "set-uid": fSetUID | fUID, "set-dev": fSetDev | fDev,
}

// remaining is a world's description without what an assumption takes away, each
// word once and all addresses in one.
func remaining(text string, without feature) string {
	var words, addrs []string
	for _, s := range strings.Fields(text) {
		name, value, _ := strings.Cut(s, "=")
		switch {
		case name == "addr":
			for _, a := range strings.Split(value, ",") {
				ip := netip.MustParseAddr(a)
				needs := when(ip.Is6(), fV6) | when(ip.Is4In6(), fMapped) | when(ip.Unmap().IsUnspecified(), fWildcard)
				if needs&without == 0 {
					addrs = with(addrs, a)
				}
			}
		case wordNeeds[name]&without == 0:
			words = with(words, s)
		}
	}
	slices.Sort(addrs)
	return strings.Join(words, " ") + " addr=" + strings.Join(addrs, ",")
}

func (p *Prover) concrete(ctx context.Context, d *Verdict, prop *spec.Property, words string, sockets int) error {
	w, err := ParseWorld(words)
	if err != nil {
		return err
	}
	judge := NewJudge(p.Kernel, []*spec.Property{prop})
	for n := min(2, sockets); n <= sockets && d.Trace == nil; n++ {
		d.World, d.Sockets = words, n
		s := Search{Kernel: p.Kernel, World: w, Sockets: n, Properties: []*spec.Property{prop}, Workers: 2, Memory: 1 << 30, socketsOnly: true}
		_, err := s.Run(ctx, func(h *History) error {
			fails, err := judge.Failures(h)
			if err == nil && len(fails) > 0 {
				d.Trace, d.Failure = h, fails[0]
				return errDone
			}
			return err
		})
		if err != nil && !errors.Is(err, errDone) {
			return err
		}
	}
	return nil
}

var errDone = errors.New("found")

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
