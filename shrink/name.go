package shrink

import (
	"fmt"
	"strings"
)

// Title says in one line what the finding is: the property, how it fails, and
// what the cache did not see.
func (n *Finding) Title() string {
	s := n.Violation.Property + ": " + n.Violation.Kind
	if c := n.Violation.Tags.Causes(); c != "" {
		s += " (" + c + ")"
	}
	return s
}

// Names gives findings names that can be file names, each once. The zero value
// has given none.
type Names struct{ given map[string]int }

// Of is a finding's title in lower case letters, digits and hyphens, with a
// number after it when an earlier finding has the same.
func (s *Names) Of(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < '0' || '9' < r)
	})
	name := strings.Join(words, "-")
	if s.given == nil {
		s.given = map[string]int{}
	}
	if s.given[name]++; s.given[name] > 1 {
		name += fmt.Sprintf("-%d", s.given[name])
	}
	return name
}
