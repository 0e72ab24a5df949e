package oracle

import (
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// The marks of a listener that a connection could go to. A listener of the
// address itself is preferred to a wildcard one; then one that is bound to the
// device, one of IPv4 for an IPv4 connection, and one that asked for the
// connection's processor, to one that is not. Between a device-bound dual-stack
// listener and an IPv4 one without a device nothing is documented: either is
// right, and so it is with the processor against these two.
//
// Sources: the man pages say where a listener receives, not who wins; that is
// fixed by the kernel's selftests reuseport_addr_any (address before wildcard)
// and reuseport_dualstack (IPv4 before dual-stack), and for the device by the
// report of history row 26. SO_INCOMING_CPU is documented in socket(7): the flow
// is to be handled by a listener on the processor that it comes in on.
const (
	markFamily = 1 << iota
	markDevice
	markCPU
	markExact
	markSets // how many sets of marks there are
)

// beats reports whether a listener with marks a is preferred to one with b.
func beats(a, b int) bool {
	if a&markExact != b&markExact {
		return a&markExact != 0
	}
	return a != b && a&b == b
}

// takers are the listeners that could take a connection, by their marks.
type takers struct {
	count [markSets]int
	first [markSets]int32 // one of them
	// mixed says that they differ in what an accepted socket takes from them.
	mixed [markSets]bool
	on    reusecheck.CPU // the processor that the connection arrives on
	// total counts them all, and wanting those that asked for some processor.
	total, wanting int
}

// takersOf looks at every owner of the port that a connection over the loopback
// device goes to, on a processor or on one that nobody asked for.
func (t *TCP) takersOf(to netip.AddrPort, on reusecheck.CPU) (ts takers) {
	dst := to.Addr().Unmap()
	ts.on = on
	for i := t.firstOf(to.Port()); i != none; i = t.socks[i].next {
		l := &t.socks[i]
		if l.State != reusecheck.Listening || !takes(&l.Socket, dst) {
			continue
		}
		marks := marksOf(&l.Socket, dst)
		if on != reusecheck.NoCPU && l.CPU == on && !l.heard {
			marks |= markCPU
		}
		ts.total++
		if l.CPU != reusecheck.NoCPU {
			ts.wanting++
		}
		if ts.count[marks]++; ts.count[marks] == 1 {
			ts.first[marks] = i
		} else if !inheritAlike(&l.Socket, &t.socks[ts.first[marks]].Socket) {
			ts.mixed[marks] = true
		}
	}
	return ts
}

// takes reports whether listener l receives what arrives for dst by loopback.
func takes(l *reusecheck.Socket, dst netip.Addr) bool {
	there := reachOf(0, dst)
	own := reachOf(l.Opts, l.Local.Addr())
	return own.meets(&there) && devicesMeet(l.Dev, reusecheck.DevLo)
}

func marksOf(l *reusecheck.Socket, dst netip.Addr) (marks int) {
	if l.Local.Addr().Unmap() == dst {
		marks |= markExact
	}
	if l.Dev != reusecheck.NoDev {
		marks |= markDevice
	}
	if dst.Is4() && !l.Family.Is6() {
		marks |= markFamily
	}
	return marks
}

// inheritAlike reports whether listeners of the same marks, whose devices are the
// same, accept sockets that are owners alike.
func inheritAlike(a, b *reusecheck.Socket) bool { return a.UID == b.UID && a.Opts == b.Opts }

// best reports whether listeners with these marks are there and none beats them.
func (ts *takers) best(marks int) bool {
	return ts.count[marks] > 0 && ts.unbeaten(marks)
}

func (ts *takers) unbeaten(marks int) bool {
	for other, n := range ts.count {
		if n > 0 && beats(other, marks) {
			return false
		}
	}
	return true
}

// bestIs reports whether l is, or may be, among the best: a packet may have put
// it on the connection's processor.
func (ts *takers) bestIs(l *member, to netip.AddrPort) bool {
	dst := to.Addr()
	marks := marksOf(&l.Socket, dst)
	if ts.on != reusecheck.NoCPU && (l.CPU == ts.on || l.heard) {
		marks |= markCPU
	}
	return l.State == reusecheck.Listening && l.Local.Port() == to.Port() && takes(&l.Socket, dst) && ts.unbeaten(marks)
}

// pick is one of the best listeners, none when nobody listens; sure says that
// whichever takes the connection, the accepted socket is the same. It is not said
// where one of several asked for a processor and nobody says which it is.
func (ts *takers) pick() (slot int32, sure bool) {
	slot, sure = none, ts.on != reusecheck.NoCPU || ts.wanting == 0 || ts.total == 1
	for marks := range ts.count {
		switch {
		case !ts.best(marks):
		case slot == none:
			slot, sure = ts.first[marks], !ts.mixed[marks]
		default:
			sure = false // their devices differ, or neither would be best
		}
	}
	return slot, sure
}

// judgeInherit judges who takes a connection that arrives at addr. Nobody's
// reuse is asked: an accepted socket shares its listener's port by nature.
func (t *TCP) judgeInherit(l *member, op reusecheck.Op, got reusecheck.Answer) Verdict {
	addr := op.Addr
	switch {
	case l.State != reusecheck.Listening:
		return t.impossible(l, reusecheck.RefuseState, reusecheck.ECONNREFUSED, got)
	case l.Dev == reusecheck.Dev1 || l.Dev == reusecheck.Dev2:
		return open(got, openDevice)
	}
	number := l.Local.Port()
	if p := addr.Port(); p != 0 && p != number {
		// A transparent proxy redirects to the listener: no look-up by
		// address decides, and what redirects is not the stack's.
		return t.granted(l, got)
	}
	dst := reusecheck.Canonical(l.Family, addr.Addr()).Unmap()
	if dst.IsUnspecified() || !isLocal(dst) {
		return open(got, openRoute)
	}
	return t.judgeArrived(l, netip.AddrPortFrom(dst, number), op.CPU, got)
}

// judgeArrived judges who takes a connection on its processor; where nobody says
// which that is, what is right on any one of them is right.
func (t *TCP) judgeArrived(l *member, to netip.AddrPort, on reusecheck.CPU, got reusecheck.Answer) Verdict {
	v := t.judgeTaken(l, to, on, got)
	if v.Agrees || on != reusecheck.NoCPU {
		return v
	}
	for i := t.firstOf(to.Port()); i != none; i = t.socks[i].next {
		if cpu := t.socks[i].CPU; cpu != reusecheck.NoCPU {
			if other := t.judgeTaken(l, to, cpu, got); other.Agrees {
				return other
			}
		}
	}
	return v
}

// judgeTaken holds the answer against the best listeners: l if it is one of
// them, else another.
func (t *TCP) judgeTaken(l *member, to netip.AddrPort, on reusecheck.CPU, got reusecheck.Answer) Verdict {
	ts := t.takersOf(to, on)
	winner, _ := ts.pick()
	named := ts.bestIs(l, to)
	want := reusecheck.Fail(reusecheck.ECONNREFUSED)
	switch {
	case named:
		want = reusecheck.Success
	case winner != none:
		want = reusecheck.Answer{Kind: reusecheck.Received, Who: t.socks[winner].ID}
	}
	switch {
	case got.Kind == reusecheck.OK && named:
		return agree(got)
	case got.Kind == reusecheck.Received:
		if who := t.find(got.Who); who != nil && ts.bestIs(who, to) {
			return agree(got)
		}
	case got.Kind == reusecheck.Failed && (winner == none || !aboutPort(got) && got.Errno != reusecheck.ECONNREFUSED):
		return agree(got)
	case got.Kind == reusecheck.Nobody && winner == none:
		return agree(got)
	}
	return t.disagree(want)
}
