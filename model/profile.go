package model

import (
	"fmt"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// Profile is a modelled kernel: a generation with changes added or taken away.
type Profile struct {
	// Generation is the kernel line as TCP has it, or as the first system has
	// it that models the line.
	Generation Generation
	Added      []string
	Removed    []string
	rules      Rules
	udp        UDPRules
	timewait   TimeWaitRules
}

// Release is the kernel release that the profile's generation stands for.
func (p *Profile) Release() string { return p.Generation.Release }

// String is the profile's name: the generation, then +change and -change in the
// order of the list of changes.
func (p *Profile) String() string {
	s := p.Generation.Name
	for _, side := range sides {
		for i := range side.changes {
			n := side.changes[i].Name
			switch {
			case slices.Contains(p.Added, n):
				s += "+" + n
			case slices.Contains(p.Removed, n):
				s += "-" + n
			}
		}
	}
	return s
}

// Changes lists the changes of TCP that the profile has, in order.
func (p *Profile) Changes() []Change { return p.ChangesOf(rc.TCP) }

// ChangesOf lists the changes of one system that the profile has, in order.
func (p *Profile) ChangesOf(system rc.System) []Change {
	var cs []Change
	side := sideOf(system)
	line, _ := side.generation(p.Generation.Name)
	for _, c := range side.changes {
		in := slices.Contains(line.Changes, c.Name) && !slices.Contains(p.Removed, c.Name)
		if in || slices.Contains(p.Added, c.Name) {
			cs = append(cs, c)
		}
	}
	return cs
}

// New makes a TCP stack that behaves as the profile's kernel, freshly reset. For
// any system there is [Profile.Stack].
func (p *Profile) New() *TCP {
	t := &TCP{rules: p.rules, profile: p}
	if err := t.Reset(rc.Config{}); err != nil {
		panic(err) // the zero configuration always resets
	}
	return t
}

// Parse reads a profile's name, such as 6.18, 6.18+first-bind-fix or
// 6.1-every-wildcard. The error of an unknown name says what there is.
func Parse(name string) (*Profile, error) {
	end := strings.IndexAny(name, "+-")
	if end < 0 {
		end = len(name)
	}
	p := &Profile{}
	for _, side := range sides {
		if g, ok := side.generation(name[:end]); ok && p.Generation.Name == "" {
			p.Generation = g
		}
	}
	if p.Generation.Name == "" {
		if slices.Contains(changeNames(), name) {
			return nil, fmt.Errorf("%s is a change: put it behind a kernel, as in 6.18+%s", name, name)
		}
		return nil, fmt.Errorf("unknown kernel %q: want one of %s, perhaps with +CHANGE or -CHANGE behind it", name[:end], strings.Join(GenerationNames(), ", "))
	}
	for rest := name[end:]; rest != ""; {
		sign, word := rest[0], ""
		for _, n := range changeNames() {
			if strings.HasPrefix(rest[1:], n) && len(n) > len(word) && ends(rest[1+len(n):]) {
				word = n
			}
		}
		if word == "" {
			return nil, fmt.Errorf("kernel %q: unknown change %q%s; \"checker kernels\" lists them", name, rest[1:], suggestion(rest[1:]))
		}
		if err := p.apply(sign, word); err != nil {
			return nil, fmt.Errorf("kernel %q: %w", name, err)
		}
		rest = rest[1+len(word):]
	}
	p.rules, p.udp, p.timewait = oldest(), oldestUDP(), oldestTimeWait()
	for _, c := range p.ChangesOf(rc.TCP) {
		c.set(&p.rules)
	}
	for _, c := range p.ChangesOf(rc.UDP) {
		c.udp(&p.udp)
	}
	for _, c := range p.ChangesOf(rc.TimeWaitExit) {
		c.timewait(&p.timewait)
	}
	return p, nil
}

func ends(rest string) bool { return rest == "" || rest[0] == '+' || rest[0] == '-' }

func (p *Profile) apply(sign byte, name string) error {
	if slices.Contains(p.Added, name) || slices.Contains(p.Removed, name) {
		return fmt.Errorf("change %s is named twice", name)
	}
	in := false
	for _, side := range sides {
		line, _ := side.generation(p.Generation.Name)
		in = in || slices.Contains(line.Changes, name)
	}
	switch {
	case sign == '+' && in:
		return fmt.Errorf("%s has the change %s already", p.Generation.Name, name)
	case sign == '-' && !in:
		return fmt.Errorf("%s does not have the change %s, so it cannot be taken away", p.Generation.Name, name)
	case sign == '+':
		p.Added = append(p.Added, name)
	default:
		p.Removed = append(p.Removed, name)
	}
	return nil
}

// MustParse is Parse for names that are known to be right.
func MustParse(name string) *Profile {
	p, err := Parse(name)
	if err != nil {
		panic(err)
	}
	return p
}

// suggestion names the change that looks most like a word.
func suggestion(word string) string {
	if n := rc.Nearest(word, changeNames()); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}
