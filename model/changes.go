package model

// Change is one change to the kernel, as far as socket reuse is concerned: the
// only place where a rule is set. To add one, append it to changes in the order
// of mainline and name it in the generations that have it; a candidate that no
// kernel has yet stands at the end and in no generation.
type Change struct {
	Name    string
	Commit  string // mainline; "?" behind an id says that it is unverified
	Subject string
	Since   string // the mainline release that has it first
	Stable  string // what is known of stable trees
	Rows    string // the known bugs that it brings or mends
	Doc     string // what rule it sets, and where that was seen
	set     func(*Rules)
	udp     func(*UDPRules) // for a change of UDP
	// timewait is set for a change of the teardown of namespaces.
	timewait func(*TimeWaitRules)
}

// oldest are the rules before any change of the list.
func oldest() Rules {
	return Rules{
		lastResort: true, autoSharesReuse: true, autoSharesPort: true,
		timeWaitForgets: true, keepsAddress: true, childUID0: true, groupByCPU: true,
	}
}

var changes = []Change{
	{
		Name: "autobind-stronger", Commit: "aacd9289af8b", Since: "3.5", Rows: "1",
		Subject: "tcp: bind() use stronger condition for bind_conflict",
		Doc:     "An automatic port is not one that another reuseaddr socket holds while others are free: two clients with it could collide on one destination.",
		set:     func(r *Rules) { r.autoSharesReuse = false },
	},
	{
		Name: "reuseport-groups", Commit: "c125e80b8868", Since: "4.6", Rows: "26, 27, 28",
		Subject: "soreuseport: fast reuseport TCP socket selection",
		Doc: "The listener look-up ends at the first reuseport group that it meets with a better score, so a better listener behind it is not seen. " +
			"Within the group a hash decides, and the processor that a member asked for does not count.",
		set: func(r *Rules) { r.firstReuseport, r.frontIPv6, r.groupByCPU = true, true, false },
	},
	{
		Name: "reuseport-order", Commit: "d894ba18d4e4 ?", Since: "4.6", Rows: "28",
		Subject: "soreuseport: fix ordering for mixed v4/v6 sockets",
		Doc:     "IPv6 reuseport listeners stand behind all others, so that IPv4 traffic meets IPv4 listeners first.",
		set:     func(r *Rules) { r.frontIPv6 = false },
	},
	{
		Name: "strict-cache", Commit: "637bc8bbe6c0", Since: "4.11", Rows: "5, 6, 4",
		Subject: "inet: reset tb->fastreuseport when adding a reuseport sk",
		Doc: "fastreuseport gets the value STRICT with a key: a reuseport socket that passed a scan re-keys the cache instead of closing it, " +
			"and a fast hit updates the cache too. The match lets either side's wildcard count, and the key's family is not stored.",
		set: func(r *Rules) { r.strict, r.updateOnHit, r.symmetricStrict, r.strictAsIPv4 = true, true, true, true },
	},
	{
		Name: "no-last-resort", Commit: "b9470c27607b", Since: "4.11", Rows: "7, 2",
		Subject: "inet: kill smallest_size and smallest_port",
		Doc: "An automatic port is never shared, not even as a last resort. The clean-up turned the test for the first owner round: " +
			"every later owner resets the cache to its own options.",
		set: func(r *Rules) { r.lastResort, r.autoSharesPort, r.first = false, false, firstInverted },
	},
	{
		Name: "first-owner-test", Commit: "fbed24bcc685 ?", Since: "4.14", Rows: "7",
		Subject: "inet: fix improper empty comparison",
		Doc:     "The cache is initialised by the first owner again.",
		set:     func(r *Rules) { r.first = firstReal },
	},
	{
		Name: "strict-key-family", Commit: "cbb2fb5c72f4 ?, 7a56673b58f2 ?", Since: "4.14", Rows: "4",
		Subject: "net: set tb->fast_sk_family; net: use inet6_rcv_saddr to compare sockets",
		Doc:     "The key of a STRICT cache has its family and its IPv6 address, so that two different IPv6 addresses do not match.",
		set:     func(r *Rules) { r.strictAsIPv4 = false },
	},
	{
		Name: "timewait-reuseport", Commit: "3099a5291893 ?", Since: "4.17", Rows: "25",
		Subject: "soreuseport: initialise timewait reuseport field",
		Doc:     "A TIME_WAIT socket keeps reuseport. Before, the field was whatever the memory held; the model takes it as off.",
		set:     func(r *Rules) { r.timeWaitForgets = false },
	},
	{
		Name: "autobind-reuse", Commit: "4b01a9674231 ?", Since: "5.7", Rows: "2",
		Subject: "tcp: bind(0) remove the SO_REUSEADDR restriction when ephemeral ports are exhausted",
		Doc:     "With the setting ip_autobind_reuse an automatic port is shared between reuseaddr sockets that do not listen, when no port is free.",
		set:     func(r *Rules) { r.autoReuse = true },
	},
	{
		Name: "autobind-reuse-twins", Commit: "335759211a32 ?", Since: "5.7", Rows: "3",
		Subject: "tcp: Forbid to bind more than one sockets haveing SO_REUSEADDR and SO_REUSEPORT per EUID",
		Doc:     "That sharing leaves out sockets of one user that have reuseport too: they could both listen.",
		set:     func(r *Rules) { r.autoReuseNoTwin = true },
	},
	{
		Name: "strict-binder-wildcard", Commit: "88d7fcfa3b1f", Since: "5.8", Stable: "5.7, 5.4, 4.19 (June 2020)", Rows: "6",
		Subject: "net: inet_csk: Fix so_reuseport bind-address cache in tb->fast*",
		Doc:     "A STRICT cache matches where the cached address covers the binder's; the binder's wildcard no longer counts.",
		set:     func(r *Rules) { r.symmetricStrict = false },
	},
	{
		Name: "address-buckets-first", Commit: "d5a42de8bdbe", Since: "5.19-rc1", Rows: "9, 10",
		Subject: "net: Add a second bind table hashed by port and address",
		Doc:     "The first form of the address buckets, reverted before 5.19: a socket whose address changes stays in the bucket of the old one.",
		set:     func(r *Rules) { r.addrBuckets, r.stuckBucket = true, true },
	},
	{
		Name: "address-buckets", Commit: "28044fc1d495", Since: "6.1", Rows: "13, 14, 16, 17, 18",
		Subject: "net: Add a bhash2 table hashed by port and address",
		Doc: "A binder to one address looks at the owners of that address and of the wildcards. As released it missed TIME_WAIT sockets, " +
			"v4-mapped twins, the bucket of ::ffff:0.0.0.0 and all wildcard buckets but one, and a failed connect left its bucket behind.",
		set: func(r *Rules) {
			r.addrBuckets, r.stuckBucket = true, false
			r.noTimeWait2, r.lostReset, r.noAnyMForIPv4, r.noMappedTwin, r.firstWildcard = true, true, true, true, true
		},
	},
	{
		Name: "failed-connect-address", Commit: "77934dc6db0d", Since: "6.1", Stable: "older trees (unverified)", Rows: "11",
		Subject: "dccp/tcp: Reset saddr on failure after inet6?_hash_connect()",
		Doc:     "A connect that fails gives a dynamic local address back.",
		set:     func(r *Rules) { r.keepsAddress = false },
	},
	{
		Name: "failed-connect-bucket", Commit: "e0833d1fedb0", Since: "6.1", Rows: "13",
		Subject: "dccp/tcp: Fixup bhash2 bucket when connect() fails",
		Doc:     "... and the socket goes back to the bucket of its wildcard.",
		set:     func(r *Rules) { r.lostReset = false },
	},
	{
		Name: "timewait-address-buckets", Commit: "936a192f9740", Since: "6.2", Stable: "6.1.5", Rows: "14",
		Subject: "tcp: Add TIME_WAIT sockets in bhash2",
		Doc:     "Address buckets hold TIME_WAIT sockets.",
		set:     func(r *Rules) { r.noTimeWait2 = false },
	},
	{
		Name: "group-incoming-cpu", Commit: "b261eda84ec1", Since: "6.2", Stable: "6.1 (seen on 6.1.192), 6.0", Rows: "27",
		Subject: "soreuseport: Fix socket selection for SO_INCOMING_CPU.",
		Doc: "Within a reuseport group the member takes a connection that asked for the processor which it arrives on; " +
			"the hash picks among the members only where none did (checked on 6.1, 6.12 and 6.18).",
		set: func(r *Rules) { r.groupByCPU = true },
	},
	{
		Name: "bucket-family-test", Commit: "5456262d2baa", Since: "6.2", Stable: "6.1, distributions' 6.0.16", Rows: "15",
		Subject: "net: Fix incorrect address comparison when searching for a bind2 bucket",
		Doc:     "An added test of families loses the dual-stack case: an IPv4 binder does not look at the bucket of ::.",
		set:     func(r *Rules) { r.noAny6ForIPv4 = true },
	},
	{
		Name: "bucket-dual-stack", Commit: "d9ba99342855", Since: "6.3", Stable: "March 2023", Rows: "15",
		Subject: "tcp: Fix bind() conflict check for dual-stack wildcard address.",
		Doc:     "... and looks at it again.",
		set:     func(r *Rules) { r.noAny6ForIPv4 = false },
	},
	{
		Name: "mapped-wildcard", Commit: "aa99e5f87bd5", Since: "6.6", Stable: "6.5, 6.1 (September 2023)", Rows: "16",
		Subject: "tcp: Fix bind() regression for v4-mapped-v6 wildcard address.",
		Doc:     "An IPv4 binder looks at the bucket of ::ffff:0.0.0.0.",
		set:     func(r *Rules) { r.noAnyMForIPv4 = false },
	},
	{
		Name: "mapped-twin", Commit: "c48ef9c4aed3", Since: "6.6", Stable: "6.5, 6.1 (September 2023)", Rows: "17",
		Subject: "tcp: Fix bind() regression for v4-mapped-v6 non-wildcard address.",
		Doc:     "An IPv4 address and its v4-mapped twin share a bucket.",
		set:     func(r *Rules) { r.noMappedTwin = false },
	},
	{
		Name: "every-wildcard", Commit: "d91ef1e1b55f", Since: "6.9", Stable: "6.8, 6.6, 6.1 (April 2024)", Rows: "18",
		Subject: "tcp: Fix bind() regression for v6-only wildcard and v4(-mapped-v6) non-wildcard addresses.",
		Doc:     "The look at wildcard buckets goes on behind the first one.",
		set:     func(r *Rules) { r.firstWildcard = false },
	},
	{
		Name: "mapped-by-bucket", Commit: "5e07e672412b", Since: "6.8", Stable: "6.1.168", Rows: "19, E1",
		Subject: "tcp: Use bhash2 for v4-mapped-v6 non-wildcard address.",
		Doc: "A v4-mapped binder looks at address buckets like any other. It forgot that v6only owners of :: do not matter to it. " +
			"Backported without address-only-buckets it misses a bucket of ::ffff:0.0.0.0 (seen on Debian 6.1.192).",
		set: func(r *Rules) { r.mappedByBucket, r.mappedSeesV6Only = true, true },
	},
	{
		Name: "mapped-past-v6only", Commit: "ea111449501e ?", Since: "6.9", Stable: "6.8, 6.1", Rows: "19",
		Subject: "tcp: Fix bind() regression for v6-only wildcard and v4-mapped-v6 non-wildcard addresses.",
		Doc:     "A v4-mapped binder passes over v6only owners.",
		set:     func(r *Rules) { r.mappedSeesV6Only = false },
	},
	{
		Name: "address-only-buckets", Commit: "", Since: "6.8", Rows: "E1",
		Subject: "address buckets compare addresses in IPv6 form (part of a series)",
		Doc:     "An address bucket has an address in IPv6 form and no family: 0.0.0.0 and ::ffff:0.0.0.0 are one bucket (checked on 6.12 and 6.18).",
		set:     func(r *Rules) { r.linkedByIPv6 = true },
	},
	{
		Name: "owners-by-address", Commit: "822fb91fc724", Since: "6.8", Rows: "24",
		Subject: "owners hang on address buckets only (part of a series)",
		Doc:     "The port's own list of owners is gone; its owners are those of its address buckets, TIME_WAIT sockets among them.",
		set:     func(r *Rules) { r.addrOwnersOnly = true },
	},
	{
		Name: "empty-bucket-test", Commit: "8002d44fe84d", Since: "6.8", Rows: "24",
		Subject: "tcp: Check hlist_empty(&tb->bhash2) instead of hlist_empty(&tb->owners).",
		Doc: "The first owner is told by the list of address buckets, asked when the newcomer's is on it: nobody is ever the first, " +
			"fastreuse is never 1 and fastreuseport never ANY (seen on 6.12 and 6.18).",
		set: func(r *Rules) { r.first = firstNever },
	},
	{
		Name: "range-one-pass", Commit: "207184853dbd", Since: "6.8",
		Subject: "tcp/dccp: change source port selection at connect() time",
		Doc:     "connect takes the ports of an IP_LOCAL_PORT_RANGE in one pass, without a preference for one parity.",
		set:     func(r *Rules) { r.onePass = true },
	},
	{
		Name: "unaccepted-child-user", Commit: "", Since: "6.17 (unverified)", Rows: "E2",
		Subject: "a child that nobody accepted yet counts as the listener's user",
		Doc:     "Seen: user 0 on 6.1 and 6.12, the listener's on 6.18. Before, the owner scan refused a listener's own user while a connection waited, and a child on a port other than its listener's keyed the cache to user 0.",
		set:     func(r *Rules) { r.childUID0 = false },
	},
	{
		Name: "port-release-update", Commit: "d57f4b874946", Since: "6.18", Rows: "22",
		Subject: "tcp: Update bind bucket state on port release",
		Doc: "When an owner leaves and all that remain came by connect, the bucket is open to connect again. " +
			"Address buckets keep a pair of cache fields for it.",
		set: func(r *Rules) { r.releaseUpdate = true },
	},
	{
		Name: "listen-or-connect", Commit: "", Since: "6.18 (seen on 6.18.44, origin unknown)",
		Subject: "a socket that sent a SYN cannot listen, one that listened cannot connect",
		Doc:     "listen fails with EINVAL after the port check has run and changed what it changes; connect after the address was set and reset.",
		set:     func(r *Rules) { r.onceOnly = true },
	},

	// Candidates: in no released kernel.
	{
		Name: "first-bind-fix", Commit: "", Since: "proposed October 2026", Rows: "24",
		Subject: "tcp: Fix fastreuse cache initialization on first bind",
		Doc:     "The first owner is the one whose address bucket is the port's only one and has no owners yet.",
		set:     func(r *Rules) { r.first = firstReal },
	},
	{
		Name: "exact-strict-match", Commit: "", Since: "candidate",
		Subject: "a STRICT cache matches an equal socket only",
		Doc:     "The match reads all that the conflict relation reads: address, family, v6only, uid, device, reuseaddr and reuseport.",
		set:     func(r *Rules) { r.exactStrict = true },
	},
	{
		Name: "fixed-reuse-options", Commit: "f396922d862a ?", Since: "4.20-rc, reverted (cdb8744d804f ?)", Rows: "8",
		Subject: "net: do not allow changing SO_REUSEADDR/SO_REUSEPORT on bound sockets",
		Doc:     "The two options cannot change once a port is held. It broke user space and was taken back.",
		set:     func(r *Rules) { r.optionsFixed = true },
	},
	{
		Name: "connect-other-addresses", Commit: "", Since: "proposed July 2025, withdrawn", Rows: "23",
		Subject: "tcp: Consider every port when connecting with IP_LOCAL_PORT_RANGE (series)",
		Doc:     "connect may share a port that others bound explicitly where their addresses do not overlap its own.",
		set:     func(r *Rules) { r.connectOverlap = true },
	},
	{
		Name: "best-listener", Commit: "", Since: "proposed August 2025", Rows: "26",
		Subject: "net: tcp: look up the best matched listen socket",
		Doc:     "The listener look-up goes on behind a reuseport group, to the best score.",
		set:     func(r *Rules) { r.firstReuseport = false },
	},
	{
		Name: "stand-in-strict-match", Commit: "", Since: "candidate",
		Subject: "a STRICT cache matches a socket that the cached one can stand in for",
		Doc: "The match asks that the cached socket reaches every address that the binder reaches, is on no device or on the binder's, " +
			"and has reuseaddr only if the binder has: then whoever conflicts with the binder has conflicted with the cached one, and the cache would not be. " +
			"It keeps every hit of exact-strict-match and more; the bucket needs two more fields, the device and reuseaddr.",
		set: func(r *Rules) { r.standInStrict = true },
	},
}

// Changes lists every change, in the order of mainline, candidates last.
func Changes() []Change { return append([]Change(nil), changes...) }
