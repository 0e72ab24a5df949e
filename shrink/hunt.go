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
// the order of the histories, until the search ends or yield returns false. It
// shrinks as many failures at a time as the search has workers, and decides
// about them in their order, so that the number changes nothing.
func Hunt(ctx context.Context, s *spec.Search, f *Finder, yield func(*Finding) bool) (spec.Stats, error) {
	s.PerFinding, f.Retries = perFinding, retries
	h := &hunt{ctx: ctx, finder: f, yield: yield}
	for range max(1, s.Workers) {
		h.idle = append(h.idle, &Finder{System: f.System, Stack: f.Stack, Kernels: f.Kernels})
	}
	stats, err := s.Run(ctx, h.take)
	for err == nil && h.err == nil && !h.over && len(h.queue) > 0 {
		h.decide()
	}
	h.wait()
	if err == nil {
		err = h.err
	}
	return stats, err
}

type hunt struct {
	ctx    context.Context
	finder *Finder // knows the findings; all of it is done by one goroutine
	yield  func(*Finding) bool
	idle   []*Finder // that shrink beside each other
	queue  []*job    // in the order of the failures
	over   bool
	err    error
}

type job struct {
	fail   spec.Failure
	finder *Finder // nil when nothing was to be shrunk
	done   chan struct{}
	found  *Finding
	err    error
}

// take begins to shrink a failure, unless it is certain already that a known
// finding explains it: what is known later explains no less.
func (h *hunt) take(fail spec.Failure) bool {
	j := &job{fail: fail, done: make(chan struct{})}
	h.queue = append(h.queue, j)
	if h.finder.wouldExplain(fail) {
		close(j.done)
	} else {
		for len(h.idle) == 0 && !h.over {
			h.decide()
		}
		if h.over {
			close(j.done)
			return false
		}
		j.finder, h.idle = h.idle[0], h.idle[1:]
		go func() {
			defer close(j.done)
			j.found, j.err = j.finder.Shrink(h.ctx, fail.Trace, fail.Violation)
		}()
	}
	for !h.over && len(h.queue) > 0 && h.queue[0].ended() {
		h.decide()
	}
	return !h.over
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// decide waits for the first job of the queue and does with it what Find does.
func (h *hunt) decide() {
	j := h.queue[0]
	h.queue = h.queue[1:]
	<-j.done
	if j.finder != nil {
		h.idle = append(h.idle, j.finder)
	}
	if h.finder.explains(j.fail) || j.finder == nil {
		return
	}
	switch {
	case j.err != nil:
		h.err, h.over = j.err, true
	case h.finder.learn(j.found, j.fail):
		h.over = !h.yield(j.found) || h.ctx.Err() != nil
	}
}

// wait lets what is still being shrunk come to its end.
func (h *hunt) wait() {
	for _, j := range h.queue {
		<-j.done
	}
}

// wouldExplain is explains without taking note of anything.
func (f *Finder) wouldExplain(fail spec.Failure) bool {
	for _, k := range f.known {
		if k.Violation.Same(fail.Violation) && f.retried[k] >= f.Retries {
			return true
		}
	}
	return false
}
