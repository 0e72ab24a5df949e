package model_test

import (
	"slices"
	"strings"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func TestProfileNamesRoundTrip(t *testing.T) {
	for _, name := range []string{"4.9", "6.18", "6.18+first-bind-fix", "6.18+first-bind-fix+exact-strict-match",
		"6.1-mapped-twin", "5.4-strict-binder-wildcard+first-bind-fix"} {
		p, err := model.Parse(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if p.String() != name {
			t.Errorf("%s prints as %s", name, p)
		}
	}
}

func TestUnknownProfilesSayWhatThereIs(t *testing.T) {
	for name, want := range map[string]string{
		"7.0":                 `unknown kernel "7.0": want one of 4.9, 4.19, 5.4, 5.15, 6.1, 6.12, 6.18, perhaps`,
		"":                    `unknown kernel ""`,
		"first-bind-fix":      `first-bind-fix is a change: put it behind a kernel, as in 6.18+first-bind-fix`,
		"udp-early-demux":     `udp-early-demux is a change`,
		"6.18+first-bnd-fix":  "did you mean first-bind-fix?",
		"6.18+":               "unknown change",
		"6.18-first-bind-fix": "does not have the change first-bind-fix",
		"6.18+strict-cache":   "has the change strict-cache already",
		"6.18+exact-strict-match+exact-strict-match": "named twice",
	} {
		if _, err := model.Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): error %v, want one with %q", name, err, want)
		}
	}
}

func TestEveryGenerationNamesKnownChangesInOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, sys := range spec.Systems {
		var order []string
		for _, c := range model.ChangesOf(sys.Name) {
			if seen[c.Name] {
				t.Errorf("two changes are called %s", c.Name)
			}
			if c.Subject == "" || c.Doc == "" || c.Since == "" {
				t.Errorf("change %s lacks a subject, a doc or its first release", c.Name)
			}
			seen[c.Name] = true
			order = append(order, c.Name)
		}
		for _, g := range model.GenerationsOf(sys.Name) {
			at := -1
			for _, n := range g.Changes {
				i := slices.Index(order, n)
				if i <= at {
					t.Errorf("%s of %s names %s, which is unknown or out of order", sys.Name, g.Name, n)
				}
				at = i
			}
		}
	}
}

func TestTheGenerationsOfEverySystemGoFromOldToNew(t *testing.T) {
	for _, sys := range spec.Systems {
		gs := model.GenerationsOf(sys.Name)
		if !slices.IsSortedFunc(gs, func(a, b model.Generation) int { return rc.CompareVersions(a.Release, b.Release) }) {
			t.Errorf("the kernels of %s are not in order: %v", sys.Name, gs)
		}
	}
}

func TestEveryHistoryRowHasItsTwoKernelsAndEveryEraItsOne(t *testing.T) {
	kernel := func(system rc.System, name, of string) {
		if p, err := model.ParseOf(system, name); err != nil || p.String() != name {
			t.Errorf("%s of %s: %q is %v, %v", of, system, name, p, err)
		}
	}
	for _, sys := range spec.Systems {
		rows := model.HistoryOf(sys.Name)
		if len(rows) == 0 {
			t.Errorf("%s has no history", sys.Name)
		}
		for _, r := range rows {
			if r.Lives == "" && r.Healed == "" {
				continue
			}
			kernel(sys.Name, r.Lives, "row "+r.ID)
			kernel(sys.Name, r.Healed, "row "+r.ID)
		}
	}
	for _, e := range model.Eras() {
		kernel(rc.TimeWaitExit, e.Kernel, e.Name)
	}
}

// FuzzParse gives arbitrary names: a kernel that there is prints as a name of the
// same kernel, and has a stack for every system that it models.
func FuzzParse(f *testing.F) {
	for _, name := range model.GenerationNames() {
		f.Add(name)
	}
	for _, sys := range spec.Systems {
		for _, r := range model.HistoryOf(sys.Name) {
			f.Add(r.Lives)
			f.Add(r.Healed)
		}
	}
	for _, name := range []string{"", "6.18+", "6.18-", "6.18+first-bind-fix-", "6.18++first-bind-fix", "7.0", "6.18+first-bnd-fix", "5.4-strict-cache-strict-cache"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, err := model.Parse(name)
		if err != nil {
			if p != nil || err.Error() == "" {
				t.Fatalf("Parse(%q): %v and %v", name, p, err)
			}
			return
		}
		again, err := model.Parse(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("Parse(%q) prints as %s, which is %v, %v", name, p, again, err)
		}
		for _, sys := range spec.Systems {
			of, err := model.ParseOf(sys.Name, name)
			if err != nil {
				continue // not modelled there
			}
			if of.String() != p.String() || !slices.EqualFunc(of.ChangesOf(sys.Name), again.ChangesOf(sys.Name), func(a, b model.Change) bool { return a.Name == b.Name }) {
				t.Errorf("%q of %s is %s with other changes than %s", name, sys.Name, of, again)
			}
			if _, err := of.Stack(sys.Name); err != nil {
				t.Errorf("%q has no %s: %v", name, sys.Name, err)
			}
		}
	})
}
