package model

// oldestTimeWait are the rules before any change of the list.
func oldestTimeWait() TimeWaitRules { return TimeWaitRules{} }

// timeWaitChanges are the changes of the teardown of namespaces, in the order of
// mainline; candidates, which no kernel has, at the end.
var timeWaitChanges = []Change{
	{
		Name: "tw-timers-only", Commit: "0dad4087a86a, d507204d3c5c", Since: "5.18-rc1 (unverified), reverted by 04c494e68a13", Rows: "39, 40",
		Subject: "tcp/dccp: get rid of inet_twsk_purge()",
		Doc: "No table is walked: TIME_WAIT sockets outlive their namespace until their timers fire. One that is made in the same memory " +
			"has them for its own. Without a death row of its own (tw-row-block) the timer touches freed memory.",
		timewait: func(r *TimeWaitRules) { r.noPurge = true },
	},
	{
		Name: "tw-row-block", Commit: "fbb8295248e1", Since: "5.18 (unverified)", Rows: "40",
		Subject: "tcp: allocate tcp_death_row outside of struct netns_ipv4",
		Doc: "What counts the TIME_WAIT sockets is a block of its own that outlives the namespace: a reference count with 1 for the namespace, " +
			"given back in the IPv4 exit; whoever brings it to 0 frees it.",
		timewait: func(r *TimeWaitRules) { r.row = rowBlock },
	},
	{
		Name: "tw-skip-proposed", Commit: "", Since: "proposed September 2022 (v3), merged as tw-skip",
		Subject: "tcp: Save unnecessary inet_twsk_purge() calls.",
		Doc: "A pass walks the table only if a namespace of the batch asks for it: in the IPv6 pass one whose count is more than its own 1, " +
			"in the IPv4 pass, after the own 1 is given back, one whose death row is still there. The exit that frees the row clears the namespace's pointer.",
		timewait: func(r *TimeWaitRules) { r.skip = skipProposed },
	},
	{
		Name: "tw-row-inside", Commit: "e9bd0cca09d1", Since: "6.1", Rows: "41, 45",
		Subject: "tcp: Don't allocate tcp_death_row outside of struct netns_ipv4.",
		Doc:     "The death row is a part of the namespace again. Its own 1 is given back in the IPv4 batch exit, which warns if that is not the last.",
		timewait: func(r *TimeWaitRules) {
			r.row = rowInside
		},
	},
	{
		Name: "tw-skip", Commit: "edc12f032a5a", Since: "6.1",
		Subject:  "tcp: Save unnecessary inet_twsk_purge() calls.",
		Doc:      "Both passes ask the same: does a namespace of the batch count more than its own 1? Both families are counted together, so that one with IPv4 sockets only makes the IPv6 pass walk in vain.",
		timewait: func(r *TimeWaitRules) { r.skip = skipMerged },
	},
	{
		Name: "tw-own-tables", Commit: "d1e5e6408b30", Since: "6.1",
		Subject:  "tcp: Introduce optional per-netns ehash.",
		Doc:      "With the setting tcp_child_ehash_entries of its parent a namespace gets a table of its own. A pass walks it if that namespace asks for it.",
		timewait: func(r *TimeWaitRules) { r.ownTables = true },
	},
	{
		Name: "tw-own-always", Commit: "740ea3c4a0b2", Since: "6.1", Rows: "42",
		Subject:  "tcp: Clean up kernel listener's reqsk in inet_twsk_purge()",
		Doc:      "A table of the namespace's own is always walked: requests of kernel listeners stand in it, and no count has them.",
		timewait: func(r *TimeWaitRules) { r.ownAlways = true },
	},
	{
		Name: "tw-always", Commit: "2a750d6a5b36", Since: "6.9", Stable: "6.1, 6.6, 6.7, 6.8 (March 2024)", Rows: "43",
		Subject:  "rds: tcp: Fix use-after-free of net in reqsk_timer_handler().",
		Doc:      "The same for the shared table, so that no walk is ever left out: what the skip had gained is given up (seen on 6.1.192, 6.12.117).",
		timewait: func(r *TimeWaitRules) { r.skip = skipNever },
	},
	{
		Name: "tw-one-pass", Commit: "1eeb50435739", Since: "6.10", Stable: "August 2024", Rows: "44",
		Subject:  "tcp/dccp: do not care about families in inet_twsk_purge()",
		Doc:      "The IPv6 pass is gone, the IPv4 pass takes sockets of both families: one walk where there were two (seen on 6.1.192, 6.12.117).",
		timewait: func(r *TimeWaitRules) { r.onePass = true },
	},
	{
		Name: "tw-exclusive", Commit: "565d121b6998", Since: "6.11 (unverified)", Stable: "August 2024", Rows: "45",
		Subject:  "tcp: prevent concurrent execution of tcp_sk_exit_batch",
		Doc:      "Batch exits exclude one another. In a trace, where one exit ends before the next begins, nothing changes.",
		timewait: func(r *TimeWaitRules) { r.exclusive = true },
	},

	// Candidates: in no released kernel.
	{
		Name: "tw-one-family", Commit: "", Since: "candidate", Rows: "44",
		Subject:  "the IPv6 pass is gone and the IPv4 pass takes IPv4 sockets",
		Doc:      "No kernel, but what tw-one-pass would be if one half of it were forgotten: TIME_WAIT sockets of IPv6 outlive their namespace.",
		timewait: func(r *TimeWaitRules) { r.oneFamily = true },
	},
	{
		Name: "tw-ipv4-first", Commit: "", Since: "candidate",
		Subject:  "the IPv4 exits of a namespace run before the IPv6 pass",
		Doc:      "No kernel, but the order that the proposed skip relies on not to be: the own 1 is gone when the IPv6 pass looks for it.",
		timewait: func(r *TimeWaitRules) { r.ipv4First = true },
	},
}
