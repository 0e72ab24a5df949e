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

func TestAFlipIsSeenInANamespace(t *testing.T) {
	tr, err := reusecheck.Parse("flip", []byte(`
system timewait
netns m
netns n
socket a tcp4 reuseaddr netns=n
socket b tcp4 reuseaddr reuseport netns=n
socket c tcp4 reuseport netns=n
socket d tcp4 netns=m
bind d 127.0.0.1:40000 => ok
bind a 127.0.0.1:40000 => ok
exit m => ok walks=0 left=0
bind b 127.0.0.1:40000 => ok
bind c 127.0.0.1:40000 => ok
`))
	if err != nil {
		t.Fatal(err)
	}
	kernel := func() reusecheck.Stack { return &naive{} }
	self := &spec.Self{System: spec.TimeWait, Kernel: kernel()}
	flip, err := self.Shows(tr)
	if err != nil || flip == nil {
		t.Fatalf("got %v, %v; want a flip of the last bind", flip, err)
	}
	if err := flip.Control.Validate(); err != nil || flip.How != "reset" {
		t.Errorf("%s: %v\n%s", flip.How, err, flip.Control)
	}
	if reset := flip.Control.Steps[len(flip.Control.Steps)-3].Op; !reset.HasNet || reset.Net != 1 {
		t.Errorf("the reset is in another namespace: %s", reset)
	}
}

func TestWhatIsLeftWithoutANamespaceOrASocketIsATrace(t *testing.T) {
	tr, err := reusecheck.Parse("whole", []byte(`
system timewait
netns m
netns n
socket d tcp4 netns=m
socket a tcp4 netns=n
inherit a c 127.0.0.1
bind d 127.0.0.1:40000
exit m
bind a 127.0.0.1:40000
`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[reusecheck.ID]int{0: 4, 2: 6, 4: 7} {
		c := spec.Without(tr, id)
		if err := c.Validate(); err != nil || len(c.Steps) != want {
			t.Errorf("without %s: %v, %d steps, not %d\n%s", tr.Name(id), err, len(c.Steps), want, c)
		}
	}
	if c := spec.Without(tr, 1); c != nil {
		t.Errorf("the last step's socket stays without its namespace:\n%s", c)
	}
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
