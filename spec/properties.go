package spec

import (
	"strings"

	"github.com/reusecheck/reusecheck"
)

// Property is a named statement about every step of every history.
type Property struct {
	Name string
	Doc  string
	// Check gives the violation that a step shows, the zero Violation when it
	// shows none.
	Check func(*Observation) Violation
}

// Violation is one step at which a property does not hold.
type Violation struct {
	Property string // its name, "" for no violation
	// Kind says in which way it fails, in a word or two.
	Kind string
	// Tags are the circumstances: the rules that the oracle names, and what
	// tells the socket that was judged from the one the cache remembers.
	Tags Tags
}

// Same reports whether v is the finding w, perhaps in simpler circumstances:
// the same property fails in the same way, and every tag of v is one of w's.
// Shrinking keeps this, so it cannot slide from one finding to another.
func (v Violation) Same(w Violation) bool {
	return v.Property == w.Property && v.Kind == w.Kind && v.Tags&^w.Tags == 0 &&
		(v.Tags&causes != 0) == (w.Tags&causes != 0)
}

// Tags is a set of circumstances: reasons of the vocabulary, and the causes below.
type Tags uint64

// The circumstances beside the reasons. A cause is a way in which the cached
// socket does not stand for the one that is judged, or the listener that took a
// connection for the one that should have; of a request that is refused wrongly,
// what is taken for a conflict in the owner that it is refused for.
const (
	byReuseAddr Tags = 1 << (40 + iota)
	byDevice
	byV6Only
	byAddress
	byUser
	byChange   // the owner changed after it was admitted
	byUpdate   // the owner came without a cache update (connect, inherit)
	byChild    // the cache is keyed to a connection, which was never checked
	byCPU      // one asked for the processor of a connection or datagram, and another took it
	mixed      // IPv4 against IPv6 or v4-mapped
	wildBinder // the binder asks for a wildcard address
	wildOwner  // the owner has one
	left4      // a TIME_WAIT socket that is wrongly left or gone is an IPv4 one
	left6      // ... an IPv6 one
	byOver6    // the owner is connected over IPv6, and stands against IPv4
	byExplicit // the owner's port was bound to by name, at another address
	causes     = byReuseAddr | byDevice | byV6Only | byAddress | byUser | byChange | byUpdate | byChild | byCPU | byOver6 | byExplicit
)

var tagNames = []struct {
	tag  Tags
	name string
}{
	{byReuseAddr, "reuseaddr"}, {byDevice, "device"}, {byV6Only, "v6only"}, {byAddress, "address"},
	{byUser, "user"}, {byChange, "change after bind"}, {byUpdate, "no update"},
	{byChild, "unchecked child"}, {byCPU, "processor"}, {mixed, "mixed families"},
	{wildBinder, "wildcard binder"}, {wildOwner, "wildcard owner"},
	{left4, "IPv4"}, {left6, "IPv6"}, {byOver6, "IPv6 connection"}, {byExplicit, "explicit bind"},
}

func reasonTag(r reusecheck.Reason) Tags { return 1 << r }

// Causes are the tags' names that say why a cache misled, for a report.
func (t Tags) Causes() string {
	var s []string
	for _, n := range tagNames {
		if t&causes&n.tag != 0 {
			s = append(s, n.name)
		}
	}
	return strings.Join(s, ", ")
}

// The properties' names.
const (
	soundName     = "sound"
	completeName  = "complete"
	preciseName   = "precise"
	structureName = "structure"
)

// Sound is the property that what the fast path accepts, the oracle accepts.
var Sound = &Property{
	Name: soundName,
	Doc: "What the fast path accepts, the oracle accepts: a cached answer never lets a socket in " +
		"that stands in conflict with a live owner. Of a stack that does not name its path, every grant is judged.",
	Check: checkSound,
}

// Complete is the property that what the owner scan answers, the oracle answers.
var Complete = &Property{
	Name: completeName,
	Doc: "What the owner scan answers, the oracle answers: it refuses no request that no owner stands against, " +
		"and grants none that one does.",
	Check: checkComplete,
}

// Precise is the property that the cache is as strong as the owners allow.
var Precise = &Property{
	Name: preciseName,
	Doc: "The cache is as strong as the documented intent makes it (the first owner of an empty bucket sets both " +
		"fields from its own options, later owners weaken or re-key them), so that no scan is needless.",
	Check: checkPrecise,
}

// Structure is the property that buckets and owners agree.
var Structure = &Property{
	Name:  structureName,
	Doc:   "Buckets and owners agree: every owner is in exactly one address bucket, that of its address, and no bucket is empty.",
	Check: checkStructure,
}

func checkSound(o *Observation) Violation {
	if o.Verdict.Agrees || o.Got.Kind != reusecheck.OK ||
		o.Got.Path != reusecheck.PathFast && o.Got.Path != reusecheck.PathUnknown {
		return Violation{}
	}
	return Violation{soundName, o.Op.Verb.String() + " granted by " + o.Got.Path.String(), conflictTags(o) | causeTags(o)}
}

func checkComplete(o *Observation) Violation {
	granted := o.Got.Kind == reusecheck.OK
	if o.Verdict.Agrees || granted && (o.Got.Path == reusecheck.PathFast || o.Got.Path == reusecheck.PathUnknown) {
		return Violation{}
	}
	kind := o.Op.Verb.String() + " refused"
	tags := conflictTags(o)
	switch {
	case granted && o.Verdict.Want.Kind == reusecheck.OK:
		kind = o.Op.Verb.String() + " granted another port"
	case granted:
		kind = o.Op.Verb.String() + " granted"
	case o.Got.Kind == reusecheck.Received:
		kind = o.Op.Verb.String() + " taken by another"
	default:
		if o.Op.Verb == reusecheck.VListen && automatic(o) {
			kind = "listen without a port refused" // another request, which no other shrinks to
		}
		cause := refusalCause(o)
		switch {
		case cause != 0:
			tags |= cause // whichever rule of options the owner was held against by
		case amongConnections(o):
			kind += " among connections only"
			fallthrough
		default:
			tags |= reasonTag(o.Got.Reason)
		}
	}
	if o.Op.Verb == reusecheck.VInherit {
		if passesProcessor(o) {
			tags |= byCPU
		}
		for _, a := range [2]reusecheck.Answer{o.Got.Answer, o.Verdict.Want} {
			if id := tookIt(o, a); changed(o.Socket(id), o.Ghost.Admitted(id)) {
				tags |= byChange
			}
		}
	}
	return Violation{completeName, kind, tags}
}

// tookIt is the listener that takes a connection by an answer to inherit.
func tookIt(o *Observation, a reusecheck.Answer) reusecheck.ID {
	if a.Kind == reusecheck.Received {
		return a.Who
	}
	return o.Op.Sock
}

// changed reports whether an owner has other options, another user or device than
// when it was admitted.
func changed(own, was *reusecheck.Socket) bool {
	const reuse = reusecheck.ReuseAddr | reusecheck.ReusePort
	return own != nil && was != nil && (was.Opts&reuse != own.Opts&reuse || was.UID != own.UID || was.Dev != own.Dev)
}

// passesProcessor reports whether the listener that should have taken a connection
// asked for its processor, and the one that did not.
func passesProcessor(o *Observation) bool {
	wants := func(a reusecheck.Answer) bool {
		s := o.Socket(tookIt(o, a))
		return s != nil && s.CPU == o.Op.CPU
	}
	return o.Op.CPU != reusecheck.NoCPU && wants(o.Verdict.Want) && !wants(o.Got.Answer)
}

// The two ways in which a cache can be weaker than it need be.
const (
	weakCache    = "the cache is weaker than its owners allow"
	needlessScan = "owners are visited that the cache could answer for"
)

func checkPrecise(o *Observation) Violation {
	if !o.Got.HasCache || o.Got.Kind != reusecheck.OK {
		return Violation{}
	}
	g, b := o.GhostBefore, o.Op.Sock
	if o.Got.Path == reusecheck.PathScan && g.Exists && !automatic(o) {
		s := o.Socket(b)
		if s == nil {
			return Violation{}
		}
		reuse := g.FastReuse == reusecheck.FastReuse && s.Opts.Has(reusecheck.ReuseAddr) && o.Op.Verb != reusecheck.VListen
		share := g.FastReusePort == reusecheck.FastAny && s.Opts.Has(reusecheck.ReusePort) && g.UID == s.UID &&
			s.State != reusecheck.Listening
		if reuse || share {
			return Violation{Property: preciseName, Kind: needlessScan}
		}
	}
	if weaker(o.Got.After.FastReuse, o.GhostAfter.FastReuse) || o.Got.After.Exists && o.GhostAfter.Exists &&
		strength(o.Got.After.FastReusePort) < strength(o.GhostAfter.FastReusePort) {
		return Violation{Property: preciseName, Kind: weakCache}
	}
	return Violation{}
}

// automatic reports whether the step picks a port, for which no cache is asked.
func automatic(o *Observation) bool {
	switch o.Op.Verb {
	case reusecheck.VBind:
		return o.Op.Addr.Port() == 0
	case reusecheck.VListen:
		s := o.Socket(o.Op.Sock)
		return s == nil || !s.Owner()
	}
	return true
}

func weaker(have, could int8) bool {
	return could == reusecheck.FastReuse && have != reusecheck.FastReuse
}

// strength orders the values of fastreuseport by how much they answer for.
func strength(v int8) int {
	switch v {
	case reusecheck.FastAny:
		return 2
	case reusecheck.FastStrict:
		return 1
	}
	return 0
}

func checkStructure(o *Observation) Violation {
	if o.Broken == nil {
		return Violation{}
	}
	return Violation{Property: structureName, Kind: o.Op.Verb.String()}
}

// conflictTags are the rules by which the oracle refuses, and the shape of the
// pairs: tags that a simpler trace may lose and never gain.
func conflictTags(o *Observation) Tags {
	var t Tags
	addr := requested(o)
	note := func(id reusecheck.ID) {
		own := o.Socket(id)
		if own == nil {
			return
		}
		if addr.Is4() != own.Local.Addr().Is4() || addr.Is4In6() || own.Local.Addr().Is4In6() {
			t |= mixed
		}
		if addr.Unmap().IsUnspecified() {
			t |= wildBinder
		}
		if own.Local.Addr().Unmap().IsUnspecified() {
			t |= wildOwner
		}
	}
	for _, c := range o.Verdict.Conflicts {
		t |= reasonTag(c.Reason)
		note(c.Owner)
	}
	if len(o.Verdict.Conflicts) == 0 {
		note(o.Got.Decider)
	}
	return t
}

// causeTags tell the socket that was let in from the one that the cache was
// keyed to, and its opponents from what they were when they were let in.
func causeTags(o *Observation) Tags {
	s := find(o.After, o.Op.Sock)
	if s == nil {
		return 0
	}
	var t Tags
	if k := o.Key; k != nil && o.Got.Reason != reusecheck.AdmitReuseAddr {
		if (k.Opts^s.Opts)&reusecheck.ReuseAddr != 0 {
			t |= byReuseAddr
		}
		if (k.Opts^s.Opts)&reusecheck.V6Only != 0 && k.Family == s.Family {
			t |= byV6Only
		}
		if k.State == reusecheck.Connected {
			t |= byChild
		}
		if k.Dev != s.Dev {
			t |= byDevice
		}
		if k.UID != s.UID {
			t |= byUser
		}
		if k.Local.Addr() != s.Local.Addr() {
			t |= byAddress
		}
	}
	for _, c := range o.Verdict.Conflicts {
		own, was := o.Socket(c.Owner), o.Ghost.Admitted(c.Owner)
		switch {
		case own == nil:
		case was == nil:
			t |= byUpdate
		case changed(own, was):
			t |= byChange
		}
	}
	return t
}
