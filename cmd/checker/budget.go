package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck/spec"
)

// budget is what a person may say of how far a search goes.
type budget struct {
	checks  int
	steps   int
	seed    uint64
	limit   time.Duration
	workers int
	without []string

	parts int       // searches that the command still makes, when several
	end   time.Time // when the limit of time is reached, once the first has begun
}

func (b *budget) addTo(cmd *cobra.Command, checks, workers int) {
	fs := cmd.Flags()
	fs.IntVar(&b.checks, "checks", checks, "histories to try")
	fs.IntVar(&b.steps, "steps", spec.DefaultSteps, "steps in each history, socket lines included (more by default where a system needs them)")
	fs.Uint64Var(&b.seed, "seed", 1, "seed of the random choices")
	fs.DurationVar(&b.limit, "time", 0, "stop after this time, such as 30s; without --checks there is no other end")
	fs.IntVar(&b.workers, "workers", workers, "histories played at the same time")
	fs.StringSliceVar(&b.without, "without", nil, "take these parts out of the world, joined by commas")
	complete(cmd, "without", worldWords)
}

func (b *budget) verify(cmd *cobra.Command) error {
	given := cmd.Flags().Changed("checks")
	if b.limit != 0 && !given {
		b.checks = 0
	}
	const most = 1 << 40
	switch {
	case b.limit <= 0 && cmd.Flags().Changed("time"):
		return fmt.Errorf("--time is %v: give a positive time such as 30s", b.limit)
	case given && (b.checks < 1 || b.checks > most):
		return fmt.Errorf("--checks is %d: give a number from 1 to %d", b.checks, most)
	case b.steps < 1 || b.steps > 100_000:
		return fmt.Errorf("--steps is %d: give a number from 1 to 100000", b.steps)
	case b.workers < 1 || b.workers > 1024:
		return fmt.Errorf("--workers is %d: give a number from 1 to 1024", b.workers)
	}
	return nil
}

// length is the number of steps that was asked for, 0 for the system's own.
func (b *budget) length(cmd *cobra.Command) int {
	if cmd.Flags().Changed("steps") {
		return b.steps
	}
	return 0
}

// world is the system's, less what the person took away.
func (b *budget) world(sys *spec.System) (*spec.World, error) {
	w := sys.World()
	return w, w.Without(b.without...)
}

// within is ctx with the next search's share of the limit of time: what is left
// of it goes in equal parts to the searches to come.
func (b *budget) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.limit <= 0 {
		return context.WithCancel(ctx)
	}
	if b.end.IsZero() {
		b.end = time.Now().Add(b.limit)
	}
	share := time.Until(b.end) / time.Duration(max(1, b.parts))
	b.parts--
	return context.WithTimeout(ctx, share)
}

// words are the flags that give the same search, which went so far, again.
func (b *budget) words(cmd *cobra.Command, histories int) string {
	s := fmt.Sprintf(" --seed %d --checks %d", b.seed, max(1, histories))
	if cmd.Flags().Changed("steps") {
		s += fmt.Sprintf(" --steps %d", b.steps)
	}
	if len(b.without) > 0 {
		s += " --without " + joined(b.without)
	}
	return s
}
