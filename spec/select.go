package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// DefaultChecks is how many random histories a search tries that is given no
// other budget: a few seconds on two cores.
const DefaultChecks = 15_000

// Select gives the properties with these names, all of the system's for none.
func (s *System) Select(names ...string) ([]*Property, error) {
	if len(names) == 0 {
		return s.Properties, nil
	}
	var known []string
	for _, p := range s.Properties {
		known = append(known, p.Name)
	}
	var ps []*Property
	for _, n := range names {
		p := s.Property(n)
		if p == nil {
			return nil, fmt.Errorf("%s has no property %q%s; there are %s", s.Name, n,
				didYouMean(n, known), strings.Join(known, ", "))
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// SelectSystems gives the systems with these names, all of them for none.
func SelectSystems(names ...string) ([]*System, error) {
	if len(names) == 0 {
		return Systems, nil
	}
	var known []string
	for _, s := range Systems {
		known = append(known, string(s.Name))
	}
	var ss []*System
	for _, n := range names {
		i := slices.Index(known, n)
		if i < 0 {
			return nil, fmt.Errorf("there is no system %q%s; there are %s", n, didYouMean(n, known), strings.Join(known, ", "))
		}
		ss = append(ss, Systems[i])
	}
	return ss, nil
}

// SystemOf finds the system that a trace is for.
func SystemOf(t *reusecheck.Trace) (*System, error) {
	name := t.Config.System
	if name == "" {
		name = Default.Name
	}
	for _, s := range Systems {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, &reusecheck.Unsupported{What: "system " + string(name), Why: "no oracle is there for it yet"}
}

// OfFamily is the system whose sockets are of a family: the first one, for
// TIME_WAIT sockets are TCP's.
func OfFamily(f reusecheck.Family) *System {
	i := slices.IndexFunc(Systems, func(s *System) bool { return slices.Contains(s.World().Families, f) })
	return Systems[max(i, 0)]
}

func didYouMean(word string, known []string) string {
	if near := reusecheck.Nearest(word, known); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
