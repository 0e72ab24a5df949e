package model

// UDPRules are what the changes of UDP set. Each field is one rule, named for
// what holds when it is true; the change that sets it says where it comes from.
type UDPRules struct {
	// Bind.
	wildcardBySlot bool // with many owners a wildcard binder looks at the wildcard's slot only
	everyOwner     bool // a candidate that shares does not end the look
	noStandIn      bool // an IPv4 binder does not meet an IPv6 socket with an address of its own

	// Look-up.
	earlyDemux   bool // what arrives from outside is first shown to the first socket of the address slot
	walkPrimary  bool // a port with few sockets is walked as a whole, and an address is worth no more than a device
	deviceAny    bool // being bound to no device is worth as much as being bound to the right one
	weights6     bool // over IPv6 too a processor is worth a quarter of a peer
	scorePrimary bool // a datagram that the address slots cannot place is looked for among the port's sockets

	// Reuseport groups.
	connectedWin  bool // a group's choice includes its connected members, and ends the look-up
	firstAnswers  bool // in a group with a connected member the first unconnected one gets everything
	growForgets   bool // a group that grows forgets that a member connected
	rescoreChoice bool // what the group chose is scored, not the member that was met
	pastGroup     bool // no group ends the look-up
	fittingChoice bool // a group chooses among the members that fit
	keepsAsked    bool // a datagram does not change what its receiver prefers
	groupByCPU    bool // a group prefers the members that asked for the datagram's processor

	// Address slots.
	stuckSlot    bool // a disconnect leaves the socket in the slot of the address it had
	deviceRehash bool // binding to a device rehashes, which ends the membership in a group

	// The 4-tuple table.
	table       bool // there is one
	beforePeer  bool // IPv4: the hash is taken before the new peer is set
	onlyMoved   bool // an entry is rehashed only if the address slot changes
	movesEntry  bool // a disconnect to the wildcard moves the entry instead of dropping it
	followsPeer bool // an entry goes where its socket's peer goes, and away with it

	keepsPeer6 bool // a disconnect leaves the IPv6 address of the peer
	halfway    bool // connect stops between the new address and the rehash, until the socket's next step
}
