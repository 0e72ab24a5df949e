package explain

import (
	"fmt"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

func (w *teller) connect() {
	op, got := &w.o.Op, &w.o.Got
	name := w.t.Name(op.Sock)
	b := w.o.Socket(op.Sock)
	if b == nil {
		w.say("%s is not there.", name)
		return
	}
	switch {
	case b.Family.IsUDP() && b.Owner():
		w.say("%s gets the peer %s: from now on it hears nobody else.", name, op.Addr)
	case b.Family.IsUDP():
		w.say("%s has no port, so the kernel picks one, and gives it the peer %s.", name, op.Addr)
	case b.Owner():
		w.say("%s connects to %s from its port %d. Only the 4-tuple, the addresses and ports of both ends, must be free.", name, op.Addr, b.Local.Port())
	default:
		w.say("%s connects to %s. It has no port yet, so one of %s is looked for: a free one, or one whose owners all came by connect "+
			"(the cache then says -1 twice) with the 4-tuple free.", name, op.Addr, w.rangeOf(b))
	}
	if got.Kind == rc.OK {
		if got.Port != 0 {
			s := fmt.Sprintf("The kernel picks %d", got.Port)
			if got.Reason == rc.AdmitShared {
				s += ", shared with connections to elsewhere"
			}
			w.say("%s.", s)
		}
		w.movedTo(op.Sock, b)
		return
	}
	o := w.o.Socket(got.Decider)
	oName := "an owner"
	if o != nil {
		oName = w.t.Name(o.ID)
	}
	w.out.Why = rule(got.Reason, b, name, o, oName)
	if got.Reason == rc.RefuseExplicit {
		w.out.Why = "a port in use is open to connect only while its cache says that all its owners came by connect, and here it says otherwise: " +
			"somebody bound the port by number"
		w.out.Why += w.binderOf(b)
	}
	w.say("It is refused: %s.", w.out.Why)
}

// binderOf names a socket in the range of an automatic port that did not come by connect.
func (w *teller) binderOf(b *rc.Socket) string {
	for i := range w.o.Before {
		if s := &w.o.Before[i]; w.rangeOf(b).Contains(s.Local.Port()) && !s.ByConnect {
			return fmt.Sprintf(" (%s, on %s, is there)", w.t.Name(s.ID), s.Local)
		}
	}
	return ", and the cache remembers it though it has left"
}

// movedTo says which address a socket got by connecting.
func (w *teller) movedTo(id rc.ID, was *rc.Socket) {
	for i := range w.o.After {
		if s := &w.o.After[i]; s.ID == id && s.Local.Addr() != was.Local.Addr() && s.Local.IsValid() {
			w.say("Its local address is now %s.", s.Local.Addr())
		}
	}
}

func (w *teller) inherit() {
	op, got := &w.o.Op, &w.o.Got
	l, c := w.t.Name(op.Sock), w.t.Name(op.Child)
	at, on := op.Addr.Addr().String(), ""
	if op.CPU != rc.NoCPU {
		on = " on processor " + op.CPU.String()
	}
	switch listener := w.o.Socket(op.Sock); {
	case got.Kind == rc.OK && op.Addr.Port() != 0 && listener != nil && op.Addr.Port() != listener.Local.Port():
		w.say("A connection to %s is redirected to %s, which accepts it as %s. Nobody is asked: %s becomes an owner of port %d, with the options of "+
			"its listener.", op.Addr, l, c, c, op.Addr.Port())
		w.cacheAfter()
	case got.Kind == rc.OK:
		w.say("A connection to %s arrives%s and %s accepts it as %s. Nobody is asked: an accepted socket shares the port of its listener "+
			"and takes over its options.", at, on, l, c)
	case got.Kind == rc.Received:
		why := ""
		if w.o.Verdict.Agrees {
			why = ": that listener fits it at least as well"
		}
		w.say("A connection to %s arrives%s, and %s gets it, not %s%s.", at, on, w.t.Name(got.Who), l, why)
	default:
		w.out.Why = rule(got.Reason, nil, l, nil, "")
		w.say("A connection to %s is refused: %s.", at, w.out.Why)
	}
}

// change tells of the steps that ask no owner.
func (w *teller) change() {
	op, got := &w.o.Op, &w.o.Got
	name := w.t.Name(op.Sock)
	if got.Kind == rc.Failed {
		w.out.Why = rule(got.Reason, nil, name, nil, "")
		w.say("It fails: %s.", w.out.Why)
		return
	}
	was := w.o.Socket(op.Sock)
	switch op.Verb {
	case rc.VSet:
		w.say("%s.", setting(op, name))
		if was != nil && was.Owner() && !was.Family.IsUDP() {
			w.say("Whoever looks at %s reads what it has at that moment, but no cache learns of the change.", name)
		}
	case rc.VShutdown:
		w.say("%s stops.", name)
	case rc.VDisconnect:
		w.say("%s is no longer connected.", name)
	case rc.VClose:
		w.say("%s is closed and leaves nothing behind.", name)
	case rc.VTimeWait:
		w.say("%s closes its connection first, so a TIME_WAIT socket stays in its place, with its address and options and without a user.", name)
	case rc.VExpire:
		w.say("The TIME_WAIT socket of %s ends.", name)
	case rc.VNetns:
		table := ""
		if op.Table != rc.TableAsSet {
			table = fmt.Sprintf(", with its connections in %s", map[rc.ConnTable]string{rc.OwnTable: "a table of its own", rc.SharedTable: "the table that all share"}[op.Table])
		}
		w.say("%s is a new network namespace%s.", name, table)
	case rc.VExit:
		who, leave := "namespace %s is torn down", "it leaves"
		if len(op.Batch) > 1 {
			who, leave = "namespaces %s are torn down in one batch", "they leave"
		}
		w.say("The "+who+": for what "+leave+" in TIME_WAIT the kernel %s, and %s there.",
			listed(w.names(op.Batch), most), walks(got.Walks), stays(got.Left))
	default:
		w.say("The answer is %s.", w.out.Result)
	}
	if was != nil && was.Owner() && op.Verb != rc.VSet {
		w.left(was.Local.Port())
	}
}

// setting says what a set changes.
func setting(op *rc.Op, name string) string {
	switch {
	case op.Field == rc.SetUID:
		return fmt.Sprintf("%s goes to user %d", name, op.UID)
	case op.Field == rc.SetDev && op.Dev == rc.NoDev:
		return name + " is bound to no device any more"
	case op.Field == rc.SetDev:
		return fmt.Sprintf("%s is bound to the device %s", name, op.Dev)
	case op.Field == rc.SetCPU && op.CPU == rc.NoCPU:
		return name + " wants the traffic of no processor any more"
	case op.Field == rc.SetCPU:
		return fmt.Sprintf("%s wants the traffic of processor %s", name, op.CPU)
	case op.On:
		return fmt.Sprintf("%s gets %s", name, op.Opts)
	}
	return fmt.Sprintf("%s loses %s", name, op.Opts)
}

func walks(n int32) string {
	switch n {
	case 0:
		return "goes through no table"
	case 1:
		return "goes through its table once"
	}
	return fmt.Sprintf("goes through tables %d times", n)
}

func stays(n int32) string {
	if n == 0 {
		return "nothing stays"
	}
	return fmt.Sprintf("%d of them stay", n)
}

// left says who still has a port, and what its cache says of that.
func (w *teller) left(port uint16) {
	n := 0
	for i := range w.o.After {
		if s := &w.o.After[i]; s.Local.Port() == port && w.netOf(s.ID) == w.netOf(w.o.Op.Sock) {
			n++
		}
	}
	switch {
	case n == 0:
		w.say("Port %d is free.", port)
	default:
		w.say("Port %d still has %s.", port, plural(n, "owner"))
		w.cacheAfter()
	}
}

// send tells who fits a datagram and how well, and who got it.
func (w *teller) send() {
	op, got := &w.o.Op, &w.o.Got
	d := oracle.DatagramOf(*op)
	on := ""
	if op.CPU != rc.NoCPU {
		on = ", on processor " + op.CPU.String()
	}
	w.say("A datagram from %s arrives for %s on %s%s.", op.From, op.Addr, d.Dev, on)
	var fits, misses []string
	best := oracle.Fit(0)
	var second oracle.Fit
	for i := range w.o.Before {
		s := &w.o.Before[i]
		if s.Local.Port() != op.Addr.Port() {
			continue
		}
		w.out.Owners = append(w.out.Owners, w.t.Name(s.ID))
		f := oracle.FitOf(s, &d) // as it asked; what it received since is not told
		if f == 0 {
			misses = append(misses, fmt.Sprintf("%s (%s)", w.t.Name(s.ID), about(s)))
			continue
		}
		fits = append(fits, fmt.Sprintf("%s (%s; it names %s)", w.t.Name(s.ID), about(s), f))
		if f.Better(best) {
			best, second = f, best
		} else if f.Better(second) && f != best {
			second = f
		}
	}
	if len(fits) > 0 {
		w.say("Of the port's sockets it fits %s.", listed(fits, most))
	}
	if len(misses) > 0 {
		w.say("It does not fit %s.", listed(misses, most))
	}
	switch {
	case got.Kind == rc.Nobody:
		w.say("Nobody gets it: the kernel finds no socket that fits.")
		return
	case got.Kind != rc.Received:
		w.out.Why = rule(got.Reason, nil, "", nil, "")
		w.say("It is not sent: %s.", w.out.Why)
		return
	}
	who := w.t.Name(got.Who)
	switch {
	case got.Reason == rc.TakeEarly:
		w.say("%s gets it: it is the first socket of the address slot and connected to the sender, and early demultiplexing asks no other.", who)
	case got.Reason == rc.TakeTuple:
		w.say("%s gets it: the 4-tuple table of connected sockets has it under these very addresses and ports, so no socket is scored.", who)
	case got.Reason == rc.TakeGroup:
		w.say("%s gets it: its reuseport group fits best, and a hash of the addresses and ports picks one of %s.", who, listed(w.names(got.Lookup.Could), most))
	case w.o.Verdict.Agrees && second != 0 && best.Better(second):
		w.say("%s gets it: the kernel scored %s, and of all that it fits %s is the best: %s.", who, plural(got.Visited, "socket"), who, best.Beats(second))
	default:
		w.say("%s gets it: the kernel scored %s, and %s.", who, plural(got.Visited, "socket"), got.Reason)
	}
}

// judge says what the oracle makes of the step.
func (w *teller) judge(found []spec.Violation) {
	o := w.o
	v := &o.Verdict
	switch {
	case v.Open != "":
		w.say("The oracle does not judge this: %s.", v.Open)
	case !v.Agrees:
		w.diverges(found)
	case o.Got.Kind == rc.Failed && o.Got.Reason >= rc.RefuseNotShared && o.Got.Reason <= rc.RefuseExhausted:
		w.alsoInTheWay()
	case o.Got.Kind == rc.OK && len(w.out.Owners) > 0 && o.Op.Verb != rc.VSend:
		w.say("%s agrees.", w.oracle())
	}
	for _, x := range found {
		switch {
		case !v.Agrees || !w.first(x.Property):
		case w.costs(x):
			w.say("(A cost and no error: as the owners are, the cache could say fastreuse %d, fastreuseport %s.)",
				o.GhostAfter.FastReuse, strings.TrimSuffix(portField(o.GhostAfter), fmt.Sprintf(" of user %d", o.GhostAfter.UID)))
		default:
			w.say("Beside the answer, %s does not hold: %s", x.Property, spec.Sentence(o, x))
		}
	}
}

// costs reports whether a violation is of TCP's cache and only makes binds slower:
// the other systems' property of that name is about tables, in words of its own.
func (w *teller) costs(x spec.Violation) bool {
	return x.Property == spec.Precise.Name && (w.t.Config.System == "" || w.t.Config.System == rc.TCP)
}

// oracle says once what the oracle is.
func (w *teller) oracle() string {
	if w.first("oracle") {
		return "The oracle, which looks at every owner,"
	}
	return "The oracle"
}

// diverges tells of an answer that is not the oracle's.
func (w *teller) diverges(found []spec.Violation) {
	w.say("This is wrong. %s says %s.", w.oracle(), w.out.Oracle)
	for _, x := range found {
		if !w.costs(x) {
			w.say("%s", spec.Sentence(w.o, x))
		}
	}
}

// alsoInTheWay names the owners beside the one that decided.
func (w *teller) alsoInTheWay() {
	var others []string
	b := w.o.Socket(w.o.Op.Sock)
	for _, c := range w.o.Verdict.Conflicts {
		o := w.o.Socket(c.Owner)
		if c.Owner != w.o.Got.Decider && o != nil && b != nil && c.Owner != b.ID {
			others = append(others, fmt.Sprintf("%s (%s)", w.t.Name(c.Owner), rule(c.Reason, b, w.t.Name(b.ID), o, w.t.Name(c.Owner))))
		}
	}
	s := w.oracle() + " agrees"
	if len(others) > 0 {
		verb := "is"
		if len(others) > 1 {
			verb = "are"
		}
		s += fmt.Sprintf("; in the way %s also %s", verb, strings.TrimSuffix(listed(others, most), "."))
	}
	w.say("%s.", s)
}
