package bench

import (
	"context"
	"runtime"
	"sync"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// Convergence is how often shrinking ended in a finding's known trace.
type Convergence struct {
	Finding *shrink.Finding
	Started int // failing histories that were shrunk
	Reached int // of those, the ones that ended in the finding's trace
	Tried   int // candidates, all together
	// Others counts the traces that the rest ended in.
	Others map[string]int
}

// Converge looks for the kernel's findings, then in checks histories from another
// seed for starts failing ones of each, shrinks them one by one and compares the
// traces. A history counts for a finding when it shows that in no other
// circumstances. Beside the context's error stands what was shrunk until then.
func Converge(ctx context.Context, sys *spec.System, stack func() (reusecheck.Stack, error), starts, checks int, progress func(done, of int)) ([]*Convergence, error) {
	search := &spec.Search{System: sys, Stack: stack, Seed: 1, Checks: spec.DefaultChecks, Workers: runtime.GOMAXPROCS(0)}
	finder := &shrink.Finder{System: sys, Stack: stack}
	if _, err := shrink.Hunt(ctx, search, finder, func(*shrink.Finding) bool { return true }); err != nil {
		return nil, err
	}
	var cs []*Convergence
	for _, k := range finder.Known() {
		cs = append(cs, &Convergence{Finding: k, Others: map[string]int{}})
	}
	return cs, converge(ctx, sys, stack, cs, starts, checks, progress)
}

// converge shrinks starts failures of each finding, as many at a time as there
// are processors.
func converge(ctx context.Context, sys *spec.System, stack func() (reusecheck.Stack, error), cs []*Convergence, starts, checks int, progress func(done, of int)) error {
	type job struct {
		c    *Convergence
		fail spec.Failure
	}
	jobs := make(chan job)
	var mu sync.Mutex
	var first error
	done := 0
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			finder := &shrink.Finder{System: sys, Stack: stack}
			for j := range jobs {
				n, err := finder.Shrink(ctx, j.fail.Trace, j.c.Finding.Violation)
				mu.Lock()
				switch {
				case err != nil && first == nil:
					first = err
					stop()
				case err == nil && n.Report.Stopped == nil: // to its end
					j.c.count(n)
					done++
					progress(done, starts*len(cs))
				}
				mu.Unlock()
			}
		}()
	}
	left := len(cs)
	begun := make([]int, left)
	search := &spec.Search{System: sys, Stack: stack, Seed: 2, Checks: checks, PerFinding: starts}
	_, err := search.Run(ctx, func(f spec.Failure) bool {
		for i, c := range cs {
			if begun[i] < starts && f.Violation.Same(c.Finding.Violation) {
				if begun[i]++; begun[i] == starts {
					left--
				}
				jobs <- job{c, f}
			}
		}
		return left > 0 && ctx.Err() == nil
	})
	close(jobs)
	wg.Wait()
	if first != nil {
		return first
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (c *Convergence) count(n *shrink.Finding) {
	c.Started++
	c.Tried += n.Report.Tried
	if n.Trace.String() == c.Finding.Trace.String() {
		c.Reached++
		return
	}
	c.Others[n.Trace.String()]++
}
