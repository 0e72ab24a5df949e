package reusecheck

import "testing"

func TestSmoke(t *testing.T) {
	x := MustParse("socket a tcp4\nbind a 127.0.0.1:1 => ok\n")
	t.Log(x.String())
}
