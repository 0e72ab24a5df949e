package explore

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnExplorationThatWasKilledEndsAtTheSameCounts breaks off in the middle of a
// level, again and again, and goes on from the last checkpoint.
func TestAnExplorationThatWasKilledEndsAtTheSameCounts(t *testing.T) {
	whole, err := search(t, "6.18", "v4", 3).Run(context.Background(), func(*History) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	killed := errors.New("killed")
	file := filepath.Join(t.TempDir(), "state")
	kills := 0
	for {
		s := search(t, "6.18", "v4", 3)
		s.Checkpoint, s.Every = file, -1
		o, err := s.Run(context.Background(), func(h *History) error {
			if kills < 3 && h.Depth > kills+1 {
				kills++
				return killed
			}
			return nil
		})
		if errors.Is(err, killed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if kills < 2 {
			t.Fatalf("the exploration was broken off %d times only", kills)
		}
		got := []int64{o.States, o.Transitions, int64(o.Depth), o.Violations, int64(len(o.Steps))}
		want := []int64{whole.States, whole.Transitions, int64(whole.Depth), whole.Violations, int64(len(whole.Steps))}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		break
	}
	other := search(t, "6.12", "v4", 3)
	other.Checkpoint = file
	if _, err := other.Run(context.Background(), func(*History) error { return nil }); err == nil {
		t.Error("the checkpoint of another exploration was taken up")
	}
}
