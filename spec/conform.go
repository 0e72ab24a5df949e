package spec

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"

	"github.com/reusecheck/reusecheck"
)

// Conformance holds a model to a kernel: both are asked the same, step by step,
// and have to answer the same. Where the rules leave a choice, the model makes
// the kernel's, if it is one of those allowed.
type Conformance struct {
	System        *System
	Kernel, Model reusecheck.Stack
	World         *World // nil: the system's own
	Seed          uint64
	Checks        int // histories to try; 0 for no end but the context's
	Steps         int // operations in each; 0 is DefaultSteps
	// Progress, when given, is told now and then how far the run is.
	Progress func(ConformanceStats)

	oracle Oracle
}

// ConformanceStats counts what a run did.
type ConformanceStats struct {
	Stats
	Agreed int // histories without a mismatch
	Caches int // steps whose caches were compared too
	// Skipped counts histories that ended early, by what cannot be done here.
	Skipped map[string]int
}

// Mismatch is a history whose last step the two answer differently.
type Mismatch struct {
	History       int
	What          string            // "answer", "cache" or "address bucket"
	Trace         *reusecheck.Trace // states the kernel's answers
	Kernel, Model reusecheck.Result // of the last step
}

// Kind says what a mismatch is about, so that shrinking stays with it.
func (m *Mismatch) Kind() string {
	op := m.Trace.Steps[len(m.Trace.Steps)-1].Op
	switch m.What {
	case whatAnswer:
		return fmt.Sprintf("%s: kernel %s, model %s", op.Verb, sort(m.Kernel.Answer), sort(m.Model.Answer))
	case whatCache:
		return fmt.Sprintf("%s: cache: kernel %s, model %s", op.Verb, fields(m.Kernel.After), fields(m.Model.After))
	}
	return fmt.Sprintf("%s: %s", op.Verb, m.What)
}

// sort is an answer without the port and the name in it.
func sort(a reusecheck.Answer) reusecheck.Answer {
	a.Port, a.Who = 0, 0
	return a
}

const (
	whatAnswer = "answer"
	whatCache  = "cache"
	whatPair   = "address bucket"
)

// differ says in what two results differ, "" when they do not. Caches are
// compared where both stacks show them, their key only where it means something.
func differ(kernel, model *reusecheck.Result) string {
	switch {
	case kernel.Answer != model.Answer:
		return whatAnswer
	case !kernel.HasCache || !model.HasCache:
		return ""
	case kernel.After.WithoutKey() != model.After.WithoutKey():
		return whatCache
	case kernel.AddrAfter.Exists && kernel.AddrAfter != model.AddrAfter:
		return whatPair
	}
	return ""
}

// Run plays random histories until the checks are done, the context ends or
// yield returns false. A history ends at its first mismatch.
func (c *Conformance) Run(ctx context.Context, yield func(*Mismatch) bool) (ConformanceStats, error) {
	w := c.World
	if w == nil {
		w = c.System.World()
	}
	gen, src := c.System.NewGenerator(w), &pcgSource{}
	steps := c.Steps
	if steps <= 0 {
		steps = DefaultSteps
	}
	stats := ConformanceStats{Skipped: map[string]int{}}
	for h := 0; (c.Checks == 0 || h < c.Checks) && ctx.Err() == nil; h++ {
		src.pcg.Seed(c.Seed, uint64(h)+1)
		t := &reusecheck.Trace{Config: gen.Start(src)}
		var live []reusecheck.Socket
		m, err := c.play(t, func() (reusecheck.Op, bool) {
			if len(t.Steps) == steps {
				return reusecheck.Op{}, false
			}
			live = live[:0]
			c.oracle.Sockets(func(s *reusecheck.Socket) bool { live = append(live, *s); return true })
			return gen.Next(src, live), true
		}, &stats)
		lacks := (*reusecheck.Unsupported)(nil)
		switch {
		case errors.As(err, &lacks):
			stats.Skipped[lacks.What]++
		case err != nil:
			return stats, fmt.Errorf("history %d: %w", h+1, err)
		}
		stats.Histories++
		switch {
		case m == nil:
			stats.Agreed++
		default:
			stats.Violations++
			m.History = h
			if !yield(m) {
				return stats, nil
			}
		}
		if c.Progress != nil && h%64 == 0 {
			c.Progress(stats)
		}
	}
	return stats, nil
}

// Shows replays a trace on both and gives its first mismatch, nil when there is
// none or the trace cannot be run.
func (c *Conformance) Shows(t *reusecheck.Trace) (*Mismatch, error) {
	i := 0
	seen := &reusecheck.Trace{File: t.File, Title: t.Title, Source: t.Source, Kernels: t.Kernels, Config: t.Config, Names: t.Names}
	return c.play(seen, func() (reusecheck.Op, bool) {
		if i == len(t.Steps) {
			return reusecheck.Op{}, false
		}
		i++
		return t.Steps[i-1].Op, true
	}, nil)
}

// play asks both what next gives and writes it down in t.
func (c *Conformance) play(t *reusecheck.Trace, next func() (reusecheck.Op, bool), stats *ConformanceStats) (*Mismatch, error) {
	if c.oracle == nil {
		c.oracle = c.System.NewOracle()
	}
	c.oracle.Reset(t.Config)
	if err := c.Kernel.Reset(t.Config); err != nil {
		return nil, err
	}
	if err := c.Model.Reset(t.Config); err != nil {
		return nil, err
	}
	for op, ok := next(); ok; op, ok = next() {
		kernel, err := c.Kernel.Do(op)
		if err != nil {
			return nil, err
		}
		model, err := doAs(c.Model, op, kernel.Answer)
		if err != nil {
			return nil, err
		}
		o := &Observation{Op: op, Got: kernel, Verdict: c.oracle.Judge(op, kernel.Answer)}
		Append(t, op, o)
		c.oracle.Follow(op, kernel.Answer)
		if stats != nil {
			stats.count(op, &kernel, &model)
		}
		if what := differ(&kernel, &model); what != "" {
			return &Mismatch{What: what, Trace: t, Kernel: kernel, Model: model}, nil
		}
	}
	return nil, nil
}

func (s *ConformanceStats) count(op reusecheck.Op, kernel, model *reusecheck.Result) {
	s.Steps++
	s.Verbs[op.Verb]++
	if kernel.Kind == reusecheck.OK {
		s.Granted++
	}
	if kernel.HasCache && model.HasCache {
		s.Caches++
	}
}

// doAs lets a stack choose as another chose, if it can.
func doAs(s reusecheck.Stack, op reusecheck.Op, seen reusecheck.Answer) (reusecheck.Result, error) {
	if c, ok := s.(reusecheck.Chooser); ok {
		return c.DoAs(op, seen)
	}
	return s.Do(op)
}

// pcgSource makes choices from a seed.
type pcgSource struct{ pcg rand.PCG }

func (p *pcgSource) Intn(n int) int {
	hi, _ := bits.Mul64(p.pcg.Uint64(), uint64(n))
	return int(hi)
}
