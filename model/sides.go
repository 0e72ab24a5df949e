package model

import (
	"fmt"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// side is what is modelled of one system: its kernel lines, changes and bugs. A
// profile's name stands for all of its sides.
type side struct {
	system      rc.System
	generations []Generation
	changes     []Change
	history     []Row
	stack       func(*Profile) rc.Stack
}

var sides = []*side{
	{rc.TCP, generations, changes, history, func(p *Profile) rc.Stack { return p.New() }},
	{rc.UDP, udpGenerations, udpChanges, udpHistory, func(p *Profile) rc.Stack { return p.NewUDP() }},
	{rc.TimeWaitExit, timeWaitGenerations, timeWaitChanges, timeWaitHistory, func(p *Profile) rc.Stack { return p.NewTimeWait() }},
}

// sideOf is a system's side, an empty one for a system that is not modelled.
func sideOf(system rc.System) *side {
	if system == "" {
		system = rc.TCP
	}
	for _, s := range sides {
		if s.system == system {
			return s
		}
	}
	return &side{system: system}
}

func (s *side) generation(name string) (Generation, bool) {
	for _, g := range s.generations {
		if g.Name == name {
			return g, true
		}
	}
	return Generation{}, false
}

func changeNames() []string {
	var names []string
	for _, s := range sides {
		for i := range s.changes {
			names = append(names, s.changes[i].Name)
		}
	}
	return names
}

// GenerationsOf lists the kernel lines that are modelled of a system, oldest first.
func GenerationsOf(system rc.System) []Generation { return slices.Clone(sideOf(system).generations) }

// GenerationNames are the names of the kernel lines that are modelled of any
// system, oldest first.
func GenerationNames() []string {
	var names []string
	for _, s := range sides {
		for _, g := range s.generations {
			names = append(names, g.Name)
		}
	}
	slices.SortFunc(names, rc.CompareVersions)
	return slices.Compact(names)
}

// ChangesOf lists every change of a system, in the order of mainline.
func ChangesOf(system rc.System) []Change { return slices.Clone(sideOf(system).changes) }

// Stack makes a stack that behaves as the profile's kernel, freshly reset. The
// error is an [*rc.Unsupported] for a system of which this line is not modelled.
func (p *Profile) Stack(system rc.System) (rc.Stack, error) {
	s := sideOf(system)
	if _, ok := s.generation(p.Generation.Name); !ok {
		var lines []string
		for _, g := range s.generations {
			lines = append(lines, g.Name)
		}
		why := "nothing is modelled of it"
		if len(lines) > 0 {
			why = "the modelled kernels are " + strings.Join(lines, ", ")
		}
		return nil, &rc.Unsupported{What: fmt.Sprintf("system %s of %s", s.system, p.Generation.Name), Why: why}
	}
	return s.stack(p), nil
}

// ParseOf is Parse for a kernel of which a system is modelled. The error is an
// [*rc.Unsupported] for one that is modelled of another system only.
func ParseOf(system rc.System, name string) (*Profile, error) {
	p, err := Parse(name)
	if err == nil {
		_, err = p.Stack(system)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// NewUDP makes a UDP stack that behaves as the profile's kernel, freshly reset.
func (p *Profile) NewUDP() *UDP {
	u := &UDP{rules: p.udp, profile: p}
	if err := u.Reset(rc.Config{}); err != nil {
		panic(err) // the zero configuration always resets
	}
	return u
}

// NewTimeWait makes a stack of network namespaces that come and go, freshly reset.
func (p *Profile) NewTimeWait() *TimeWait {
	w := &TimeWait{rules: p.timewait, tcp: p.rules, profile: p}
	if err := w.Reset(rc.Config{}); err != nil {
		panic(err) // the zero configuration always resets
	}
	return w
}
