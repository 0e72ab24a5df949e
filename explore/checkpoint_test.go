package explore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAnExplorationThatWasKilledEndsAtTheSameCounts breaks off in the middle of a
// level, again and again, and goes on from the last checkpoint. Whoever sees the
// last run only is told all that one run would have told.
func TestAnExplorationThatWasKilledEndsAtTheSameCounts(t *testing.T) {
	var all, told []string
	whole, err := search(t, "6.18", "v4", 3).Run(context.Background(), func(h *History) error {
		all = append(all, h.Trace.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	killed := errors.New("killed")
	file := filepath.Join(t.TempDir(), "state")
	kills := 0
	for {
		s := search(t, "6.18", "v4", 3)
		s.Checkpoint, s.Every = file, -1
		told = nil
		o, err := s.Run(context.Background(), func(h *History) error {
			told = append(told, h.Trace.String())
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
		if d := cmp.Diff(all, told); d != "" || len(all) == 0 {
			t.Errorf("%d histories, told by the last run:\n%s", len(all), d)
		}
		break
	}
	other := search(t, "6.12", "v4", 3)
	other.Checkpoint = file
	if _, err := other.Run(context.Background(), func(*History) error { return nil }); err == nil {
		t.Error("the checkpoint of another exploration was taken up")
	}
}

func TestWhatIsNotJudgedIsCountedAcrossCheckpoints(t *testing.T) {
	s := search(t, "6.18", "v4", 2)
	s.Checkpoint = filepath.Join(t.TempDir(), "state")
	for run := 1; run <= 3; run++ {
		r, err := s.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range r.ws {
			w.step.skipped["rare"] += 2
		}
		if err := r.save(true); err != nil {
			t.Fatal(err)
		}
		if got, want := r.skipped()["rare"], 2*len(r.ws)*run; got != want {
			t.Errorf("after %d runs %d were skipped, want %d", run, got, want)
		}
	}
}

func TestACheckpointThatWasChangedIsRefused(t *testing.T) {
	s := search(t, "6.18", "v4", 2)
	s.Checkpoint, s.Every = filepath.Join(t.TempDir(), "state"), -1
	none := func(*History) error { return nil }
	if _, err := s.Run(context.Background(), none); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(at int) []byte {
		b := slices.Clone(whole)
		b[at] ^= 4
		return b
	}
	for name, b := range map[string][]byte{
		"empty": {}, "short": whole[:5], "without its end": whole[:len(whole)-1], "half": whole[:len(whole)/2],
		"its head": changed(3), "its middle": changed(len(whole) / 2), "its end": changed(len(whole) - 1),
		"longer": append(slices.Clone(whole), 0),
	} {
		if err := os.WriteFile(s.Checkpoint, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(context.Background(), none); err == nil || !strings.Contains(err.Error(), "is no checkpoint: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnInterruptEndsTheSearchForSymmetries(t *testing.T) {
	// It takes a minute and more.
	s := search(t, "6.18", "connections uid=2 set-opt ports=2", 2)
	ctx, interrupt := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, interrupt)
	start := time.Now()
	_, err := s.Run(ctx, func(*History) error { return nil })
	if took := time.Since(start); !errors.Is(err, context.Canceled) || took > 5*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// FuzzCheckpoint gives arbitrary contents a right checksum, and a wrong one.
func FuzzCheckpoint(f *testing.F) {
	s := search(f, "6.18", "v4", 2)
	s.Checkpoint, s.Every = filepath.Join(f.TempDir(), "state"), -1
	if _, err := s.Run(context.Background(), func(*History) error { return nil }); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(s.Checkpoint)
	if err != nil {
		f.Fatal(err)
	}
	whole = whole[:len(whole)-8]
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(whole[:len(savedMagic)])
	f.Add([]byte("reusecheck"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		sum := newSum()
		sum.Write(text)
		summed := binary.BigEndian.AppendUint64(slices.Clone(text), sum.Sum64())
		got, err := readSaved(bytes.NewReader(summed))
		if (got == nil) == (err == nil) {
			t.Fatalf("%v and %v", got, err)
		}
		if bytes.Equal(text, whole) && err != nil {
			t.Errorf("a whole checkpoint: %v", err)
		}
		summed[len(summed)-1] ^= 1
		if _, err := readSaved(bytes.NewReader(summed)); err == nil {
			t.Error("a wrong checksum is taken")
		}
	})
}
