package shrink

import (
	"cmp"

	rc "github.com/reusecheck/reusecheck"
)

// Compare tells which of two traces is simpler: negative when a is. It is a
// total order on the operations and the configuration; names, title, stated
// answers and the like do not count. See the package's comment.
func Compare(a, b *rc.Trace) int {
	x, y := fromTrace(a), fromTrace(b)
	x.weigh()
	y.weigh()
	return compare(&x, &y)
}

// Points 1 to 13 of the order, as indices of weight.
const (
	wSettings = iota
	wRange
	wSteps
	wSockets
	wAttrs
	wSix
	wVerbs
	wKinds
	wAddrs
	wPorts
	wUsers
	wDevs
	wCPUs
	weights
)

type weight [weights]int

func (d *draft) weigh() {
	w := weight{}
	if d.ports != (rc.PortRange{}) {
		w[wSettings]++
		w[wRange] = d.ports.Size()
		w[wPorts] += rank(ranges, d.ports)
	}
	w[wSettings] += len(d.sysctl)
	for i := range d.ops {
		w.op(&d.ops[i])
	}
	d.w = w
}

func (w *weight) attr(kind int) { w[wAttrs]++; w[wKinds] += kind }

func (w *weight) op(op *rc.Op) {
	if _, ok := op.Defines(); ok {
		w[wSockets]++
	}
	switch op.Verb {
	case rc.VNetns:
		if op.Table != rc.TableAsSet {
			w.attr(kindTable)
		}
		return
	case rc.VSocket:
		w.socket(op)
		return
	case rc.VSet:
		_, kinds := optKinds(op.Opts)
		w[wKinds] += kinds
		switch op.Field {
		case rc.SetUID:
			w[wKinds] += kindUID
		case rc.SetDev:
			w[wKinds] += kindDev
		case rc.SetCPU:
			w[wKinds] += kindCPU
		}
	}
	if op.Unaccepted {
		w.attr(kindUnaccepted)
	}
	if (op.Verb == rc.VInherit || op.Verb == rc.VSend) && op.CPU != rc.NoCPU {
		w.attr(kindCPU)
	}
	w[wSteps]++
	w[wCPUs] += rank(cpus, op.CPU)
	w[wVerbs] += rank(verbs, op.Verb)
	w[wUsers] += rank(users, op.UID)
	w[wDevs] += rank(devs, op.Dev)
	if op.Addr.IsValid() {
		w[wAddrs] += rank(addrs, op.Addr.Addr())
		w[wPorts] += portRank(op, op.Addr.Port())
	}
	if op.From.IsValid() {
		w[wAddrs] += rank(addrs, op.From.Addr())
		w[wPorts] += rank(ports, op.From.Port())
	}
}

// portRank is a port's rank in op: an inherit's port 0 is the listener's own,
// which is the simplest there is.
func portRank(op *rc.Op, p uint16) int {
	if op.Verb != rc.VInherit {
		return rank(ports, p)
	}
	if p == 0 {
		return 0
	}
	return 1 + rank(ports, p)
}

func (w *weight) socket(op *rc.Op) {
	if op.Family.Is6() {
		w[wSix]++
	}
	n, kinds := optKinds(op.Opts)
	w[wAttrs] += n
	w[wKinds] += kinds
	if op.UID != 0 {
		w.attr(kindUID)
		w[wUsers] += rank(users, op.UID)
	}
	if op.Dev != rc.NoDev {
		w.attr(kindDev)
		w[wDevs] += rank(devs, op.Dev)
	}
	if op.CPU != rc.NoCPU {
		w.attr(kindCPU)
		w[wCPUs] += rank(cpus, op.CPU)
	}
	if op.HasNet {
		w.attr(kindNet)
	}
	if op.Range != (rc.PortRange{}) {
		w.attr(kindRange)
		w[wPorts] += rank(ranges, op.Range)
	}
}

// compare is Compare on weighed drafts.
func compare(a, b *draft) int {
	for i := range a.w {
		if c := cmp.Compare(a.w[i], b.w[i]); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(len(a.ops), len(b.ops)); c != 0 {
		return c
	}
	for i := range a.ops {
		if c := compareShape(&a.ops[i], &b.ops[i]); c != 0 {
			return c
		}
	}
	for i := range a.ops {
		if c := compareValues(&a.ops[i], &b.ops[i]); c != 0 {
			return c
		}
	}
	return compareConfig(a, b)
}

// compareShape orders steps by who they are about and what they do. Socket
// lines come first, so that a canonical trace is its own least permutation.
func compareShape(a, b *rc.Op) int {
	if a.Sock == b.Sock && a.Verb == b.Verb && a.Child == b.Child {
		return 0
	}
	creates := func(op *rc.Op) int {
		if op.Verb == rc.VSocket || op.Verb == rc.VNetns {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(creates(a), creates(b)),
		cmp.Compare(a.Sock, b.Sock),
		cmp.Compare(rank(verbs, a.Verb), rank(verbs, b.Verb)),
		cmp.Compare(a.Child, b.Child),
	)
}

// compareValues looks for a value's place in the order only where two differ,
// which is nearly nowhere in candidates of one trace.
func compareValues(a, b *rc.Op) int {
	if c := cmp.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if a.Opts != b.Opts {
		na, ka := optKinds(a.Opts)
		nb, kb := optKinds(b.Opts)
		return cmp.Or(cmp.Compare(na, nb), cmp.Compare(ka, kb), cmp.Compare(a.Opts, b.Opts))
	}
	if c := cmp.Or(
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(flag(a.On), flag(b.On)),
		cmp.Compare(flag(a.Unaccepted), flag(b.Unaccepted)),
		compareRanked(users, a.UID, b.UID),
		compareRanked(devs, a.Dev, b.Dev),
		compareRanked(cpus, a.CPU, b.CPU),
		cmp.Compare(a.Table, b.Table),
		cmp.Compare(flag(a.HasNet), flag(b.HasNet)),
		cmp.Compare(a.Net, b.Net),
		compareRanges(a.Range, b.Range),
	); c != 0 {
		return c
	}
	if a.Addr != b.Addr {
		return cmp.Or(
			cmp.Compare(rank(addrs, a.Addr.Addr()), rank(addrs, b.Addr.Addr())),
			cmp.Compare(portRank(a, a.Addr.Port()), portRank(b, b.Addr.Port())),
			a.Addr.Compare(b.Addr),
		)
	}
	if a.From != b.From {
		return cmp.Or(
			cmp.Compare(rank(addrs, a.From.Addr()), rank(addrs, b.From.Addr())),
			cmp.Compare(rank(ports, a.From.Port()), rank(ports, b.From.Port())),
			a.From.Compare(b.From),
		)
	}
	return cmp.Or(cmp.Compare(len(a.Batch), len(b.Batch)), compareBatches(a.Batch, b.Batch))
}

// compareRanked compares by the place in the list, values that have none by size.
func compareRanked[T cmp.Ordered](list []T, a, b T) int {
	if a == b {
		return 0
	}
	return cmp.Or(cmp.Compare(rank(list, a), rank(list, b)), cmp.Compare(a, b))
}

func compareBatches(a, b []rc.ID) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

func compareRanges(a, b rc.PortRange) int {
	if a == b {
		return 0
	}
	return cmp.Or(
		cmp.Compare(rank(ranges, a), rank(ranges, b)),
		cmp.Compare(a.Size(), b.Size()),
		cmp.Compare(a.Lo, b.Lo),
	)
}

func compareConfig(a, b *draft) int {
	if c := cmp.Or(compareRanges(a.ports, b.ports), cmp.Compare(len(a.sysctl), len(b.sysctl))); c != 0 {
		return c
	}
	for i := range a.sysctl {
		x, y := a.sysctl[i], b.sysctl[i]
		if c := cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Value, y.Value)); c != 0 {
			return c
		}
	}
	return 0
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
