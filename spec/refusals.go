package spec

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// refusalCause is what a stack takes for a conflict where the oracle sees none, 0
// where it is not plain: then the rule by which the stack refuses stands for it.
func refusalCause(o *Observation) (cause Tags) {
	if o.Verdict.Want.Kind == reusecheck.Failed && o.Verdict.Port == 0 {
		return 0
	}
	port, named := portAtIssue(o), o.Op.Verb != reusecheck.VConnect && !automatic(o)
	for i := range o.Before {
		own := &o.Before[i]
		if own.Local.Port() != port || port == 0 || named && o.Got.Decider != reusecheck.NoID && own.ID != o.Got.Decider {
			continue
		}
		cause |= takenFor(o, own)
	}
	return cause
}

// takenFor is what an owner of the port at issue, which stands against nothing, may
// be taken for.
func takenFor(o *Observation, own *reusecheck.Socket) Tags {
	if o.Verdict.Port != 0 { // a connection, which may share what others picked
		if own.ByConnect {
			return 0
		}
		return byExplicit
	}
	a := own.Local.Addr()
	switch s := o.Socket(o.Op.Sock); {
	case s == nil:
		return 0
	case o.Got.Reason == reusecheck.RefuseUID && s.UID == own.UID:
		return byUser
	case !requested(o).Unmap().Is4() || a.Unmap().Is4():
		return 0
	case own.Opts.Has(reusecheck.V6Only):
		return byV6Only
	case a == netip.IPv6Unspecified():
		return 0
	case own.State == reusecheck.Connected || own.State == reusecheck.TimeWait:
		return byOver6
	}
	return byChange // a bind would have made it v6only
}

// portAtIssue is the port that a request names, or the one that the oracle says
// is to be had; 0 for none.
func portAtIssue(o *Observation) uint16 {
	switch {
	case o.Verdict.Port != 0:
		return o.Verdict.Port
	case o.Verdict.Want.Port != 0:
		return o.Verdict.Want.Port
	case o.Op.Verb == reusecheck.VBind:
		return o.Op.Addr.Port()
	case o.Op.Verb == reusecheck.VListen:
		if s := o.Socket(o.Op.Sock); s != nil {
			return s.Local.Port()
		}
	}
	return 0
}

// amongConnections reports whether the port that the oracle would give has
// owners, and none that bound it: then nobody there is in the way of a
// connection, and it is a past owner that is.
func amongConnections(o *Observation) bool {
	port := portAtIssue(o)
	if o.Op.Verb != reusecheck.VConnect || port == 0 {
		return false
	}
	owners := 0
	for i := range o.Before {
		if s := &o.Before[i]; s.Local.Port() == port {
			if !s.ByConnect {
				return false
			}
			owners++
		}
	}
	return owners > 0
}
