package bench

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Shells and EachShell are the test that the skip was introduced with: so many
// shells at once make and leave so many namespaces each, without a connection.
const (
	Shells    = 40
	EachShell = 100
)

// Unshares is what tearing down a number of namespaces took.
type Unshares struct {
	Namespaces int
	Batches    int
	Walks      int // of the shared table
	Entries    int // of it that were stepped over, each once a walk
}

// Slots is how many slots of a table of the given size were stepped over, however
// empty.
func (u Unshares) Slots(table int) int { return u.Walks * table }

// Unshare makes namespaces and tears them down in batches, as evenly as they go.
// Each has so many TIME_WAIT sockets, and so many stand in a namespace that stays.
func Unshare(ctx context.Context, stack reusecheck.Stack, namespaces, batches, each, staying int) (Unshares, error) {
	u := Unshares{Namespaces: namespaces, Batches: batches}
	if batches < 1 || batches > namespaces {
		return u, fmt.Errorf("%d batches of %d namespaces: want from 1 to %d", batches, namespaces, namespaces)
	}
	if err := stack.Reset(reusecheck.Config{System: reusecheck.TimeWaitExit}); err != nil {
		return u, err
	}
	g := unsharer{stack: stack}
	g.waiting(reusecheck.NoID, staying)
	for b := range batches {
		if ctx.Err() != nil {
			return u, ctx.Err()
		}
		var batch []reusecheck.ID
		for range (b+1)*namespaces/batches - b*namespaces/batches {
			id := g.next()
			g.do(reusecheck.NewNetns(id))
			g.waiting(id, each)
			batch = append(batch, id)
		}
		got := g.do(reusecheck.Exit(batch...))
		if g.err != nil {
			return u, g.err
		}
		if got.Left != 0 {
			return u, fmt.Errorf("an exit left %d TIME_WAIT sockets", got.Left)
		}
		u.Walks += int(got.Walks)
		u.Entries += got.Visited
	}
	return u, nil
}

// unsharer makes the steps; the first error stays.
type unsharer struct {
	stack reusecheck.Stack
	ids   reusecheck.ID
	err   error
}

func (g *unsharer) next() reusecheck.ID { g.ids++; return g.ids - 1 }

func (g *unsharer) do(op reusecheck.Op) reusecheck.Result {
	if g.err != nil {
		return reusecheck.Result{}
	}
	got, err := g.stack.Do(op)
	if err == nil && got.Kind == reusecheck.Failed {
		err = fmt.Errorf("%s is answered %s", op, got.Answer)
	}
	g.err = err
	return got
}

// waiting leaves TIME_WAIT sockets in a namespace.
func (g *unsharer) waiting(net reusecheck.ID, n int) {
	if n == 0 {
		return
	}
	socket := func() reusecheck.ID {
		op := reusecheck.NewSocket(g.next(), reusecheck.TCP4, 0)
		if net != reusecheck.NoID {
			op.HasNet, op.Net = true, net
		}
		g.do(op)
		return op.Sock
	}
	server := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	l := socket()
	g.do(reusecheck.Bind(l, server))
	g.do(reusecheck.Listen(l))
	for i := range n {
		c := socket()
		g.do(reusecheck.Bind(c, peer(i)))
		g.do(reusecheck.Connect(c, server))
		g.do(reusecheck.LeaveTimeWait(c))
	}
}
