package shrink

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	rc "github.com/reusecheck/reusecheck"
)

// ErrBudget is why a run stopped that had used up Options.MaxCandidates.
var ErrBudget = errors.New("the budget of candidates is used up; allow more for a smaller trace")

// Options of a run. The zero value is a run to the end.
type Options struct {
	// Context ends the run early when it is done; nil never is.
	Context context.Context
	// MaxCandidates bounds the calls of the predicate; 0 is no bound.
	MaxCandidates int
	// MaxPairs bounds the candidates that one round of the last two passes
	// makes, simplest first: pairs of changes, and all traces of the small
	// world of the best one. 0 is 30,000, enough for all pairs of a trace of up
	// to about eight steps. A negative number leaves the two passes out: the
	// result is 1-minimal, but less often the same from every start.
	MaxPairs int
}

const defaultPairs = 30_000

// Report is what a run did.
type Report struct {
	// Reproduced says that the trace, less its stated answers, fails at all.
	// Where it does not there is nothing to shrink.
	Reproduced bool
	// Minimal says that the run came to its end: no change leads to a
	// simpler trace that fails.
	Minimal bool
	// Stopped is why it did not: ErrBudget, the context's error, or that of
	// Trace.Validate.
	Stopped error
	// Tried counts calls of the predicate, Cached candidates that had been
	// tried before, Kept those that failed and were gone on from.
	Tried, Cached, Kept int
	// Passes says the same pass by pass.
	Passes []Pass
}

// Pass is what one pass did.
type Pass struct {
	Name                string
	Tried, Cached, Kept int
}

// String is the report in one line a pass.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d candidates tried, %d met again, %d kept", r.Tried, r.Cached, r.Kept)
	switch {
	case !r.Reproduced && r.Stopped == nil:
		b.WriteString("; the trace does not fail")
	case r.Stopped != nil:
		fmt.Fprintf(&b, "; stopped early: %v", r.Stopped)
	}
	for _, p := range r.Passes {
		fmt.Fprintf(&b, "\n  %-10s %7d tried %7d met again %4d kept", p.Name, p.Tried, p.Cached, p.Kept)
	}
	return b.String()
}

// Run gives the simplest trace that it can reach from t and for which fails
// holds. The predicate gets traces without stated answers, may keep them, and
// must answer the same for the same trace. What a run does depends on t and the
// predicate alone.
//
// When t does not fail without its stated answers, or is not valid without
// them (Report.Stopped says why), a copy of t comes back.
// Otherwise the result fails, has no stated answers, and is never less simple
// than t.
func Run(t *rc.Trace, fails func(*rc.Trace) bool, opts Options) (*rc.Trace, Report) {
	r := newRun(t, fails, opts)
	d := fromTrace(t)
	if r.report.Stopped = d.trace(t).Validate(); !r.start(d) {
		return t.Clone(), r.finish(false)
	}
	r.coarse()
	for r.fine() || r.canonical() || r.pairs() || r.small() {
	}
	return r.best.trace(r.origin), r.finish(true)
}

type run struct {
	origin *rc.Trace
	fails  func(*rc.Trace) bool
	opts   Options
	seeds  [2]maphash.Seed
	seen   map[[2]uint64]struct{}
	buf    []byte

	best   draft
	hoist  bool
	pass   *Pass
	report Report
}

func newRun(t *rc.Trace, fails func(*rc.Trace) bool, opts Options) *run {
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	if opts.MaxPairs == 0 {
		opts.MaxPairs = defaultPairs
	}
	return &run{
		origin: t.Clone(), fails: fails, opts: opts,
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		seen:  map[[2]uint64]struct{}{},
	}
}

func (r *run) finish(reproduced bool) Report {
	r.report.Reproduced = reproduced
	r.report.Minimal = reproduced && r.report.Stopped == nil
	return r.report
}

func (r *run) enter(name string) {
	for i := range r.report.Passes {
		if r.report.Passes[i].Name == name {
			r.pass = &r.report.Passes[i]
			return
		}
	}
	r.report.Passes = append(r.report.Passes, Pass{Name: name})
	r.pass = &r.report.Passes[len(r.report.Passes)-1]
}

// start tries the trace as it is, then in canonical form. A predicate that
// needs the socket lines where they are keeps them.
func (r *run) start(d draft) bool {
	r.enter("start")
	d.weigh()
	if !r.ask(&d) {
		return false
	}
	r.best = d
	c := d.clone()
	c.tidy(true)
	r.hoist = compare(&c, &d) == 0 || r.ask(&c)
	if r.hoist {
		r.best = c
	}
	return true
}

// canonical tries the canonical form again of a trace that needed its lines where
// they were: what that hung on may be gone by now.
func (r *run) canonical() bool {
	if r.hoist || r.over() {
		return false
	}
	r.enter("start")
	c := r.best.clone()
	c.tidy(true)
	if r.hoist = compare(&c, &r.best) == 0 || r.ask(&c); r.hoist {
		r.best = c
	}
	return r.hoist
}

// ask puts a tidied candidate to the predicate, unless it has been or the run
// is over.
func (r *run) ask(c *draft) bool {
	if r.over() || !r.fresh(c) {
		return false
	}
	r.report.Tried++
	r.pass.Tried++
	return r.fails(c.trace(r.origin))
}

func (r *run) over() bool {
	switch {
	case r.report.Stopped != nil:
	case r.opts.Context.Err() != nil:
		r.report.Stopped = r.opts.Context.Err()
	case r.opts.MaxCandidates > 0 && r.report.Tried >= r.opts.MaxCandidates:
		r.report.Stopped = ErrBudget
	}
	return r.report.Stopped != nil
}

// fresh reports whether c is met for the first time.
func (r *run) fresh(c *draft) bool {
	k := r.key(c)
	if _, ok := r.seen[k]; ok {
		r.report.Cached++
		r.pass.Cached++
		return false
	}
	r.seen[k] = struct{}{}
	return true
}

// key is 128 bits of hash that stand for a candidate.
func (r *run) key(c *draft) [2]uint64 {
	r.buf = c.text(r.buf[:0])
	return [2]uint64{maphash.Bytes(r.seeds[0], r.buf), maphash.Bytes(r.seeds[1], r.buf)}
}

// take makes c the best so far if it is simpler and fails.
func (r *run) take(c draft) bool {
	c.tidy(r.hoist)
	if compare(&c, &r.best) >= 0 || !r.ask(&c) {
		return false
	}
	r.keep(c)
	return true
}

func (r *run) keep(c draft) {
	r.best = c
	r.report.Kept++
	r.pass.Kept++
}
