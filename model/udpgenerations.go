package model

// udpGenerations are the kernel lines as UDP has them.
var udpGenerations = []Generation{
	{
		Name: "4.19", Release: "4.19.0",
		Doc:     "as first released: the whole port is scored, or the address slots of one with more than ten sockets",
		Changes: []string{"udp-early-demux"},
	},
	{
		Name: "5.4", Release: "5.4.302",
		Doc: "the stable line: a specific address before the wildcard, and the group's repairs of 2020",
		Changes: []string{
			"udp-early-demux", "udp-specific-first", "udp-device-rehash", "udp-connected-members", "udp-rehash-on-disconnect",
			"udp-grow-has-conns", "udp-group-choice", "udp-device-points",
		},
	},
	{
		Name: "6.1", Release: "6.1.192",
		Doc: "as Debian ships it, with the repairs of later lines",
		Changes: []string{
			"udp-early-demux", "udp-specific-first", "udp-device-rehash", "udp-connected-members", "udp-rehash-on-disconnect",
			"udp-grow-has-conns", "udp-group-choice", "udp-device-points", "udp-group-incoming-cpu",
			"udp-rescore-choice", "udp-score-primary", "udp-wildcard-bind",
		},
	},
	{
		Name: "6.12", Release: "6.12.117",
		Doc: "as Debian ships it: the last line without the 4-tuple table",
		Changes: []string{
			"udp-early-demux", "udp-specific-first", "udp-device-rehash", "udp-connected-members", "udp-rehash-on-disconnect",
			"udp-grow-has-conns", "udp-group-choice", "udp-device-points", "udp-group-incoming-cpu",
			"udp-rescore-choice", "udp-score-primary", "udp-wildcard-bind",
		},
	},
	{
		Name: "6.18", Release: "6.18.44",
		Doc: "the 4-tuple table for connected sockets, with its repairs",
		Changes: []string{
			"udp-early-demux", "udp-specific-first", "udp-device-rehash", "udp-connected-members", "udp-rehash-on-disconnect",
			"udp-grow-has-conns", "udp-group-choice", "udp-device-points", "udp-group-incoming-cpu",
			"udp-rescore-choice", "udp-tuple-table", "udp-peer-before-hash", "udp-rehash-tuple", "udp-score-primary",
			"udp-unhash-tuple", "udp-wildcard-bind",
		},
	},
}
