package explore

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// Settle proves a property or says what stands in the way: a history with up to
// so many sockets, if one is found.
func (p *Prover) Settle(ctx context.Context, prop *spec.Property, a Assumption, sockets int) (Verdict, error) {
	d := p.Prove(prop, a)
	if d.Proved {
		return d, nil
	}
	if err := p.Concrete(ctx, &d, prop, sockets); err != nil {
		return d, err
	}
	if err := ctx.Err(); err != nil || d.Trace != nil {
		return d, err // a search that is broken off has found nothing
	}
	return d, p.Refine(ctx, &d, prop)
}

// Weakest finds assumptions under which a property is settled to hold and of which
// none can be given up: it starts with all and gives up one after the other, so that
// those named first in Assumptions are kept only where they must be. Of each that
// stays, why has the verdict without it: what is violated with more assumptions is
// violated with fewer too. If even all together do not help, the verdict is no
// proof and the only one in why.
func (p *Prover) Weakest(ctx context.Context, prop *spec.Property, keep Assumption, sockets int) (proof Verdict, why []Verdict, err error) {
	a := Assumption(1<<features-1)&^Assumption(fReusePort|fListen|fClose|fWildcard) | keep
	if proof, err = p.Settle(ctx, prop, a, sockets); err != nil || !proof.Proved {
		return proof, []Verdict{proof}, err
	}
	for i := features - 1; i >= 0; i-- {
		bit := Assumption(1) << i
		if a&bit == 0 || keep&bit != 0 {
			continue
		}
		v, err := p.Settle(ctx, prop, a&^bit, sockets)
		if err != nil {
			return proof, why, err
		}
		if v.Proved {
			a, proof = a&^bit, v
			continue
		}
		v.Without = bit
		why = append(why, v)
	}
	slices.Reverse(why)
	return proof, why, nil
}

// Concrete looks for a history that shows what a verdict's pair does and keeps
// its assumptions: with what the pair shows, then with both options and another
// address, then with connections, which may have led there without being seen in
// it, and of which those that the history opens need one socket more.
//
// A property that never fails first is looked for beyond the fault that comes first.
func (p *Prover) Concrete(ctx context.Context, d *Verdict, prop *spec.Property, sockets int) error {
	first, without := d.World, feature(d.Assume)
	for i, w := range []struct {
		more    string
		sockets int
	}{
		{"", sockets},
		{"mapped", sockets},
		{"reuseaddr reuseport addr=127.0.0.1,127.0.0.2", sockets},
		{"connect disconnect ports=2 addr=127.0.0.1", min(sockets+1, model.MaxSockets)},
		{"inherit disconnect addr=127.0.0.1", sockets},
	} {
		more := w.more
		if more != "" && strings.Contains(first, "tcp6") {
			more = strings.Replace(more, "127.0.0.1", "127.0.0.1,::,::1", 1)
		}
		if mapped := strings.Contains(first, "::ffff:"); more == "mapped" {
			if more = ""; mapped { // a bucket of IPv4's wildcard that an IPv6 socket made
				more = "addr=::ffff:0.0.0.0"
			}
		} else if more != "" && mapped {
			more += ",::ffff:0.0.0.0"
		}
		words := remaining(first+" "+more, without)
		if words == d.World && w.more != "" {
			continue
		}
		if err := p.concrete(ctx, d, prop, words, w.sockets); err != nil || d.Trace != nil {
			return err
		}
		if i == 0 && prop != spec.Precise { // which does not ask what other grants were
			if _, found := p.closure(d.Assume, true).violation(prop); !found {
				d.NeverFirst = true
				if err := p.concrete(ctx, d, prop, words, w.sockets); err != nil || d.Trace != nil {
					return err
				}
			}
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
		s := Search{Kernel: p.Kernel, World: w, Sockets: n, Properties: []*spec.Property{prop}, Workers: 2, Memory: p.memory(),
			socketsOnly: true, beyond: d.NeverFirst}
		seen, err := s.Run(ctx, func(h *History) error {
			fails, err := judge.Failures(h)
			if err == nil && len(fails) > 0 {
				d.Trace, d.Failure = h, fails[0]
				return errDone
			}
			return err
		})
		switch {
		case err != nil && !errors.Is(err, errDone):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.Trace != nil:
			d.Cut = false
		case !seen.Complete:
			d.Cut = true
		}
	}
	return nil
}

// memory is what a search for a history may take, in bytes.
func (p *Prover) memory() int64 {
	if p.Memory > 0 {
		return p.Memory
	}
	return 1 << 30
}

var errDone = errors.New("found")
