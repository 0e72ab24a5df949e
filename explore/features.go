package explore

import (
	"fmt"
	"math/bits"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// feature is a set of things that happen in the world of a proof. An assumption
// takes one away: its word has "no-" before it.
type feature uint32

const (
	fSetOpt feature = 1 << iota
	fSetUID
	fSetDev
	fRedirect
	fDev
	fUID
	fConnect
	fInherit
	fTimeWait
	fAuto
	fShutdown
	fClose
	fListen
	fV6
	fMapped
	fV6Only
	fWildcard
	fReuseAddr
	fReusePort
	features = iota
)

// featureWords are in the order in which assumptions are tried to be given up:
// the ones that cost least come last.
var featureWords = [features]struct{ name, doc string }{
	{"set-opt", "reuseaddr and reuseport do not change after bind"},
	{"set-uid", "sockets do not change hands"},
	{"set-dev", "devices do not change after bind"},
	{"redirect", "no connection is handed to a listener of another port"},
	{"dev", "no devices"},
	{"uid", "one user"},
	{"connect", "no active opens"},
	{"inherit", "no incoming connections"},
	{"timewait", "no TIME_WAIT sockets"},
	{"auto", "no automatic ports"},
	{"shutdown", "no shutdown, no disconnect"},
	{"close", "sockets stay open"},
	{"listen", "no listening sockets"},
	{"v6", "no IPv6 sockets"},
	{"mapped", "no v4-mapped addresses"},
	{"v6only", "no v6only sockets"},
	{"wildcard", "no wildcard addresses"},
	{"reuseaddr", "no SO_REUSEADDR"},
	{"reuseport", "no SO_REUSEPORT"},
}

// Assumptions lists what ParseAssumptions understands, with what each means.
func Assumptions() (names, docs []string) {
	for _, w := range featureWords {
		names, docs = append(names, "no-"+w.name), append(docs, w.doc)
	}
	return append(names, "no-set"), append(docs, "nothing changes after creation: no-set-opt, no-set-uid and no-set-dev")
}

// ParseAssumptions reads assumptions such as no-set and no-dev.
func ParseAssumptions(words []string) (Assumption, error) {
	var a feature
next:
	for _, s := range words {
		if s == "no-set" {
			a |= fSetOpt | fSetUID | fSetDev
			continue
		}
		for i, w := range featureWords {
			if s == "no-"+w.name {
				a |= 1 << i
				continue next
			}
		}
		names, _ := Assumptions()
		near := rc.Nearest(s, names)
		if near != "" {
			near = fmt.Sprintf(", did you mean %q?", near)
		}
		return 0, fmt.Errorf("there is no assumption %q%s; there are %s", s, near, strings.Join(names, ", "))
	}
	return Assumption(a), nil
}

// Assumption is a set of features that a proof does without.
type Assumption feature

// String joins the assumptions with commas, "nothing" for none.
func (a Assumption) String() string {
	if a == 0 {
		return "nothing"
	}
	var s []string
	f := feature(a)
	if all := fSetOpt | fSetUID | fSetDev; f&all == all {
		s, f = append(s, "no-set"), f&^all
	}
	for f != 0 {
		i := bits.TrailingZeros32(uint32(f))
		s, f = append(s, "no-"+featureWords[i].name), f&^(1<<i)
	}
	return strings.Join(s, ",")
}

// needs are the features that a step of a fresh socket, or of one that is there,
// takes part in.
func (a *action) needs() feature {
	var f feature
	if a.fresh {
		c := &a.create
		f |= when(c.UID != 0, fUID) | when(c.Dev != rc.NoDev, fDev) | when(c.Family.Is6(), fV6) | when(c.Opts.Has(rc.V6Only), fV6Only) |
			when(c.Opts.Has(rc.ReuseAddr), fReuseAddr) | when(c.Opts.Has(rc.ReusePort), fReusePort)
	}
	switch a.op.Verb {
	case rc.VBind:
		f |= when(a.op.Addr.Addr().Is4In6(), fMapped) | when(a.op.Addr.Addr().Unmap().IsUnspecified(), fWildcard) | when(a.op.Addr.Port() == 0, fAuto)
	case rc.VListen:
		f |= fListen | when(a.fresh, fAuto|fWildcard)
	case rc.VConnect:
		f |= fConnect
	case rc.VInherit:
		f |= fInherit | when(a.op.Addr.Port() != 0, fRedirect)
	case rc.VTimeWait, rc.VExpire:
		f |= fTimeWait
	case rc.VShutdown, rc.VDisconnect:
		f |= fShutdown
	case rc.VClose:
		f |= fClose
	case rc.VSet:
		switch a.op.Field {
		case rc.SetOpt:
			f |= fSetOpt | when(a.op.Opts == rc.ReuseAddr, fReuseAddr) | when(a.op.Opts == rc.ReusePort, fReusePort)
		case rc.SetUID:
			f |= fSetUID | fUID
		case rc.SetDev:
			f |= fSetDev | fDev
		}
	}
	return f
}

// when is f if b holds, else nothing.
func when[T feature | uint64](b bool, f T) T {
	if b {
		return f
	}
	return 0
}
