package model

// oldestUDP are the rules before any change of the list: those of 4.5, when
// reuseport groups had come.
func oldestUDP() UDPRules {
	return UDPRules{
		wildcardBySlot: true, walkPrimary: true, connectedWin: true, stuckSlot: true, keepsPeer6: true,
	}
}

// udpChanges are the changes of UDP, in the order of mainline; candidates, which
// no kernel has, at the end.
var udpChanges = []Change{
	{
		Name: "udp-early-demux", Commit: "421b3885bf6d, 5425077d73e0", Since: "3.13, IPv6 4.12", Rows: "E12",
		Subject: "udp: ipv4: Add udp early demux",
		Doc: "A datagram that arrives on another device than the loopback goes to the first socket of its address slot, if that one is connected " +
			"to the sender and on the device; no table is asked and no score taken. The settings ip_early_demux and udp_early_demux turn it off " +
			"(seen on 6.1.192, 6.12.117, 6.18.44).",
		udp: func(r *UDPRules) { r.earlyDemux = true },
	},
	{
		Name: "udp-specific-first", Commit: "4cdeeee9252a", Since: "5.0", Rows: "30, 31",
		Subject: "net: udp: prefer listeners bound to an address",
		Doc: "The slot of the datagram's own address is looked at first, whatever the number of sockets, and that of the wildcard only " +
			"if nobody there fits. Being bound to no device became worth as much as being bound to the right one.",
		udp: func(r *UDPRules) { r.walkPrimary, r.deviceAny = false, true },
	},
	{
		Name: "udp-device-rehash", Commit: "6da5b0f027a8 ?", Since: "5.0",
		Subject: "net: ensure unbound datagram socket to be chosen when not in a VRF (series)",
		Doc:     "Binding a socket to a device rehashes it, so that it leaves its reuseport group (seen on 6.1.192, 6.12.117, 6.18.44).",
		udp:     func(r *UDPRules) { r.deviceRehash = true },
	},
	{
		Name: "udp-connected-members", Commit: "acdcecc61285", Since: "5.4", Stable: "5.2.17, 5.3.1", Rows: "35, 37, 36",
		Subject: "udp: correct reuseport selection with connected sockets",
		Doc: "A group never chooses a connected member, and one that has had one does not end the look-up. As it came, the first " +
			"unconnected member then got everything, and a group that grew forgot.",
		udp: func(r *UDPRules) { r.connectedWin, r.firstAnswers, r.growForgets = false, true, true },
	},
	{
		Name: "udp-rehash-on-disconnect", Commit: "303d0403b8c2", Since: "5.6", Stable: "5.4, 5.5 (March 2020)", Rows: "30",
		Subject: "udp: rehash on disconnect",
		Doc:     "A socket whose address goes back to the wildcard goes back to the wildcard's slot.",
		udp:     func(r *UDPRules) { r.stuckSlot = false },
	},
	{
		Name: "udp-grow-has-conns", Commit: "f2b2c55e5128", Since: "5.8", Stable: "5.4, 5.7 (July 2020)", Rows: "36",
		Subject: "udp: Copy has_conns in reuseport_grow().",
		Doc:     "A group of 128 members that grows remembers that one connected.",
		udp:     func(r *UDPRules) { r.growForgets = false },
	},
	{
		Name: "udp-group-choice", Commit: "efc6b6f6c311", Since: "5.8", Stable: "5.4, 5.7 (July 2020)", Rows: "37",
		Subject: "udp: Improve load balancing for SO_REUSEPORT.",
		Doc:     "In a group that has had a connected member the hash chooses among the others, as in any.",
		udp:     func(r *UDPRules) { r.firstAnswers = false },
	},
	{
		Name: "udp-device-points", Commit: "8d6c414cd2fb", Since: "5.15", Stable: "5.4, 5.10 (October 2021)",
		Subject: "net: prefer socket bound to interface when not in VRF",
		Doc:     "A socket that is bound to the device beats one that is bound to none (seen on 6.1, 6.12, 6.18).",
		udp:     func(r *UDPRules) { r.deviceAny = false },
	},
	{
		Name: "udp-group-incoming-cpu", Commit: "b261eda84ec1", Since: "6.2", Stable: "6.1 (seen on 6.1.192), 6.0", Rows: "27",
		Subject: "soreuseport: Fix socket selection for SO_INCOMING_CPU.",
		Doc:     "Within a reuseport group the members that asked for the datagram's processor are preferred.",
		udp:     func(r *UDPRules) { r.groupByCPU = true },
	},
	{
		Name: "udp-rescore-choice", Commit: "f0ea27e7bfe1", Since: "6.5", Stable: "6.1, 6.4 (August 2023)",
		Subject: "udp: re-score reuseport groups when connected sockets are present",
		Doc:     "The search goes on with the score of the member that the group chose, not of the one that was met.",
		udp:     func(r *UDPRules) { r.rescoreChoice = true },
	},
	{
		Name: "udp-tuple-table", Commit: "78c91ae2c6de, 1b29a730ef8b", Since: "6.13", Rows: "32, 33, 34, E4, E5",
		Subject: "udp: Add 4-tuple hash for connected sockets (series)",
		Doc: "Connected sockets stand in a table by their 4-tuple, which is asked before any score is taken: the last to connect wins. " +
			"A socket leaves its reuseport group to enter it, and stays in it under the old 4-tuple when it connects again or disconnects with a named address.",
		udp: func(r *UDPRules) { r.table, r.beforePeer, r.onlyMoved, r.movesEntry = true, true, true, true },
	},
	{
		Name: "udp-peer-before-hash", Commit: "51a00be6a099", Since: "6.13", Rows: "32",
		Subject: "udp: fix l4 hash after reconnect",
		Doc:     "The peer is set before the 4-tuple is hashed.",
		udp:     func(r *UDPRules) { r.beforePeer = false },
	},
	{
		Name: "udp-rehash-tuple", Commit: "644f9108f3a5", Since: "6.13", Rows: "33",
		Subject: "udp: Make rehash4 independent in udp_lib_rehash()",
		Doc:     "An entry is rehashed whenever its socket is, also within one address slot.",
		udp:     func(r *UDPRules) { r.onlyMoved = false },
	},
	{
		Name: "udp-score-primary", Commit: "a502ea6fa94b", Since: "6.14", Stable: "6.13 and later backports", Rows: "31",
		Subject: "udp: Deal with race between UDP socket address change and rehash",
		Doc:     "What no address slot has is looked for among all sockets of the port, to bridge the moment between address change and rehash.",
		udp:     func(r *UDPRules) { r.scorePrimary = true },
	},
	{
		Name: "udp-unhash-tuple", Commit: "6996a2d2d0a6", Since: "7.0", Stable: "6.18 (February 2026)", Rows: "34",
		Subject: "udp: Unhash auto-bound connected sk from 4-tuple hash table when disconnected.",
		Doc:     "A disconnect that gives the wildcard back takes the entry out of the table (seen on 6.18.44).",
		udp:     func(r *UDPRules) { r.movesEntry = false },
	},
	{
		Name: "udp-wildcard-bind", Commit: "e537dd15d0d4", Since: "7.0", Stable: "6.1.168, 6.12, 6.18 (March 2026)", Rows: "29",
		Subject: "udp: Fix wildcard bind conflict check when using hash2",
		Doc:     "A wildcard binder looks at all owners of the port, however many they are (seen on 6.1.192, 6.12.117, 6.18.44).",
		udp:     func(r *UDPRules) { r.wildcardBySlot = false },
	},

	// Candidates: in no released kernel.
	{
		Name: "udp-forget-peer6", Commit: "", Since: "candidate", Rows: "E6",
		Subject: "a disconnect forgets the IPv6 address of the peer",
		Doc:     "As it is, an IPv6 socket that was connected goes on hearing its old peer's address only (seen on 6.1.192, 6.12.117, 6.18.44).",
		udp:     func(r *UDPRules) { r.keepsPeer6 = false },
	},
	{
		Name: "udp-follow-tuple", Commit: "", Since: "candidate", Rows: "E5, E7",
		Subject: "an entry of the 4-tuple table follows its socket",
		Doc:     "connect to another peer rehashes the entry, every disconnect drops it. As it is, a socket that connected again is scored for, and a group made later can take its datagrams (seen on 6.18.44).",
		udp:     func(r *UDPRules) { r.followsPeer = true },
	},
	{
		Name: "udp-every-owner", Commit: "", Since: "candidate", Rows: "E3",
		Subject: "a bind is refused if any owner refuses, not the first that stands in the way",
		Doc:     "A candidate that shares does not end the look.",
		udp:     func(r *UDPRules) { r.everyOwner = true },
	},
	{
		Name: "udp-best-member", Commit: "", Since: "candidate", Rows: "E8",
		Subject: "the look-up goes on behind a reuseport group, to the best score",
		Doc:     "As it is, it ends at the first group whose member is better than what came before, so a device-bound member of another group is not seen (seen on 6.1.192, 6.12.117, 6.18.44).",
		udp:     func(r *UDPRules) { r.pastGroup = true },
	},
	{
		Name: "udp-fitting-choice", Commit: "", Since: "candidate", Rows: "E9",
		Subject: "a reuseport group chooses among the members that fit the datagram",
		Doc:     "As it is, a member whose group was joined on a device can be chosen for another device's datagram, once another member has lost the device by a disconnect.",
		udp:     func(r *UDPRules) { r.fittingChoice = true },
	},
	{
		Name: "udp-no-stand-in", Commit: "", Since: "candidate", Rows: "E10",
		Subject: "a connected IPv6 socket is not in the way of an IPv4 bind",
		Doc:     "As it is, it stands for 127.0.0.6 there, so that 0.0.0.0 is refused (seen on 6.1.192, 6.12.117, 6.18.44).",
		udp:     func(r *UDPRules) { r.noStandIn = true },
	},
	{
		Name: "udp-kept-processor", Commit: "", Since: "candidate", Rows: "E13",
		Subject: "a datagram does not overwrite the processor that its receiver asked for",
		Doc: "As it is, a member that was connected leaves its group as one that had asked, though none counted it: the count is wrong from then on, " +
			"and members are preferred that never asked, or passed by that did (seen on 6.1.192, 6.12.117).",
		udp: func(r *UDPRules) { r.keepsAsked = true },
	},
	{
		Name: "udp-weights6", Commit: "", Since: "candidate", Rows: "E14",
		Subject: "over IPv6 peer and device weigh four times the processor, as over IPv4",
		Doc:     "As it is, all four weigh the same, so that a socket of the device and the processor beats the one that is connected to the sender (seen on 6.1.192, 6.12.117).",
		udp:     func(r *UDPRules) { r.weights6 = true },
	},
	{
		Name: "udp-connect-halfway", Commit: "", Since: "an interleaving", Rows: "31",
		Subject: "connect is caught between the new address and the rehash",
		Doc: "No kernel, but a moment of one, so that a trace can say what another processor sees: a connect that gives the socket its address " +
			"stops before the rehash, and goes on at that socket's next step.",
		udp: func(r *UDPRules) { r.halfway = true },
	},
}
