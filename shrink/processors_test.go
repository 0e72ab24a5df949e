package shrink_test

import (
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

func TestProcessorsGoWhereTheyAreNeedless(t *testing.T) {
	noisy := rc.MustParse(`
socket a tcp4 reuseport cpu=3
socket b tcp4 reuseport
socket c tcp4 cpu=1
bind a 127.0.0.2:40000
bind c 127.0.0.1:40000
bind b 127.0.0.2:40000
set a cpu=none
listen a
set b cpu=7
listen b
inherit a d 127.0.0.2 cpu=3
inherit a e 127.0.0.2 cpu=7
`)
	const want = `socket a tcp4 reuseport
socket b tcp4 reuseport cpu=0
bind a 127.0.0.1:40000
listen a
bind b 127.0.0.1:40000
listen b
inherit a c 127.0.0.1 cpu=0
`
	m := spec.NewMachine(spec.TCP, model.MustParse("6.18-group-incoming-cpu").New())
	v := violation(t, m, noisy, "complete")
	got, _ := shrink.Run(noisy, func(c *rc.Trace) bool { return m.Shows(c, v) >= 0 }, shrink.Options{})
	if got.String() != want {
		t.Errorf("ends in\n%s\nnot in\n%s", got, want)
	}
}

func TestProcessorsOfDatagramsGoWhereTheyAreNeedless(t *testing.T) {
	noisy := rc.MustParse(`
system udp
socket a udp4 reuseport cpu=2
socket b udp4 reuseport
socket c udp4 cpu=1
bind c 127.0.0.1:40000
bind a 127.0.0.2:40000
bind b 127.0.0.2:40000
send 127.0.0.1:9 -> 127.0.0.2:40000 cpu=1
set a cpu=1
set b cpu=7
send 127.0.0.1:9 -> 127.0.0.2:40000 dev=d1 cpu=7
`)
	const want = `system   udp

socket a udp4 reuseport
socket b udp4 reuseport cpu=0
bind a 127.0.0.1:40000
bind b 127.0.0.1:40000
send 127.0.0.1:40000 -> 127.0.0.1:40000
`
	m := spec.NewMachine(spec.UDP, model.MustParse("6.18-udp-group-incoming-cpu").NewUDP())
	v := violation(t, m, noisy, "lookup")
	got, _ := shrink.Run(noisy, func(c *rc.Trace) bool { return m.Shows(c, v) >= 0 }, shrink.Options{})
	if got.String() != want {
		t.Errorf("ends in\n%s\nnot in\n%s", got, want)
	}
}
