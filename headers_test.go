package reusecheck

import (
	"errors"
	"testing"
)

func TestAHeaderThatIsFoundWrongLaterIsPlaced(t *testing.T) {
	tr, err := Parse("a.trace", []byte("title 6.18+no\nkernels 6.1,  6.18+no-way,6.18+no # 6.18+no\nsysctl a.bc 1\nsysctl a.b x\nsocket a tcp4\n"))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("nobody has it")
	for _, c := range []struct {
		wrong error
		want  string
	}{
		{&HeaderError{"kernels", "6.18+no", why}, "a.trace:2:27: header kernels: nobody has it\n    kernels 6.1,  6.18+no-way,6.18+no # 6.18+no\n                              ^"},
		{&HeaderError{"sysctl", "a.b", why}, "a.trace:4:8: header sysctl a.b: nobody has it\n    sysctl a.b x\n           ^"},
		{&HeaderError{"sysctl", "x.y", why}, "header sysctl x.y: nobody has it"},
		{why, "nobody has it"},
	} {
		if got := tr.Placed(c.wrong).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got := new(Trace).Placed(&HeaderError{"kernels", "6.1", why}).Error(); got != "header kernels: nobody has it" {
		t.Errorf("of a trace that was not read: %s", got)
	}
}
