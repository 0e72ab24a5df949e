package reusecheck_test

import (
	"testing"

	"github.com/reusecheck/reusecheck"
)

func TestTheNearestWordIsTheOneMeant(t *testing.T) {
	words := []string{"sound", "complete", "precise", "structure"}
	for word, want := range map[string]string{"sond": "sound", "pricese": "precise", "STRUCTURE": "structure", "bind": "", "": ""} {
		if got := reusecheck.Nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, not %q", word, got, want)
		}
	}
}
