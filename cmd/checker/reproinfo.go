package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/repro"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

// retell replays a trace on a model, the named one or the newest that the trace
// is about. It gives the trace with the answers that it did not state (with a
// named kernel: with all of that kernel's), and what there is to say of it.
func retell(t *reusecheck.Trace, kernel string, std streams) (*reusecheck.Trace, repro.Info, error) {
	told := t.Clone()
	sys, err := spec.SystemOf(t)
	if err != nil {
		return told, repro.Info{}, nil // the format says what it cannot express
	}
	r, err := tellingReplay(sys, t, kernel)
	switch {
	case err != nil && kernel != "":
		return nil, repro.Info{}, failedOn(t, kernel, err)
	case r == nil:
		return told, repro.Info{}, nil // no model speaks of it
	case r.contradiction != "" && kernel == "":
		fmt.Fprintf(std.errs, "checker: %s: on %s %s; the program expects what is stated\n", t.File, r.on, r.contradiction)
	}
	info := repro.Info{Caches: r.caches}
	if kernel != "" {
		told.Kernels, err = reusecheck.ParseKernels(kernel)
		if err != nil {
			return nil, repro.Info{}, err
		}
	}
	for i := range told.Steps {
		st, got := &told.Steps[i], r.told.Steps[i]
		switch {
		case kernel != "":
			st.Want, st.Oracle = got.Want, got.Oracle
		case i >= r.faithful:
		case st.Want.Kind == reusecheck.Unstated && st.Oracle.Kind == reusecheck.Unstated:
			st.Want, st.Oracle = got.Want, got.Oracle
		case st.Want.Kind == reusecheck.Unstated:
			st.Want = got.Want
		}
	}
	if r.shown {
		info.Finding = r.finding()
		info.Kernels = affected(sys, told, r.violation)
	}
	return told, info, nil
}

// tellingReplay replays a trace on the kernel that was named, else on the newest
// generation that it is about and on which it shows a violation, the newest of
// all when it shows none. It gives nil when there is no such kernel.
func tellingReplay(sys *spec.System, t *reusecheck.Trace, kernel string) (*modelReplay, error) {
	if kernel != "" {
		on, err := model.ParseOf(sys.Name, kernel)
		if err != nil {
			return nil, err
		}
		return replayed(sys, on, t)
	}
	var telling *modelReplay
	var failed error
	for _, on := range slices.Backward(model.NamedOf(sys.Name, t.Kernels)) {
		r, err := replayed(sys, on, t)
		if err != nil {
			failed = err
			continue
		}
		plain := on.String() == on.Generation.Name
		if telling == nil || !telling.shown && (r.shown || plain && !telling.plain) {
			telling, r.plain = r, plain
		}
	}
	return telling, failed
}

// modelReplay is what a trace came to on one model.
type modelReplay struct {
	on            *model.Profile
	plain         bool               // a generation as it was released
	told          *reusecheck.Trace  // with the model's answers
	caches        []reusecheck.Cache // what a healthy bucket holds after each step
	faithful      int                // how many steps went by before one was not as stated
	contradiction string
	shown         bool // a violation, the one that leaves the oracle's states if there is one
	violation     spec.Violation
	sentence      string
}

func replayed(sys *spec.System, on *model.Profile, t *reusecheck.Trace) (*modelReplay, error) {
	stack, err := on.Stack(sys.Name)
	if err != nil {
		return nil, err
	}
	r := &modelReplay{on: on, told: &reusecheck.Trace{Names: t.Names}, faithful: len(t.Steps)}
	parted := false
	err = spec.NewMachine(sys, stack).Replay(t, func(i int, o *spec.Observation, found []spec.Violation) bool {
		spec.Append(r.told, o.Op, o)
		r.caches = append(r.caches, o.GhostAfter)
		if c, bad := spec.Contradicts(t.Steps[i], o); bad && r.faithful == len(t.Steps) {
			if c.Oracle && t.Steps[i].Want.Kind == reusecheck.Unstated && c.Stated.Kind == reusecheck.Unstated {
				// It states nothing at all: there is nothing that it contradicts.
			} else {
				r.faithful, r.contradiction = i, contradiction(t, &t.Steps[i], c)
			}
		}
		if len(found) > 0 && !parted && (!r.shown || o.Diverged()) {
			r.shown, r.violation, r.sentence = true, found[0], spec.Sentence(o, found[0])
		}
		parted = parted || o.Diverged()
		return true
	})
	if r.violation.Property != spec.Precise.Name {
		r.caches = nil // a repaired short cut may rightly be weaker elsewhere
	}
	return r, err
}

// finding is the property, how it fails, and why.
func (r *modelReplay) finding() string {
	title := (&shrink.Finding{Violation: r.violation}).Title()
	return title + ". " + r.sentence
}

// affected are the kernels that a trace states, and beside them the modelled
// generations that show a violation and those that do not.
func affected(sys *spec.System, t *reusecheck.Trace, v spec.Violation) string {
	var shows, not []string
	for _, g := range model.GenerationsOf(sys.Name) {
		p, err := model.ParseOf(sys.Name, g.Name)
		if err != nil {
			continue
		}
		stack, err := p.Stack(sys.Name)
		if err != nil {
			continue
		}
		if spec.NewMachine(sys, stack).Shows(t, v) >= 0 {
			shows = append(shows, g.Name)
		} else {
			not = append(not, g.Name)
		}
	}
	s := t.Kernels.String() + "; modelled: "
	if len(shows) > 0 {
		s += strings.Join(shows, ", ") + " affected"
	}
	if len(shows) > 0 && len(not) > 0 {
		s += ", "
	}
	if len(not) > 0 {
		s += strings.Join(not, ", ") + " not"
	}
	return s
}
