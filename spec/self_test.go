package spec_test

import (
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// drawing is a stack whose automatic ports differ from one run to the next.
type drawing struct {
	reusecheck.Stack
	runs uint16
}

func (d *drawing) Reset(cfg reusecheck.Config) error {
	d.runs++
	port := 50000 + d.runs%7
	cfg.Ports = reusecheck.PortRange{Lo: port, Hi: port}
	return d.Stack.Reset(cfg)
}

func TestAFlipIsSeenAlsoWhereAutomaticPortsDiffer(t *testing.T) {
	tr, err := reusecheck.Parse("flip", []byte(`
socket a tcp4 reuseaddr
socket b tcp4 reuseaddr reuseport
socket c tcp4 reuseport
socket d tcp4
bind d 127.0.0.1:0 => ok
bind a 127.0.0.1:40000 => ok
bind b 127.0.0.1:40000 => ok
bind c 127.0.0.1:40000 => ok
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Parse("6.18")
	if err != nil {
		t.Fatal(err)
	}
	self := &spec.Self{System: spec.TCP, Kernel: &drawing{Stack: p.New()}}
	flip, err := self.Shows(tr)
	if err != nil || flip == nil {
		t.Fatalf("got %v, %v; want a flip of the last bind", flip, err)
	}
	if first, again := flip.Answers(); first != reusecheck.Success || again != reusecheck.Fail(reusecheck.EADDRINUSE) {
		t.Errorf("answered %v, then %v", first, again)
	}
}
