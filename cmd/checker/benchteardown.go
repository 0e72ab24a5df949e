package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck/live"
)

// teardownRow is what namespaces took on a real kernel.
type teardownRow struct {
	Kernel     string  `json:"kernel"`
	Namespaces int     `json:"namespaces"`
	Each       int     `json:"each"` // TIME_WAIT sockets
	Made       float64 `json:"made_ms"`
	Gone       float64 `json:"gone_ms"`
	Counted    bool    `json:"counted"`
	Batches    []int   `json:"batches,omitempty"` // of every round, as the walks
	Walks      []int   `json:"walks,omitempty"`
}

func (f *timeWaitFlags) onKernel(ctx context.Context, std streams) error {
	running, err := live.RunningKernel()
	if err != nil {
		return err
	}
	p := &teardownTable{std: std, json: f.json}
	rows := []int{0, f.each}
	if f.each == 0 {
		rows = rows[:1]
	}
	for _, each := range rows {
		row := teardownRow{Kernel: running.String(), Namespaces: f.namespaces, Each: each}
		var made, gone []time.Duration
		for range f.rounds {
			t, err := live.TimeNamespaces(ctx, f.namespaces, each)
			if err != nil {
				return err
			}
			made, gone = append(made, t.Made), append(gone, t.Gone)
			if row.Counted = t.Counted; t.Counted {
				row.Batches, row.Walks = append(row.Batches, t.Batches), append(row.Walks, t.Walks)
			}
		}
		row.Made, row.Gone = middle(made), middle(gone)
		if err := p.add(row); err != nil {
			return err
		}
	}
	return nil
}

// middle is the median in milliseconds.
func middle(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2]) / float64(time.Millisecond)
}

func (f *timeWaitFlags) inGuest(cmd *cobra.Command, std streams) error {
	p := &teardownTable{std: std, json: f.json}
	args := []string{"bench", "timewait", "--live", "--json", fmt.Sprintf("--namespaces=%d", f.namespaces),
		fmt.Sprintf("--each=%d", f.each), fmt.Sprintf("--rounds=%d", f.rounds)}
	code, err := f.boot(cmd.Context(), std, args, nil, each(p.add))
	return guestEnding(cmd.Context(), code, err)
}

// teardownTable prints rows as they come.
type teardownTable struct {
	std    streams
	json   bool
	headed bool
}

func (p *teardownTable) add(r teardownRow) error {
	if p.json {
		return writeJSON(p.std.out, r)
	}
	if !p.headed {
		p.headed = true
		fmt.Fprintf(p.std.out, "on %s\n%10s %10s %10s %10s %8s %8s\n", r.Kernel, "namespaces", "TIME_WAIT", "made, ms", "gone, ms", "batches", "walks")
	}
	batches, walks := "?", "?"
	if r.Counted {
		batches, walks = fromTo(r.Batches), fromTo(r.Walks)
	}
	if _, err := fmt.Fprintf(p.std.out, "%10d %10d %10.1f %10.1f %8s %8s\n", r.Namespaces, r.Namespaces*r.Each, r.Made, r.Gone, batches, walks); err != nil {
		return &outputError{err}
	}
	return nil
}

// fromTo is the range of the rounds.
func fromTo(ns []int) string {
	if lo, hi := slices.Min(ns), slices.Max(ns); lo != hi {
		return fmt.Sprintf("%d-%d", lo, hi)
	}
	return fmt.Sprint(ns[0])
}
