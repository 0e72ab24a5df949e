package bench

import (
	"testing"

	"github.com/reusecheck/reusecheck"
)

func TestSocketLinesAreNoSteps(t *testing.T) {
	tr, err := reusecheck.Parse("a.trace", []byte("socket a tcp4\nlisten a\ninherit a c 127.0.0.1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := Steps(tr); n != 2 {
		t.Errorf("%d steps, want 2: the child has a name and no line", n)
	}
}
