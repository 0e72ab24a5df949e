package bench

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/reusecheck/reusecheck/live"
)

// Growth is how long a row takes on a real kernel, for several numbers of sockets.
type Growth struct {
	Sockets []int
	Took    []time.Duration // the median round of each
}

// MeasureKernel times a row on the running kernel with n sockets and with a
// half, a quarter and an eighth of that.
func MeasureKernel(ctx context.Context, r Row, n, rounds int) (Growth, error) {
	var g Growth
	for _, part := range []int{1, 2, 4, 8} { // the most first: it is what may not be possible
		if n/part < 1 {
			break
		}
		took := make([]time.Duration, rounds)
		for i := range took {
			var err error
			if took[i], err = live.TimeBinds(ctx, r.Option, r.addrs(), port, n/part); err != nil {
				return g, err
			}
		}
		slices.Sort(took)
		g.Sockets, g.Took = append(g.Sockets, n/part), append(g.Took, took[rounds/2])
	}
	slices.Reverse(g.Sockets)
	slices.Reverse(g.Took)
	return g, nil
}

func (r Row) addrs() []netip.Addr {
	as := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	if r.Alternate {
		as = append(as, netip.MustParseAddr("127.0.0.2"))
	}
	return as
}

// Exponent is the e of the best fit of time to sockets to the power of e: about
// 1 for binds that look at no owner, about 2 for those that look at all.
func (g Growth) Exponent() float64 {
	var sx, sy, sxx, sxy float64
	n := float64(len(g.Sockets))
	for i := range g.Sockets {
		x, y := math.Log(float64(g.Sockets[i])), math.Log(float64(max(1, g.Took[i])))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return math.NaN()
}

// Shape is the exponent in a word.
func (g Growth) Shape() string {
	switch e := g.Exponent(); {
	case math.IsNaN(e):
		return "unknown"
	case e < 1.5:
		return "linear"
	}
	return "quadratic"
}
