package spec

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// Sentence says what is wrong at a step in words that a person can act on:
// which step, which owner, why the stack answered so, why the oracle does not.
func Sentence(o *Observation, v Violation) string {
	if o.sys != nil && o.sys.Say != nil {
		if s := o.sys.Say(o, v); s != "" {
			return s
		}
	}
	op := o.Op.Text(o.Names)
	switch v.Property {
	case structureName:
		return fmt.Sprintf("After %q the buckets contradict their owners: %v.", op, o.Broken)
	case preciseName:
		return preciseSentence(o, v, op)
	case agreesName:
		return fmt.Sprintf("%q is answered %s; the reference answers %s (%s).", op, o.answer(o.Got.Answer), o.answer(o.Verdict.Want), o.Verdict.Reference.Reason)
	case cacheName:
		ref := o.Verdict.Reference
		return fmt.Sprintf("After %q the cache is %s (that of the address bucket %s); the reference's is %s (%s).", op,
			whole(o.Got.After), pair(o.Got.AddrAfter), whole(ref.After), pair(ref.AddrAfter))
	}
	if o.Got.Kind == reusecheck.Received || o.Verdict.Want.Kind == reusecheck.Received {
		return fmt.Sprintf("The connection of %q goes to %s; the oracle says to %s, the listener that fits it best.",
			op, taker(o, o.Got.Answer), taker(o, o.Verdict.Want))
	}
	if o.Got.Kind == reusecheck.OK && o.Verdict.Want.Kind == reusecheck.OK {
		return fmt.Sprintf("%q is answered %s; the oracle allows %s.", op, o.answer(o.Got.Answer), o.answer(o.Verdict.Want))
	}
	if o.Got.Kind == reusecheck.OK {
		return fmt.Sprintf("%q is granted although %s. %s", op, against(o), why(o, v))
	}
	by := ""
	if o.Got.Decider != reusecheck.NoID {
		by = " because of " + o.name(o.Got.Decider)
	}
	if o.Got.Reason != reusecheck.ReasonNone {
		by += " (" + o.Got.Reason.String() + ")"
	}
	if len(o.Verdict.Conflicts) == 0 && o.Verdict.Want.Kind == reusecheck.OK {
		return fmt.Sprintf("%q is refused with %s%s although no owner stands against it.", op, o.answer(o.Got.Answer), by)
	}
	return fmt.Sprintf("%q is answered %s%s; the oracle says %s.", op, o.answer(o.Got.Answer), by, o.answer(o.Verdict.Want))
}

// name is what a person calls a socket, answer an answer in such names.
func (o *Observation) name(id reusecheck.ID) string {
	if o.Names == nil {
		return id.String()
	}
	return o.Names(id)
}

func (o *Observation) answer(a reusecheck.Answer) string { return a.Text(o.Names) }

// taker names the listener that an incoming connection goes to.
func taker(o *Observation, a reusecheck.Answer) string {
	if a.Kind == reusecheck.OK {
		return o.name(o.Op.Sock)
	}
	return o.answer(a)
}

// against names the owners that the oracle holds against a request.
func against(o *Observation) string {
	var s []string
	for i, c := range o.Verdict.Conflicts {
		if i == 3 {
			s = append(s, fmt.Sprintf("%d more", len(o.Verdict.Conflicts)-i))
			break
		}
		what := "an owner"
		if own := o.Socket(c.Owner); own != nil {
			what = describe(own)
		}
		s = append(s, fmt.Sprintf("%s (%s) stands against it: %s", o.name(c.Owner), what, c.Reason))
	}
	if len(s) == 0 {
		return "the oracle says " + o.answer(o.Verdict.Want)
	}
	return strings.Join(s, "; ")
}

// describe says where a socket is and what it has, briefly.
func describe(s *reusecheck.Socket) string {
	parts := []string{s.Family.String() + " " + s.Local.String()}
	if s.Opts != 0 {
		parts = append(parts, s.Opts.String())
	} else {
		parts = append(parts, "no option")
	}
	if s.UID != 0 {
		parts = append(parts, fmt.Sprintf("uid %d", s.UID))
	}
	if s.Dev != reusecheck.NoDev {
		parts = append(parts, "on "+s.Dev.String())
	}
	if s.CPU != reusecheck.NoCPU {
		parts = append(parts, "for processor "+s.CPU.String())
	}
	if s.State != reusecheck.Idle {
		parts = append(parts, s.State.String())
	}
	return strings.Join(parts, ", ")
}

// why says how the stack came to grant a request.
func why(o *Observation, v Violation) string {
	switch o.Got.Path {
	case reusecheck.PathFast:
		s := fmt.Sprintf("The fast path took it: %s", o.Got.Reason)
		if k := o.Key; k != nil && o.Got.Reason == reusecheck.AdmitStrict {
			s += fmt.Sprintf(" (the cache is keyed to %s: %s)", o.name(k.ID), describe(k))
		}
		if c := v.Tags.Causes(); c != "" {
			s += "; what it does not see: " + c
		}
		return s + "."
	case reusecheck.PathScan:
		return fmt.Sprintf("The owner scan visited %s and passed over the conflict.", owners(o.Got.Visited))
	case reusecheck.PathNone:
		return "No owner was looked at."
	}
	return "The stack does not say how it came to that."
}

func preciseSentence(o *Observation, v Violation, op string) string {
	if v.Kind == needlessScan {
		return fmt.Sprintf("%q visits %s that the cache could answer for: every owner so far allows %s, yet the cache says %s.",
			op, owners(o.Got.Visited), fields(o.GhostBefore), fields(o.Got.Before))
	}
	return fmt.Sprintf("After %q the cache says %s; its owners allow %s. The binds that follow visit every owner where one look at the cache would do.",
		op, fields(o.Got.After), fields(o.GhostAfter))
}

// whole is a cache with its key.
func whole(c reusecheck.Cache) string {
	if !c.Exists {
		return "gone"
	}
	s := fields(c)
	if c.FastReusePort > 0 {
		s += fmt.Sprintf(", keyed to %s %s uid %d", c.Family, c.Addr, c.UID)
		if c.V6Only {
			s += " v6only"
		}
	}
	return s
}

func pair(p reusecheck.Pair) string {
	if !p.Exists {
		return "gone"
	}
	return fields(reusecheck.Cache{FastReuse: p.FastReuse, FastReusePort: p.FastReusePort})
}

func fields(c reusecheck.Cache) string {
	return fmt.Sprintf("fastreuse %d, fastreuseport %s", c.FastReuse, c.PortName())
}

func owners(n int) string {
	if n == 1 {
		return "one owner"
	}
	return fmt.Sprintf("%d owners", n)
}
