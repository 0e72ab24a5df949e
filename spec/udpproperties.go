package spec

import (
	"fmt"
	"slices"

	"github.com/reusecheck/reusecheck"
)

const lookupName = "lookup"

// Lookup is the property that a datagram gets to the socket that fits it best.
var Lookup = &Property{
	Name: lookupName,
	Doc: "A datagram gets to a socket that fits it best, to nobody only if none fits; early demultiplexing gives the socket that the " +
		"look-up would give, the 4-tuple table the one that scores would give, and every member of a reuseport group gets its share.",
	Check: checkLookup,
}

// SoundLook is [Sound] for the look at a port's address slots.
var SoundLook = &Property{
	Name:  soundName,
	Doc:   "What the look at the address slots accepts, the oracle accepts. Of a stack that does not name its path, every grant is judged.",
	Check: checkSound,
}

// CompleteLook is [Complete] for the walk through a port's sockets, and for every
// refusal.
var CompleteLook = &Property{
	Name: completeName,
	Doc: "What the walk through the port's sockets answers, the oracle answers; and whichever look refuses, some owner stands " +
		"against the request.",
	Check: func(o *Observation) Violation {
		if o.Op.Verb == reusecheck.VSend {
			return Violation{}
		}
		return checkComplete(o)
	},
}

// PreciseTable is the property that the 4-tuple table does its work and no more.
var PreciseTable = &Property{
	Name: preciseName,
	Doc: "The 4-tuple table gives every datagram of a connected socket, so that none is scored for; it is skipped where no " +
		"connected socket has the address.",
	Check: checkTable,
}

// TableStructure is the property that the tables and the sockets agree.
var TableStructure = &Property{
	Name: structureName,
	Doc: "Every socket is in the slot of its address. Each connected socket is in the 4-tuple table once, under its present " +
		"4-tuple, and no other socket is; the counters equal what they count.",
	Check: checkFaults,
}

// The ways in which a look-up can be wrong.
const (
	betterEarly  = "another fits better than the one that early demultiplexing takes"
	earlyDiffers = "early demultiplexing prefers another than the look-up does"
	betterTable  = "another fits better than the one that the 4-tuple table gives"
	betterScore  = "another fits better than the one that the scores give"
	betterUnsaid = "another fits better"
	nobodyGets   = "nobody gets it although a socket fits"
	misfitGets   = "a socket gets it that does not fit"
	leftOut      = "a member of the reuseport group gets nothing"
	tableDiffers = "the 4-tuple table prefers another than the scores do"
)

func checkLookup(o *Observation) Violation {
	if o.Op.Verb != reusecheck.VSend || o.Verdict.Open != "" {
		return Violation{}
	}
	if !o.Verdict.Agrees {
		return Violation{lookupName, wrongReceiver(o), receiverTags(o)}
	}
	l := o.Got.Lookup
	switch {
	case l == nil || o.Got.Kind != reusecheck.Received:
	case o.Got.Reason == reusecheck.TakeEarly && !slices.Contains(l.Scored, o.Got.Who):
		return Violation{Property: lookupName, Kind: earlyDiffers}
	case l.Table == reusecheck.TableHit && len(l.Scored) > 0 && !slices.Contains(l.Scored, o.Got.Who):
		return Violation{Property: lookupName, Kind: tableDiffers}
	case len(o.Verdict.Shared) > 1 && excluded(o) != reusecheck.NoID:
		return Violation{Property: lookupName, Kind: leftOut}
	}
	return Violation{}
}

func wrongReceiver(o *Observation) string {
	switch {
	case o.Verdict.Want.Kind == reusecheck.Nobody:
		return misfitGets
	case o.Got.Kind != reusecheck.Received:
		return nobodyGets
	case o.Got.Reason == reusecheck.TakeEarly:
		return betterEarly
	case o.Got.Path == reusecheck.PathFast:
		return betterTable
	case o.Got.Path == reusecheck.PathScan:
		return betterScore
	}
	return betterUnsaid
}

// receiverTags are the rules by which others are better, and the families met.
func receiverTags(o *Observation) Tags {
	var t Tags
	for _, c := range o.Verdict.Conflicts {
		t |= reasonTag(c.Reason)
		if s := o.Socket(c.Owner); s != nil && s.Family.Is6() == o.Op.Addr.Addr().Unmap().Is4() {
			t |= mixed
		}
	}
	return t
}

// excluded is a member of the group that shares a datagram which could not have
// got it, NoID for none.
func excluded(o *Observation) reusecheck.ID {
	for _, id := range o.Verdict.Shared {
		if !slices.Contains(o.Got.Lookup.Could, id) {
			return id
		}
	}
	return reusecheck.NoID
}

// The two ways in which the table can be of less use than it might.
const (
	pastTable = "a connected socket is scored for, past the 4-tuple table"
	inVain    = "the 4-tuple table is searched where no connected socket has the address"
)

func checkTable(o *Observation) Violation {
	l := o.Got.Lookup
	if l == nil || o.Verdict.Open != "" {
		return Violation{}
	}
	if s := o.Socket(o.Got.Who); o.Got.Kind == reusecheck.Received && s != nil && s.State == reusecheck.Connected &&
		(l.Table == reusecheck.TableMissed || l.Table == reusecheck.TableSkipped) {
		return Violation{Property: preciseName, Kind: pastTable}
	}
	if l.Table != reusecheck.TableMissed {
		return Violation{}
	}
	to := o.Op.Addr
	for i := range o.Before {
		s := &o.Before[i]
		if s.State == reusecheck.Connected && s.Local.Port() == to.Port() && s.Local.Addr().Unmap() == to.Addr().Unmap() {
			return Violation{}
		}
	}
	return Violation{Property: preciseName, Kind: inVain}
}

func checkFaults(o *Observation) Violation {
	if o.Broken == nil {
		return Violation{}
	}
	faults, ok := o.Broken.(reusecheck.Faults)
	if !ok {
		return checkStructure(o)
	}
	was, _ := o.WasBroken.(reusecheck.Faults)
	fresh := faults.New(was)
	if len(fresh) == 0 {
		return Violation{} // it was told when it came to be
	}
	return Violation{Property: structureName, Kind: o.Op.Verb.String() + ": " + fresh[0].Kind}
}

// sayUDP puts the violations of UDP into words.
func sayUDP(o *Observation, v Violation) string {
	op := o.Op.Text(o.Names)
	switch {
	case v.Property == structureName:
		return fmt.Sprintf("After %q the tables contradict their sockets: %v.", op, o.Broken)
	case v.Property == lookupName:
		return sayReceiver(o, v, op)
	case v.Kind == pastTable:
		return fmt.Sprintf("%q is for %s, which is connected to the sender, and yet %s scored: the 4-tuple table %s.", op,
			o.name(o.Got.Who), sockets(o.Got.Visited), tableDid(o.Got.Lookup.Table))
	case v.Kind == inVain:
		return fmt.Sprintf("%q searches the 4-tuple table: its counter says that a connected socket has the address, and none has.", op)
	case v.Property == soundName && o.Got.Path == reusecheck.PathFast:
		return fmt.Sprintf("%q is granted although %s. Only the address slots were looked at: the port has more than ten sockets.", op,
			against(o))
	case v.Property == completeName && o.Got.Kind == reusecheck.OK && o.Got.Path == reusecheck.PathScan && o.Got.Decider != reusecheck.NoID:
		return fmt.Sprintf("%q is granted although %s. The walk through the port's sockets ended at %s, the first that stood in the way, "+
			"because it shares; later ones were not looked at.", op, against(o), o.name(o.Got.Decider))
	}
	return ""
}

func sayReceiver(o *Observation, v Violation, op string) string {
	who := "nobody"
	if o.Got.Kind == reusecheck.Received {
		who = o.name(o.Got.Who)
		if s := o.Socket(o.Got.Who); s != nil {
			who += " (" + describe(s) + ")"
		}
	}
	switch v.Kind {
	case leftOut:
		return fmt.Sprintf("%q gets to %s and could never get to %s, which is in its reuseport group.", op, who, o.name(excluded(o)))
	case tableDiffers:
		return fmt.Sprintf("%q gets to %s, which the 4-tuple table has first, as the last to connect; by scores it would get to %s, the last to bind.",
			op, who, o.name(o.Got.Lookup.Scored[0]))
	case earlyDiffers:
		return fmt.Sprintf("%q gets to %s, the first socket of the address slot, to which early demultiplexing gives it unseen; the look-up would give it to %s.",
			op, who, o.name(o.Got.Lookup.Scored[0]))
	case misfitGets:
		return fmt.Sprintf("%q gets to %s, whom it does not fit; no socket fits it.", op, who)
	}
	better := o.Verdict.Conflicts[0]
	what := ""
	if s := o.Socket(better.Owner); s != nil {
		what = " (" + describe(s) + ")"
	}
	s := fmt.Sprintf("%q gets to %s; %s%s is the better receiver: %s.", op, who, o.name(better.Owner), what, better.Reason)
	if v.Kind == betterEarly {
		s += " Early demultiplexing gave it to the first socket of the address slot, and asked no other."
	}
	if v.Kind == betterTable {
		s += " The 4-tuple table gave it, and compares no scores."
	}
	return s
}

func tableDid(t reusecheck.Table) string {
	if t == reusecheck.TableSkipped {
		return "was skipped, its counter being 0"
	}
	return "was searched in vain"
}

func sockets(n int) string {
	if n == 1 {
		return "one socket is"
	}
	return fmt.Sprintf("%d sockets are", n)
}
