package bench

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
)

// Case is one line of the table that the 4-tuple hash was introduced with: a
// server that receives from many peers, with and without the table.
type Case struct {
	Name      string
	Connected bool // as many sockets as there are peers, each connected to one
	Table     bool // the kernel has the 4-tuple table
	Reported  int  // datagrams a second, one processor in full use
}

// Cases are the lines of the table, in its order.
var Cases = []Case{
	{"a", false, false, 1_825_176},
	{"b", false, true, 1_831_750},
	{"c", true, false, 290_860},
	{"d", true, true, 1_889_658},
}

// Peers is the number of connected sockets of the table.
const Peers = 500

// Datagrams is what one round of a case took.
type Datagrams struct {
	N        int
	Scored   int           // sockets, the most for one datagram
	Least    int           // and the fewest
	Compared int           // entries of the 4-tuple table, the most for one datagram
	Took     time.Duration // for all of them
}

// PerSecond is how many datagrams are delivered a second.
func (d Datagrams) PerSecond() float64 { return float64(d.N) / max(d.Took.Seconds(), 1e-9) }

// peer is the other end of connected socket i.
func peer(i int) netip.AddrPort {
	const each = 50_000 // ports of an address
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, byte(i / each), 1}), uint16(1024+i%each))
}

// Deliver does one round: n datagrams, from the peers in turn, for the sockets of
// one address and port. With connected sockets there is one for each peer, else
// one for all.
func Deliver(ctx context.Context, stack reusecheck.Stack, connected bool, peers, n int) (Datagrams, error) {
	d := Datagrams{N: n}
	if err := stack.Reset(reusecheck.Config{System: reusecheck.UDP}); err != nil {
		return d, err
	}
	server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	var setup []reusecheck.Op
	for i := range peers {
		id := reusecheck.ID(i)
		setup = append(setup, reusecheck.NewSocket(id, reusecheck.UDP4, reusecheck.ReusePort), reusecheck.Bind(id, server))
		if !connected {
			break
		}
		setup = append(setup, reusecheck.Connect(id, peer(i)))
	}
	for i, op := range setup {
		if i%256 == 0 && ctx.Err() != nil {
			return d, ctx.Err()
		}
		got, err := stack.Do(op)
		if err != nil {
			return d, err
		}
		if got.Kind != reusecheck.OK {
			return d, fmt.Errorf("%s is answered %s, not ok", op, got.Answer)
		}
	}
	sends := make([]reusecheck.Op, peers)
	for i := range sends {
		sends[i] = reusecheck.Send(peer(i), server, reusecheck.NoDev)
	}
	d.Least = 1 << 30
	// One datagram may score every socket, or none: an interrupt is looked for
	// after so many scores, which does not show in the time.
	every := max(1, 100_000/peers)
	start := time.Now()
	for i := range n {
		if i%every == 0 && ctx.Err() != nil {
			return d, ctx.Err()
		}
		got, err := stack.Do(sends[i%peers])
		if err != nil {
			return d, err
		}
		want := reusecheck.ID(0)
		if connected {
			want = reusecheck.ID(i % peers)
		}
		if got.Kind != reusecheck.Received || got.Who != want {
			return d, fmt.Errorf("%s is received by %s, not by %s", sends[i%peers], got.Answer, want)
		}
		d.Scored, d.Least = max(d.Scored, got.Visited), min(d.Least, got.Visited)
		if got.Lookup != nil {
			d.Compared = max(d.Compared, got.Lookup.Compared)
		}
	}
	d.Took = time.Since(start)
	return d, nil
}
