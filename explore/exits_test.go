package explore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
)

func exits(t *testing.T, kernel string, waits ...model.Waiting) explore.ExitReport {
	t.Helper()
	race, err := model.NewExitRace(model.MustParse(kernel), waits)
	if err != nil {
		t.Fatal(err)
	}
	return explore.Exits(race)
}

// What two exits at once can do to one another is row 45 of the history: no
// TIME_WAIT socket is lost, but the own 1 of a namespace may not be the last.
func TestTwoExitsAtOnceWarnInTheErasBetweenTheMergedSkipAndTheLock(t *testing.T) {
	sockets := [][]model.Waiting{
		{}, {{Exit: 0}}, {{Exit: 0, Six: true}}, {{Exit: 0}, {Exit: 1, Six: true}},
		{{Exit: 0}, {Exit: 0, Six: true}, {Exit: 1}, {Exit: 1, Six: true}},
	}
	for e, era := range model.Eras() {
		for _, waits := range sockets {
			rep := exits(t, era.Kernel, waits...)
			_, warns := rep.Shortest[model.RaceWarns]
			want := e >= 2 && e <= 5 && len(waits) > 0
			if e <= 3 && !slices.ContainsFunc(waits, func(w model.Waiting) bool { return w.Exit == 1 }) {
				want = false // with the skip, only an exit that has sockets of its own walks
			}
			if warns != want {
				t.Errorf("%s, %v: a warning is reachable: %t, want %t", era.Name, waits, warns, want)
			}
			for _, f := range []model.RaceFault{model.RaceLoses, model.RaceUses} {
				if steps := rep.Shortest[f]; steps != nil {
					t.Errorf("%s, %v: %s: %q", era.Name, waits, f, steps)
				}
			}
			if rep.Interleavings.Sign() <= 0 || rep.States < 5 {
				t.Errorf("%s, %v: %d states, %s interleavings", era.Name, waits, rep.States, rep.Interleavings)
			}
		}
	}
}

func TestTheShortestInterleavingThatWarns(t *testing.T) {
	want := []string{
		"B begins the walk of its IPv4 pass",
		"B finds and kills IPv4 TIME_WAIT socket 1, of A",
	}
	got := exits(t, "6.18-tw-exclusive", model.Waiting{Exit: 0}).Shortest[model.RaceWarns]
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("%q is missing in %q", s, got)
		}
	}
	last := "A gives back its own 1, which is not the last: its death row counts 1"
	if len(got) == 0 || got[len(got)-1] != last {
		t.Errorf("the last step of %q is not %q", got, last)
	}
}

// The lock is about the IPv4 batch exit alone, so that it needs the one pass.
func TestTheLockDoesNotHelpWhereAnIPv6PassRunsOutsideIt(t *testing.T) {
	for kernel, warns := range map[string]bool{"6.18": false, "6.18-tw-one-pass": true, "6.18+tw-one-family": false} {
		rep := exits(t, kernel, model.Waiting{Exit: 0, Six: true})
		_, loses := rep.Shortest[model.RaceLoses]
		if _, got := rep.Shortest[model.RaceWarns]; got != (warns || loses) {
			t.Errorf("%s: a warning is reachable: %t, want %t", kernel, got, warns)
		}
		if d := cmp.Diff(kernel == "6.18+tw-one-family", loses); d != "" {
			t.Errorf("%s: a socket is lost (-want +got):\n%s", kernel, d)
		}
	}
}

func TestInterleavingsAreCounted(t *testing.T) {
	// Without a socket, as merged: each leaves out two walks, gives back and
	// ends, 4 steps: 8 over 4.
	if rep := exits(t, model.Eras()[2].Kernel); rep.Interleavings.Int64() != 70 || rep.States != 25 {
		t.Errorf("%s interleavings through %d states, want 70 through 25", rep.Interleavings, rep.States)
	}
}

func TestARaceHasTwoExitsAndAFewSockets(t *testing.T) {
	for _, waits := range [][]model.Waiting{{{Exit: 2}}, make([]model.Waiting, model.MaxWaiting+1)} {
		if _, err := model.NewExitRace(model.MustParse("6.18"), waits); err == nil {
			t.Errorf("%v is accepted", waits)
		}
	}
}
