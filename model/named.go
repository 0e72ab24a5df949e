package model

import (
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// Named are the modelled kernels that a trace's kernels header names: the
// generations among its versions, oldest first, then profiles by name.
func Named(kernels rc.KernelSet) []*Profile { return NamedOf(rc.TCP, kernels) }

// NamedOf is Named for the kernels that are modelled of a system.
func NamedOf(system rc.System, kernels rc.KernelSet) []*Profile {
	var ps []*Profile
	for _, g := range sideOf(system).generations {
		if kernels.Includes(g.Name, g.Release) {
			ps = append(ps, MustParse(g.Name))
		}
	}
	for name := range strings.SplitSeq(kernels.String(), ",") {
		p, err := Parse(name)
		if err != nil || p.String() == p.Generation.Name {
			continue
		}
		if _, ok := sideOf(system).generation(p.Generation.Name); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

// CheckNames gives the error of the first profile that a trace's kernels header
// names and that is not modelled: with a misspelt change the trace never runs.
func CheckNames(kernels rc.KernelSet) error {
	for _, name := range kernels.Profiles() {
		if _, err := Parse(name); err != nil {
			return &rc.HeaderError{Header: "kernels", Part: name, Err: err}
		}
	}
	return nil
}

// ForRelease is the newest generation that is not newer than a running kernel's
// release ("6.18.44", "6.1.0-49-cloud-amd64"); the oldest for one older than all.
func ForRelease(release string) *Profile { return ForReleaseOf(rc.TCP, release) }

// ForReleaseOf is ForRelease for the kernels that are modelled of a system.
func ForReleaseOf(system rc.System, release string) *Profile {
	lines := sideOf(system).generations
	g := lines[0].Name
	for _, newer := range lines {
		k, err := rc.ParseKernels(newer.Name + "-")
		if err == nil && k.Includes("", release) {
			g = newer.Name
		}
	}
	return MustParse(g)
}
