package oracle_test

import (
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// The oracle follows a history by the stack's answers and says where one of them
// is wrong, and because of whom.
func ExampleTCP() {
	trace := reusecheck.MustParse(`
socket a tcp4 reuseaddr
socket b tcp4 reuseaddr reuseport
socket c tcp4 reuseport
bind a 127.0.0.1:40000 => ok
bind b 127.0.0.1:40000 => ok
bind c 127.0.0.1:40000 => ok
`)
	o := oracle.New()
	o.Reset(trace.Config)
	for _, step := range trace.Steps {
		got := step.Want
		if step.Op.Verb == reusecheck.VSocket {
			got = reusecheck.Success
		}
		v := o.Judge(step.Op, got)
		if !v.Agrees {
			fmt.Printf("%s: should be %v\n", step.Text(trace.Name), v.Want)
			for _, c := range v.Conflicts {
				fmt.Printf("  because of %s: %v\n", trace.Name(c.Owner), c.Reason)
			}
		}
		o.Follow(step.Op, got)
	}
	// Output:
	// bind c 127.0.0.1:40000 => ok: should be EADDRINUSE
	//   because of a: the owner lacks reuseport
}

// The relation alone, for sockets that are known from elsewhere.
func ExampleConflicts() {
	owners := []reusecheck.Socket{
		{ID: 0, Family: reusecheck.TCP6, Opts: reusecheck.ReuseAddr, State: reusecheck.Listening,
			Local: netip.MustParseAddrPort("[::]:80")},
		{ID: 1, Family: reusecheck.TCP6, Local: netip.MustParseAddrPort("[::1]:80")},
	}
	binder := reusecheck.Socket{ID: 2, Family: reusecheck.TCP4, Opts: reusecheck.ReuseAddr}
	req := &oracle.Request{Binder: &binder, Addr: netip.MustParseAddr("127.0.0.1"), Port: 80}
	for _, c := range oracle.Conflicts(owners, req, nil) {
		fmt.Printf("%v: %v\n", c.Owner, c.Reason)
	}
	// Output:
	// a: the owner listens, and reuseaddr does not pass a listener
}
