package model

// udpHistory are the known bugs of UDP look-ups and binds.
var udpHistory = []Row{
	{"27", "6.1-udp-group-incoming-cpu", "6.1", "the choice within a reuseport group ignores SO_INCOMING_CPU"},
	{"29", "6.18-udp-wildcard-bind", "6.18", "with more than ten sockets on the port a wildcard binder misses specific owners"},
	{"30", "5.4-udp-rehash-on-disconnect", "5.4", "after a disconnect a wildcard socket is not found"},
	{"31", "6.12-udp-score-primary+udp-connect-halfway", "6.12+udp-connect-halfway", "a datagram that arrives while its receiver connects finds nobody"},
	{"32", "6.18-udp-peer-before-hash-udp-unhash-tuple", "6.18-udp-unhash-tuple", "the 4-tuple is hashed before the new peer is set"},
	{"33", "6.18-udp-rehash-tuple", "6.18", "an entry of the 4-tuple table is not rehashed within one address slot"},
	{"34", "6.18-udp-unhash-tuple", "6.18", "a disconnect leaves an entry without a peer in the 4-tuple table"},
	{"35", "5.4-udp-connected-members", "5.4", "an unconnected member of a group gets a connected one's datagrams"},
	{"36", "5.4-udp-grow-has-conns", "5.4", "a group that grows forgets that a member connected"},
	{"37", "5.4-udp-group-choice", "5.4", "in a group with a connected member the first of the others gets everything"},
	{"38", "", "", "the same is forgotten when both happen at once: the trace language has no such moment"},
	{"E3", "6.18", "6.18+udp-every-owner", "the first owner in the way decides about a bind (open)"},
	{"E4", "6.18", "6.18-udp-tuple-table", "the 4-tuple table has no scores: the last to connect beats the device-bound (open)"},
	{"E5", "6.18", "6.18-udp-tuple-table", "a group's member that connected and disconnected shares no more (open)"},
	{"E6", "6.18", "6.18+udp-forget-peer6", "a disconnected IPv6 socket goes on hearing its old peer's address only (open)"},
	{"E7", "6.18", "6.18+udp-follow-tuple", "a newcomer of the group gets the datagrams of a socket that connected again (open)"},
	{"E8", "6.18", "6.18+udp-best-member", "the look-up ends at the first reuseport group that it meets (open)"},
	{"E9", "6.18", "6.18+udp-fitting-choice", "a group chooses a member that is bound to another device (open)"},
	{"E12", "6.18", "6.18-udp-early-demux", "what arrives from outside goes to the last to bind of those that are connected to the sender (open)"},
	{"E13", "6.12", "6.12+udp-kept-processor", "a datagram that no group counted makes it prefer one who never asked (open)"},
	{"E14", "6.12", "6.12+udp-weights6", "over IPv6 device and processor outweigh the peer (open)"},
	{"E10", "6.18", "6.18+udp-no-stand-in", "a connected IPv6 socket refuses the IPv4 wildcard to others (open)"},
}
