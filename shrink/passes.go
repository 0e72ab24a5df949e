package shrink

import (
	"iter"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// coarse makes a long trace short: it cuts off what follows the failure, then
// leaves out runs of steps, from half of them down to one.
func (r *run) coarse() {
	r.enter("cut")
	lo, hi := 0, len(r.best.ops)
	for from := r.best; lo < hi; {
		mid := (lo + hi) / 2
		if r.take(from.without(func(i int, _ *rc.Op) bool { return i >= mid })) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	r.enter("chunk")
	for size := len(r.best.ops) / 2; size > 1; size /= 2 {
		// From the end, where the failure is least likely to need them, so
		// that what comes before keeps its place.
		for end := len(r.best.ops); end > 0 && !r.over(); end -= size {
			end = min(end, len(r.best.ops))
			r.take(r.best.without(func(i int, op *rc.Op) bool {
				_, defines := op.Defines()
				return i >= end-size && i < end && (!defines || op.Verb == rc.VInherit)
			}))
		}
	}
}

// moves are the passes of single moves in order of cost.
var moves = []struct {
	name string
	of   func(*draft) iter.Seq[draft]
}{
	{"drop", drops},
	{"netns", spaces},
	{"config", config},
	{"everywhere", everywhere},
	{"verb", simplerVerbs},
	{"alone", alone},
	{"attribute", attributes},
	{"family", families},
	{"value", values},
	{"rename", renames},
	{"merge", merges},
	{"order", order},
}

// fine goes through the passes until none finds anything, and reports whether
// one did.
func (r *run) fine() bool {
	found := false
	for i := 0; i < len(moves) && !r.over(); {
		r.enter(moves[i].name)
		if r.improve(moves[i].of) {
			found, i = true, 0
			continue
		}
		i++
	}
	return found && r.report.Stopped == nil
}

// improve takes the moves of one kind as long as they help.
func (r *run) improve(of func(*draft) iter.Seq[draft]) bool {
	found := false
	for again := true; again && !r.over(); {
		again = false
		from := r.best
		for c := range of(&from) {
			if r.take(c) {
				found, again = true, true
				break
			}
			if r.over() {
				break
			}
		}
	}
	return found
}

// pairs tries two moves at once, the simplest result first, and reports whether
// one failed. The first move may make the trace less simple.
func (r *run) pairs() bool {
	if r.opts.MaxPairs < 0 || r.over() {
		return false
	}
	r.enter("pair")
	return r.first(r.two())
}

// first keeps the simplest of the drafts that fails, and reports whether one did.
func (r *run) first(ds []draft) bool {
	for _, c := range simplestFirst(ds) {
		if r.ask(c) {
			r.keep(*c)
			return true
		}
		if r.over() {
			break
		}
	}
	return false
}

// two gives the drafts two moves away that are simpler than the best and new.
func (r *run) two() []draft {
	once, met := r.once(), map[[2]uint64]struct{}{}
	var out []draft
	var free spare
	left := r.opts.MaxPairs
	for _, one := range simplestFirst(once) {
		one.free = &free
		for c := range all(one) {
			if left--; left < 0 {
				break
			}
			c.tidy(r.hoist)
			if compare(&c, &r.best) >= 0 {
				free.put(&c)
				continue
			}
			k := r.key(&c)
			_, tried := r.seen[k]
			if _, dup := met[k]; dup || tried {
				free.put(&c)
				continue
			}
			met[k] = struct{}{}
			c.free = nil
			out = append(out, c)
		}
	}
	return out
}

// once gives the drafts one move away, less simple ones included.
func (r *run) once() []draft {
	met := map[[2]uint64]struct{}{r.key(&r.best): {}}
	var out []draft
	for c := range all(&r.best) {
		c.tidy(r.hoist)
		k := r.key(&c)
		if _, dup := met[k]; dup {
			continue
		}
		met[k] = struct{}{}
		out = append(out, c)
	}
	return out
}

// simplestFirst are the drafts in their order. Pointers are sorted, since drafts
// are large.
func simplestFirst(ds []draft) []*draft {
	sorted := make([]*draft, len(ds))
	for i := range ds {
		sorted[i] = &ds[i]
	}
	slices.SortFunc(sorted, compare)
	return sorted
}

func all(d *draft) iter.Seq[draft] {
	return func(yield func(draft) bool) {
		for _, m := range moves {
			for c := range m.of(d) {
				if !yield(c) {
					return
				}
			}
		}
	}
}
