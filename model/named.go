package model

import (
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// Named are the modelled kernels that a trace's kernels header names: the
// generations among its versions, oldest first, then profiles by name.
func Named(kernels rc.KernelSet) []*Profile {
	var ps []*Profile
	for _, g := range generations {
		if kernels.Includes(g.Name, g.Release) {
			ps = append(ps, MustParse(g.Name))
		}
	}
	for name := range strings.SplitSeq(kernels.String(), ",") {
		if p, err := Parse(name); err == nil && p.String() != p.Generation.Name {
			ps = append(ps, p)
		}
	}
	return ps
}

// ForRelease is the newest generation that is not newer than a running kernel's
// release ("6.18.44", "6.1.0-49-cloud-amd64"); the oldest for one older than all.
func ForRelease(release string) *Profile {
	g := generations[0].Name
	for _, newer := range generations {
		k, err := rc.ParseKernels(newer.Name + "-")
		if err == nil && k.Includes("", release) {
			g = newer.Name
		}
	}
	return MustParse(g)
}
