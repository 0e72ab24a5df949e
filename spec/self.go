package spec

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/reusecheck/reusecheck"
)

// Self holds a kernel to itself, without a model and without the oracle's
// verdict. A bind or listen of a random history is asked again after a change
// that a look at every owner cannot notice:
//
//   - reset: just before it a plain socket is bound to an address of the port that
//     overlaps neither the binder nor an owner. That leaves both cache fields at 0,
//     so that the owners are looked at. Where a wildcard owner leaves
//     no such address the kernel refuses the bind, and the step is not tested so;
//   - removal: another socket and all its steps are left out. Fewer owners can
//     turn a refusal into a grant, never a grant into a refusal.
//
// Either way every earlier answer has to stay as it was, or nothing is said of
// the step. An answer that flips was not the owners'.
type Self struct {
	System *System
	Kernel reusecheck.Stack
	World  *World // nil: the system's own
	Seed   uint64
	Checks int // histories to try; 0 for no end but the context's
	Steps  int // operations in each; 0 is DefaultSteps
	// Progress, when given, is told now and then how far the run is.
	Progress func(SelfStats)

	oracle Oracle
}

// SelfStats counts what a run did.
type SelfStats struct {
	Stats
	Tested  int // binds and listens that were asked again
	Resets  int // with a reset that could be placed
	NoReset int // where no address was left for one
	Removed int // with another socket left out
	// Skipped counts histories that ended early, by what cannot be done here.
	Skipped map[string]int
}

// Flip is a bind or listen, the last step of a trace, that is answered otherwise
// after a change that no owner accounts for.
type Flip struct {
	History int
	Trace   *reusecheck.Trace // as it was asked first
	Control *reusecheck.Trace // as it was asked again
	How     string            // "reset" or "without b"
}

// Answers are the two answers of the step in question.
func (f *Flip) Answers() (first, again reusecheck.Answer) {
	return last(f.Trace).Want, last(f.Control).Want
}

func last(t *reusecheck.Trace) *reusecheck.Step { return &t.Steps[len(t.Steps)-1] }

// coreSteps is the length of a history that keeps to the core of the world.
const coreSteps = 10

// Run plays random histories and asks their binds and listens again, until the
// checks are done, the context ends or yield returns false.
func (s *Self) Run(ctx context.Context, yield func(*Flip) bool) (SelfStats, error) {
	w := s.World
	if w == nil {
		w = s.System.World()
	}
	// Two histories in three keep to the core of the world: what they find needs
	// the fewest steps, and they are the quickest to ask again.
	whole, core, src := s.System.NewGenerator(w), s.System.NewGenerator(w.Core()), &seeded{}
	most := s.Steps
	if most <= 0 {
		most = DefaultSteps
	}
	stats := SelfStats{Skipped: map[string]int{}}
	for h := 0; (s.Checks == 0 || h < s.Checks) && ctx.Err() == nil; h++ {
		src.pcg.Seed(s.Seed, uint64(h)+1)
		gen, steps := core, min(most, coreSteps)
		if h%3 == 2 {
			gen, steps = whole, most
		}
		t := &reusecheck.Trace{Config: gen.Start(src)}
		var live []reusecheck.Socket
		err := s.play(t, func() (reusecheck.Op, bool) {
			if len(t.Steps) == steps {
				return reusecheck.Op{}, false
			}
			live = live[:0]
			s.oracle.Sockets(func(k *reusecheck.Socket) bool { live = append(live, *k); return true })
			return gen.Next(src, live), true
		})
		if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
			stats.Skipped[lacks.What]++
		} else if err != nil {
			return stats, fmt.Errorf("history %d: %w", h+1, err)
		}
		stats.note(t)
		for i := range t.Steps {
			f, err := s.test(prefix(t, i+1), &stats)
			if err != nil {
				return stats, fmt.Errorf("history %d, step %d: %w", h+1, i+1, err)
			}
			if f == nil {
				continue
			}
			f.History = h
			stats.Violations++
			if !yield(f) {
				return stats, nil
			}
			break // what follows in this history follows from it
		}
		if s.Progress != nil && h%16 == 0 {
			s.Progress(stats)
		}
	}
	return stats, nil
}

func (s *SelfStats) note(t *reusecheck.Trace) {
	s.Histories++
	s.Steps += len(t.Steps)
	for i := range t.Steps {
		s.Verbs[t.Steps[i].Op.Verb]++
		if t.Steps[i].Want.Kind == reusecheck.OK {
			s.Granted++
		}
	}
}

// Shows replays a trace and asks its last step again; nil when that is no bind
// or listen, or nothing flips.
func (s *Self) Shows(t *reusecheck.Trace) (*Flip, error) {
	again := &reusecheck.Trace{Title: t.Title, Source: t.Source, Kernels: t.Kernels, Config: t.Config, Names: t.Names}
	if err := s.play(again, opsOf(t)); err != nil || len(again.Steps) == 0 {
		return nil, err
	}
	return s.test(again, &SelfStats{})
}

// test asks the last step of a trace again, if it is one to ask.
func (s *Self) test(t *reusecheck.Trace, stats *SelfStats) (*Flip, error) {
	st := last(t)
	granted := st.Want.Kind == reusecheck.OK
	if st.Op.Verb == reusecheck.VBind && st.Op.Addr.Port() == 0 ||
		st.Op.Verb != reusecheck.VBind && st.Op.Verb != reusecheck.VListen ||
		!granted && st.Want != reusecheck.Fail(reusecheck.EADDRINUSE) {
		return nil, nil
	}
	stats.Tested++
	f, err := s.reset(t, stats)
	if f != nil || err != nil || !granted {
		return f, err
	}
	for id := range reusecheck.ID(len(t.Names)) {
		c := without(t, id)
		if c == nil {
			continue
		}
		same, err := s.answers(c, st.Want)
		if err != nil {
			return nil, err
		}
		if same == unusable {
			continue
		}
		stats.Removed++
		if same == flipped && last(c).Want == reusecheck.Fail(reusecheck.EADDRINUSE) {
			return &Flip{Trace: t, Control: c, How: "without " + t.Name(id)}, nil
		}
	}
	return nil, nil
}

// unlikely are addresses that no world has, one of each family.
var unlikely = []netip.Addr{netip.MustParseAddr("127.9.9.9"), netip.MustParseAddr("fd00::2")}

// reset asks the last step again with a plain bind before it.
func (s *Self) reset(t *reusecheck.Trace, stats *SelfStats) (*Flip, error) {
	port, covers, err := s.reach(t)
	if err != nil || port == 0 {
		return nil, err
	}
	for _, a := range unlikely {
		if covers(a) {
			continue
		}
		c := withReset(t, netip.AddrPortFrom(a, port))
		same, err := s.answers(c, last(t).Want)
		if err != nil {
			return nil, err
		}
		if same == unusable {
			continue // an owner overlaps it
		}
		stats.Resets++
		if same == flipped {
			return &Flip{Trace: t, Control: c, How: "reset"}, nil
		}
		return nil, nil
	}
	stats.NoReset++
	return nil, nil
}

// reach is the port that the last step asks for, and whether the binder's
// address overlaps another one, as far as the socket itself tells.
func (s *Self) reach(t *reusecheck.Trace) (port uint16, covers func(netip.Addr) bool, err error) {
	// The state before the step, as the answers tell it.
	s.oracle.Reset(t.Config)
	for i := range t.Steps[:len(t.Steps)-1] {
		s.oracle.Follow(t.Steps[i].Op, t.Steps[i].Want)
	}
	op := last(t).Op
	var binder reusecheck.Socket
	s.oracle.Sockets(func(k *reusecheck.Socket) bool {
		if k.ID == op.Sock {
			binder = *k
		}
		return k.ID != op.Sock
	})
	at := binder.Local
	if op.Verb == reusecheck.VBind {
		at = netip.AddrPortFrom(reusecheck.Canonical(binder.Family, op.Addr.Addr()), op.Addr.Port())
	}
	wild, only6 := at.Addr().Unmap().IsUnspecified(), binder.Opts.Has(reusecheck.V6Only)
	return at.Port(), func(a netip.Addr) bool {
		switch {
		case !wild:
			return false
		case a.Is4():
			return at.Addr() != netip.IPv6Unspecified() || !only6
		}
		return at.Addr() == netip.IPv6Unspecified()
	}, nil
}

// The outcomes of asking again.
type outcome uint8

const (
	unusable outcome = iota // an earlier step was answered otherwise
	equal
	flipped
	elsewhere // an earlier step got another automatic port
)

// portTries are how often a control is played for the automatic ports, which a
// kernel draws, to be those of the trace.
const portTries = 8

// answers plays a control, whose steps state what is expected of them, writes
// down the answers and compares that of the last step with first.
func (s *Self) answers(c *reusecheck.Trace, first reusecheck.Answer) (outcome, error) {
	for range portTries {
		if o, err := s.once(c, first); o != elsewhere || err != nil {
			return o, err
		}
	}
	return unusable, nil
}

func (s *Self) once(c *reusecheck.Trace, first reusecheck.Answer) (outcome, error) {
	n := len(c.Steps) - 1
	if err := s.Kernel.Reset(c.Config); err != nil {
		return unusable, err
	}
	for i := range c.Steps {
		got, err := s.Kernel.Do(c.Steps[i].Op)
		if lacks := (*reusecheck.Unsupported)(nil); errors.As(err, &lacks) {
			return unusable, nil
		}
		if err != nil {
			return unusable, err
		}
		if want := c.Steps[i].Want; i < n && got.Answer != want {
			if want.Port = got.Answer.Port; got.Answer == want {
				return elsewhere, nil
			}
			return unusable, nil
		}
		c.Steps[i].Want = got.Answer
	}
	if c.Steps[n].Want == first {
		return equal, nil
	}
	return flipped, nil
}

// play asks the kernel what next gives and writes it down in t.
func (s *Self) play(t *reusecheck.Trace, next func() (reusecheck.Op, bool)) error {
	if s.oracle == nil {
		s.oracle = s.System.NewOracle()
	}
	s.oracle.Reset(t.Config)
	if err := s.Kernel.Reset(t.Config); err != nil {
		return err
	}
	for op, ok := next(); ok; op, ok = next() {
		got, err := s.Kernel.Do(op)
		if err != nil {
			return err
		}
		s.oracle.Follow(op, got.Answer)
		Append(t, op, &Observation{Op: op, Got: got})
		last(t).Want, last(t).Oracle = got.Answer, reusecheck.Answer{}
	}
	return nil
}

// seeded makes choices from a seed.
type seeded struct{ pcg rand.PCG }

func (s *seeded) Intn(n int) int {
	hi, _ := bits.Mul64(s.pcg.Uint64(), uint64(n))
	return int(hi)
}

func opsOf(t *reusecheck.Trace) func() (reusecheck.Op, bool) {
	i := 0
	return func() (reusecheck.Op, bool) {
		if i == len(t.Steps) {
			return reusecheck.Op{}, false
		}
		i++
		return t.Steps[i-1].Op, true
	}
}

// prefix is the first n steps of a trace.
func prefix(t *reusecheck.Trace, n int) *reusecheck.Trace {
	p := *t
	p.Steps = append([]reusecheck.Step(nil), t.Steps[:n]...)
	defined := 0
	for i := range p.Steps {
		if _, ok := p.Steps[i].Op.Defines(); ok {
			defined++
		}
	}
	p.Names = p.Names[:defined]
	return &p
}

// without is a trace less one socket and its children, or one namespace and its
// sockets; nil when the socket of the last step would go too.
func without(t *reusecheck.Trace, id reusecheck.ID) *reusecheck.Trace {
	c := *t
	c.Steps, c.Names = nil, nil
	to := map[reusecheck.ID]reusecheck.ID{} // the numbers of those that stay
	for _, st := range t.Steps {
		if defines, ok := st.Op.Defines(); ok && defines != id && stands(&st.Op, to) {
			to[defines] = reusecheck.ID(len(c.Names))
			c.Names = append(c.Names, t.Name(defines))
		}
		if renumber(&st.Op, to) {
			c.Steps = append(c.Steps, st)
		}
	}
	if _, stays := to[last(t).Op.Sock]; !stays {
		return nil
	}
	return &c
}

// stands reports whether what a definition is made from stays.
func stands(op *reusecheck.Op, to map[reusecheck.ID]reusecheck.ID) bool {
	from := op.Net
	if op.Verb == reusecheck.VInherit {
		from = op.Sock
	} else if !op.HasNet {
		return true
	}
	_, stays := to[from]
	return stays
}

// renumber gives an operation's names their new numbers; false when it is one on
// something that goes.
func renumber(op *reusecheck.Op, to map[reusecheck.ID]reusecheck.ID) bool {
	stays := true
	number := func(id *reusecheck.ID) {
		n, ok := to[*id]
		*id, stays = n, stays && ok
	}
	switch op.Verb {
	case reusecheck.VSend:
		return true
	case reusecheck.VExit:
		var batch []reusecheck.ID
		for _, id := range op.Batch {
			if n, ok := to[id]; ok {
				batch = append(batch, n)
			}
		}
		op.Batch = batch
		return len(batch) > 0
	case reusecheck.VInherit:
		number(&op.Child)
	}
	if op.HasNet {
		number(&op.Net)
	}
	number(&op.Sock)
	return stays
}

// lineOf is the socket line that a socket goes back to: its own, or that of the
// listener whose connection it is.
func lineOf(t *reusecheck.Trace, id reusecheck.ID) (line reusecheck.Op) {
	for i := len(t.Steps) - 1; i >= 0; i-- {
		switch op := &t.Steps[i].Op; {
		case op.Verb == reusecheck.VInherit && op.Child == id:
			id = op.Sock
		case op.Verb == reusecheck.VSocket && op.Sock == id:
			return *op
		}
	}
	return line
}

// withReset is a trace with a plain bind directly before its last step.
func withReset(t *reusecheck.Trace, at netip.AddrPort) *reusecheck.Trace {
	c := *t
	id := reusecheck.ID(len(t.Names))
	n := len(t.Steps) - 1
	binder := lineOf(t, t.Steps[n].Op.Sock)
	reset := reusecheck.NewSocket(id, binder.Family.Of(at.Addr()), 0)
	reset.HasNet, reset.Net = binder.HasNet, binder.Net
	name := "reset"
	for slices.Contains(t.Names, name) {
		name += "_"
	}
	c.Names = append(append([]string(nil), t.Names...), name)
	c.Steps = append(append([]reusecheck.Step(nil), t.Steps[:n]...),
		reusecheck.Step{Op: reset, Want: reusecheck.Success},
		reusecheck.Step{Op: reusecheck.Bind(id, at), Want: reusecheck.Success},
		t.Steps[n])
	return &c
}
