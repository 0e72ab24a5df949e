package corpus_test

import (
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck/model"
)

func TestOnlyTheKernelsThatSkipHaveNoWalkForNothing(t *testing.T) {
	for _, e := range model.Eras() {
		needless := false
		for _, tr := range under(t, "timewait/seeds/unshare-no-walk.trace") {
			needless = len(shown(t, tr, e.Kernel)) > 0
		}
		if skips := strings.Contains(e.Name, "skip as") || e.Name == "own tables always"; needless == skips {
			t.Errorf("%s (%s): walks for nothing: %t", e.Name, e.Kernel, needless)
		}
	}
}
