package model

import rc "github.com/reusecheck/reusecheck"

// Generation is a kernel line as a list of changes.
type Generation struct {
	Name    string
	Release string // the release that it stands for
	Doc     string
	Changes []string
}

var generations = []Generation{
	{
		Name: "4.9", Release: "4.9.337",
		Doc:     "the last line before STRICT: one list of owners, automatic ports shared as a last resort",
		Changes: []string{"autobind-stronger", "reuseport-groups", "reuseport-order"},
	},
	{
		Name: "5.4", Release: "5.4.302",
		Doc: "the stable line, with the June 2020 repair of STRICT",
		Changes: []string{
			"autobind-stronger", "reuseport-groups", "reuseport-order",
			"strict-cache", "no-last-resort", "first-owner-test", "strict-key-family", "timewait-reuseport",
			"strict-binder-wildcard", "failed-connect-address",
		},
	},
	{
		Name: "5.15", Release: "5.15.196",
		Doc: "the stable line; ip_autobind_reuse",
		Changes: []string{
			"autobind-stronger", "reuseport-groups", "reuseport-order",
			"strict-cache", "no-last-resort", "first-owner-test", "strict-key-family", "timewait-reuseport",
			"autobind-reuse", "autobind-reuse-twins", "strict-binder-wildcard", "failed-connect-address",
		},
	},
	{
		Name: "6.1", Release: "6.1.192",
		Doc: "as Debian ships it: address buckets with their repairs, and one backport too early (E1)",
		Changes: []string{
			"autobind-stronger", "reuseport-groups", "reuseport-order",
			"strict-cache", "no-last-resort", "first-owner-test", "strict-key-family", "timewait-reuseport",
			"autobind-reuse", "autobind-reuse-twins", "strict-binder-wildcard",
			"address-buckets", "failed-connect-address", "failed-connect-bucket", "timewait-address-buckets",
			"group-incoming-cpu", "bucket-family-test", "bucket-dual-stack", "mapped-wildcard", "mapped-twin", "every-wildcard",
			"mapped-by-bucket", "mapped-past-v6only",
		},
	},
	{
		Name: "6.12", Release: "6.12.117",
		Doc: "as Debian ships it: owners in address buckets only, the cache never initialised",
		Changes: []string{
			"autobind-stronger", "reuseport-groups", "reuseport-order",
			"strict-cache", "no-last-resort", "first-owner-test", "strict-key-family", "timewait-reuseport",
			"autobind-reuse", "autobind-reuse-twins", "strict-binder-wildcard",
			"address-buckets", "failed-connect-address", "failed-connect-bucket", "timewait-address-buckets",
			"group-incoming-cpu", "bucket-family-test", "bucket-dual-stack", "mapped-wildcard", "mapped-twin", "every-wildcard",
			"mapped-by-bucket", "mapped-past-v6only", "address-only-buckets", "owners-by-address",
			"empty-bucket-test", "range-one-pass",
		},
	},
	{
		Name: "6.18", Release: "6.18.44",
		Doc: "buckets reopen to connect when explicit owners leave",
		Changes: []string{
			"autobind-stronger", "reuseport-groups", "reuseport-order",
			"strict-cache", "no-last-resort", "first-owner-test", "strict-key-family", "timewait-reuseport",
			"autobind-reuse", "autobind-reuse-twins", "strict-binder-wildcard",
			"address-buckets", "failed-connect-address", "failed-connect-bucket", "timewait-address-buckets",
			"group-incoming-cpu", "bucket-family-test", "bucket-dual-stack", "mapped-wildcard", "mapped-twin", "every-wildcard",
			"mapped-by-bucket", "mapped-past-v6only", "address-only-buckets", "owners-by-address",
			"empty-bucket-test", "range-one-pass",
			"unaccepted-child-user", "port-release-update", "listen-or-connect",
		},
	},
}

// Generations lists the modelled kernel lines, oldest first.
func Generations() []Generation { return GenerationsOf(rc.TCP) }
