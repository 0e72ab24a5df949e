// Package bench measures what the project claims: the reporters' table of binds
// on a model and on a kernel, the recall of the history's bugs, and how surely
// shrinking ends in the same trace. Its README has the numbers, each beside the
// command that made it.
package bench

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
)

// Row is one line of the reporters' table: sockets with one reuse option bound to
// one port, on 127.0.0.1 only or on 127.0.0.1 and 127.0.0.2 in turn.
type Row struct {
	Option    reusecheck.Opt
	Alternate bool
	// Before and After are the reporters' own times for 16,000 sockets, means
	// of nine rounds in a KVM guest, without and with the fix.
	Before, After time.Duration
}

// Sockets is the number of sockets of the reporters' table.
const Sockets = 16_000

func ms(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }

// Rows are the lines of the table, in its order.
var Rows = []Row{
	{reusecheck.ReuseAddr, false, ms(4256.956), ms(20.004)},
	{reusecheck.ReuseAddr, true, ms(2476.914), ms(19.983)},
	{reusecheck.ReusePort, false, ms(20.600), ms(19.557)},
	{reusecheck.ReusePort, true, ms(2491.294), ms(19.830)},
}

func (r Row) String() string {
	if r.Alternate {
		return r.Option.String() + " alternate"
	}
	return r.Option.String() + " same"
}

// Unfixed is how many owners n binds visit while no first owner is recognised:
// bind i visits the owners of its own address, for as long as neither field of
// the cache answers (bind buckets of Linux 6.8 to 6.18).
func (r Row) Unfixed(n int) int {
	switch {
	case r.Option == reusecheck.ReusePort && !r.Alternate:
		return 0 // STRICT, keyed to the one address
	case !r.Alternate:
		return n * (n - 1) / 2
	}
	half, odd := n/2, n%2
	return half*(half-1) + odd*half
}

// Binds is what one round of a row took.
type Binds struct {
	Visited int           // owners, all binds together
	Took    time.Duration // of the binds alone; the sockets stay open
}

// port is the port that everything is bound to.
const port = 40000

// Bind does one round of a row with n sockets.
func Bind(ctx context.Context, stack reusecheck.Stack, r Row, n int) (Binds, error) {
	if err := stack.Reset(reusecheck.Config{System: reusecheck.TCP}); err != nil {
		return Binds{}, err
	}
	ops := make([]reusecheck.Op, n)
	addrs := r.addrs()
	for i := range ops {
		id := reusecheck.ID(i)
		if _, err := stack.Do(reusecheck.NewSocket(id, reusecheck.TCP4, r.Option)); err != nil {
			return Binds{}, err
		}
		ops[i] = reusecheck.Bind(id, netip.AddrPortFrom(addrs[i%len(addrs)], port))
	}
	var b Binds
	start := time.Now()
	for i := range ops {
		if i%256 == 0 && ctx.Err() != nil {
			return Binds{}, ctx.Err()
		}
		got, err := stack.Do(ops[i])
		if err != nil {
			return Binds{}, err
		}
		if got.Kind != reusecheck.OK {
			return Binds{}, fmt.Errorf("%s, socket %d: bind is answered %s, not ok", r, i+1, got.Answer)
		}
		b.Visited += got.Visited
	}
	b.Took = time.Since(start)
	return b, nil
}
