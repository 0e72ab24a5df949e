package model

// TimeWaitRules are what the changes of system timewait set: how a batch of
// network namespaces is torn down. How its sockets bind and connect is Rules.
type TimeWaitRules struct {
	row  deathRow
	skip skipRule

	ownTables bool // tcp_child_ehash_entries gives a namespace a table of its own
	ownAlways bool // ... which is walked whatever the counts say
	onePass   bool // one pass for both families, the IPv4 one
	exclusive bool // two batch exits never run at once

	noPurge   bool // nothing is walked: timers outlive the namespace
	oneFamily bool // the one pass there is asks for IPv4
	ipv4First bool // the IPv4 exits run before the IPv6 pass
}

// deathRow is what counts the TIME_WAIT sockets of a namespace.
type deathRow uint8

const (
	rowCounter deathRow = iota // a plain count inside the namespace
	rowBlock                   // a block of its own, freed by whoever brings the count to 0; the namespace's own 1 goes in its IPv4 exit
	rowInside                  // inside the namespace, whose own 1 goes in the IPv4 batch exit and must be the last
)

// own is what the namespace itself adds to the count while it lives.
func (r deathRow) own() int32 {
	if r == rowCounter {
		return 0
	}
	return 1
}

// skipRule is when a pass may leave out its walk.
type skipRule uint8

const (
	skipNever    skipRule = iota
	skipProposed          // as proposed: by the count in the IPv6 pass, by the row's presence in the IPv4 pass
	skipMerged            // by the count in both
)
