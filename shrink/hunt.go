package shrink

import (
	"context"

	"github.com/reusecheck/reusecheck/spec"
)

// How many failures of one kind a hunt keeps, and how many that a known finding
// explains it shrinks all the same, in case another hides behind it.
const (
	perFinding = 3
	retries    = 1
)

// Hunt searches, shrinks the failures and gives each distinct finding once, in
// the order of the histories, until the search ends or yield returns false.
func Hunt(ctx context.Context, s *spec.Search, f *Finder, yield func(*Finding) bool) (spec.Stats, error) {
	s.PerFinding, f.Retries = perFinding, retries
	var failed error
	stats, err := s.Run(ctx, func(fail spec.Failure) bool {
		n, err := f.Find(ctx, fail)
		if err != nil {
			failed = err
			return false
		}
		return (n == nil || yield(n)) && ctx.Err() == nil
	})
	if err == nil {
		err = failed
	}
	return stats, err
}
