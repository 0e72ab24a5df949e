package bench_test

import (
	"context"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/model"
)

func unshare(t *testing.T, kernel string, batches, each, staying int) bench.Unshares {
	t.Helper()
	s, err := model.MustParse(kernel).Stack(reusecheck.TimeWaitExit)
	if err != nil {
		t.Fatal(err)
	}
	u, err := bench.Unshare(context.Background(), s, 400, batches, each, staying)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestTheWalksOfTheUnshareTestAreTwoABatchNoneAndOne(t *testing.T) {
	perBatch := []int{2, 0, 0, 0, 2, 1, 1} // in the order of the eras
	withSockets := []int{2, 2, 2, 2, 2, 1, 1}
	for e, era := range model.Eras() {
		for _, batches := range []int{1, 3, 400} {
			if u := unshare(t, era.Kernel, batches, 0, 5); u.Walks != batches*perBatch[e] || u.Entries != 5*u.Walks {
				t.Errorf("%s, %d batches: %d walks over %d entries, want %d walks over 5 each", era.Name, batches, u.Walks, u.Entries, batches*perBatch[e])
			}
		}
		if u := unshare(t, era.Kernel, 3, 1, 0); u.Walks != 3*withSockets[e] {
			t.Errorf("%s, with TIME_WAIT sockets: %d walks, want %d", era.Name, u.Walks, 3*withSockets[e])
		}
	}
}

func TestTheSlotsSteppedOverGrowWithTheTableAndTheWalks(t *testing.T) {
	if got := unshare(t, "5.15", 3, 0, 0).Slots(1 << 18); got != 6<<18 {
		t.Errorf("%d slots, want six times the table", got)
	}
}

func TestBatchesHaveAtLeastOneNamespace(t *testing.T) {
	s, err := model.MustParse("6.18").Stack(reusecheck.TimeWaitExit)
	if err != nil {
		t.Fatal(err)
	}
	for _, batches := range []int{0, 5} {
		if _, err := bench.Unshare(context.Background(), s, 4, batches, 0, 0); err == nil {
			t.Errorf("%d batches of 4 namespaces are accepted", batches)
		}
	}
}
