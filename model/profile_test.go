package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck/model"
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
	var order []string
	for _, c := range model.Changes() {
		if slices.Contains(order, c.Name) {
			t.Errorf("two changes are called %s", c.Name)
		}
		if c.Subject == "" || c.Doc == "" || c.Since == "" {
			t.Errorf("change %s lacks a subject, a doc or its first release", c.Name)
		}
		order = append(order, c.Name)
	}
	for _, g := range model.Generations() {
		at := -1
		for _, n := range g.Changes {
			i := slices.Index(order, n)
			if i < 0 {
				t.Errorf("%s names the unknown change %s", g.Name, n)
			} else if i < at {
				t.Errorf("%s names %s out of order", g.Name, n)
			}
			at = i
		}
	}
}

func TestEveryHistoryRowHasItsTwoKernels(t *testing.T) {
	for _, r := range model.History() {
		if r.Lives == "" {
			continue
		}
		for _, name := range []string{r.Lives, r.Healed} {
			if _, err := model.Parse(name); err != nil {
				t.Errorf("row %s: %v", r.ID, err)
			}
		}
	}
}
