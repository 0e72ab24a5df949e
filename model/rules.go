package model

// Rules are what the changes set. Each field is one rule, named for what holds
// when it is true; the change that sets it says where it comes from.
type Rules struct {
	// The cache.
	strict          bool // fastreuseport knows STRICT and its key
	updateOnHit     bool // a fast hit updates the cache too
	first           firstOwner
	symmetricStrict bool // the binder's wildcard counts in a STRICT match
	exactStrict     bool // STRICT matches an equal socket only
	standInStrict   bool // STRICT matches a socket that the cached one can stand in for
	strictAsIPv4    bool // the key's family is lost: IPv6 keys compare as IPv4
	releaseUpdate   bool // leaving owners may reopen a bucket to connect

	// The buckets.
	addrBuckets    bool // one bucket for each local address, beside the port's list
	addrOwnersOnly bool // the port's own list of owners is gone
	noTimeWait2    bool // address buckets do not hold TIME_WAIT sockets
	stuckBucket    bool // an address change leaves the socket in its old address bucket
	lostReset      bool // a failed connect leaves the address bucket of the tried address
	keepsAddress   bool // a failed connect leaves the address set
	linkedByIPv6   bool // a bucket has an address, and no family

	// Which owners are looked at.
	mappedByBucket   bool // v4-mapped binders look into address buckets
	noAny6ForIPv4    bool // an IPv4 binder does not look at the bucket of ::
	noAnyMForIPv4    bool // an IPv4 binder does not look at the bucket of ::ffff:0.0.0.0
	noMappedTwin     bool // an address and its v4-mapped twin have buckets apart
	firstWildcard    bool // the look at wildcards ends at the first bucket that fits
	mappedSeesV6Only bool // a v4-mapped binder meets v6only owners of ::

	// Automatic ports.
	lastResort      bool // a port is shared when a pass found none free
	autoReuse       bool // ip_autobind_reuse is known
	autoReuseNoTwin bool // ... and does not let one user's reuseport sockets share
	autoSharesReuse bool // a free port is one that reuseaddr sockets may share
	autoSharesPort  bool // a free port is one that reuseport sockets of one user may share
	onePass         bool // connect takes an IP_LOCAL_PORT_RANGE in one pass, without parity
	connectOverlap  bool // connect shares with explicit owners of other addresses

	// The rest.
	timeWaitForgets bool // TIME_WAIT sockets lose reuseport
	optionsFixed    bool // reuseaddr and reuseport cannot change on a bound socket
	onceOnly        bool // a socket that sent a SYN never listens, one that listened never connects
	firstReuseport  bool // the listener look-up ends at the first reuseport group
	groupByCPU      bool // a reuseport group prefers the member whose processor a connection arrives on
	frontIPv6       bool // IPv6 reuseport listeners do not stand behind IPv4 ones
	childUID0       bool // a child that nobody accepted yet counts as uid 0
}

// firstOwner is how the cache update tells the first owner of a bucket.
type firstOwner uint8

const (
	firstReal     firstOwner = iota // by the bucket's owners
	firstNever                      // by a list that the newcomer is already on
	firstInverted                   // the wrong way round
)
