package model

import (
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// Row is a known bug of socket reuse: where it lives and where it is mended, as
// modelled kernels.
type Row struct {
	ID     string // stable: docs and corpus refer to it
	Lives  string // a profile that has the bug, "" when no trace can say it
	Healed string // the same kernel without it
	Doc    string
}

var history = []Row{
	{"1", "4.9-autobind-stronger", "4.9", "an automatic port is one that another reuseaddr socket holds"},
	{"2", "5.4", "5.4+autobind-reuse", "reuseaddr sockets run out of automatic ports although ip_autobind_reuse allows sharing"},
	{"3", "5.15-autobind-reuse-twins", "5.15", "two sockets of one user with both options share an automatic port and can both listen"},
	{"4", "5.4-strict-key-family", "5.4", "a STRICT cache takes every specific IPv6 address for every other"},
	{"6", "5.4-strict-binder-wildcard", "5.4", "a wildcard binder matches a STRICT cache keyed to one address"},
	{"7", "5.4-first-owner-test", "5.4", "every later owner resets the cache to its own options"},
	{"8", "6.18", "6.18+fixed-reuse-options", "options change on bound sockets and the cache does not learn of it (open)"},
	{"9", "5.15+address-buckets-first", "5.15", "a socket whose address changes stays in the old address bucket"},
	{"11", "6.1-failed-connect-address", "6.1", "a connect that fails leaves the address set"},
	{"13", "6.1-failed-connect-bucket", "6.1", "a connect that fails leaves the socket in the address bucket that it tried"},
	{"14", "6.1-timewait-address-buckets", "6.1", "address buckets do not hold TIME_WAIT sockets"},
	{"15", "6.1-bucket-dual-stack", "6.1", "an IPv4 binder does not look at the bucket of ::"},
	{"16", "6.1-mapped-wildcard", "6.1", "an IPv4 binder does not look at the bucket of ::ffff:0.0.0.0"},
	{"17", "6.1-mapped-twin", "6.1", "an address and its v4-mapped twin do not meet"},
	{"18", "6.1-every-wildcard", "6.1", "the look at wildcards ends at the first bucket"},
	{"19", "6.12-mapped-past-v6only", "6.12", "a v4-mapped binder is refused because of a v6only wildcard"},
	{"22", "6.12", "6.12+port-release-update", "a port once bound explicitly stays closed to connect"},
	{"23", "6.18", "6.18+connect-other-addresses", "a port bound explicitly on one address is closed to connect from another (open)"},
	{"24", "6.18", "6.18+first-bind-fix", "the first owner is never recognised: every bind scans"},
	{"25", "5.4-timewait-reuseport", "5.4", "a TIME_WAIT socket forgets reuseport"},
	{"26", "6.18", "6.18+best-listener", "the listener look-up ends at the first reuseport group"},
	{"27", "6.1-group-incoming-cpu", "6.1", "the choice within a reuseport group ignores SO_INCOMING_CPU"},
	{"28", "4.9-reuseport-order", "4.9", "an IPv6 reuseport listener takes IPv4 connections from an IPv4 one"},
	{"E1", "6.1", "6.1+address-only-buckets", "a v4-mapped binder does not look at a bucket of ::ffff:0.0.0.0 that an IPv6 socket made"},
	{"E2", "6.12", "6.12+unaccepted-child-user", "a connection that nobody accepted yet counts as user 0, and refuses the listener's own user"},
}

// History lists the known sequential TCP bugs.
func History() []Row { return HistoryOf(rc.TCP) }

// HistoryOf lists the known bugs of one system: of TCP those that show in the
// binds of one namespace, of TIME_WAIT the others, at the exit of namespaces.
func HistoryOf(system rc.System) []Row { return slices.Clone(sideOf(system).history) }
