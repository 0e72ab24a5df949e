// Package live makes the running Linux kernel a [reusecheck.Stack].
//
// Every trace runs in a network namespace that the package makes for it and
// that nothing else can reach: never in the one the program was started in,
// and only over its loopback and its own pair of devices. The namespace is used
// again for the next trace once it is shown to be empty, and replaced otherwise.
// It has no name in the file system, so it is gone when the process is, however
// that ends.
//
// The rules of a world, where the trace language leaves them open:
//
//   - lo is up; 127.0.0.0/8, ::1, fd00::1 and fd00::2 are its addresses. The veth
//     ends d1 and d2 exist and are down: a socket can be bound to them, and a
//     connection through them is ENETUNREACH at once.
//
//   - a connection arrives on lo. A listener bound to d1 or d2 gets none, also
//     when it would be redirected to it.
//
//   - a datagram on d1 or d2 is a frame that the other end sends, for which both
//     are up that long. It is not taken to its socket early (udp_early_demux),
//     which nothing on the loopback is.
//
//   - tcp_tw_reuse is 0 unless the trace sets it, so that an automatic port
//     does not depend on how many seconds ago a TIME_WAIT entry was made.
//
//   - an inherited connection comes from 127.64.0.0/10 or fd00::c1, from a
//     port below 1024 that the trace has not named.
//
//   - expire is the destroy request of sock_diag (what ss -K does).
//
//   - an inherit at another port than the listener's is a BPF sk_lookup program
//     that hands the connection to the listener.
//
//   - a member of a reuseport group, which the kernel picks by a hash, is met by
//     connecting again from another port until it is the one named. Any other
//     listener that takes the connection is the answer, and it is reset.
//
// Where the machine cannot do a step, the error is a [reusecheck.Unsupported]
// with the name of what is missing; so it is where the kernel leaves a step in
// the middle (a SYN sent nowhere), which ends the trace but not the run. Where
// the package cannot run at all, Open's error is an [Unavailable].
package live

import (
	"fmt"
	"time"
)

// Options say how a kernel is driven. The zero value is the usual way.
type Options struct {
	// UserNamespace asks for the way that needs no privileges even where the
	// process has them.
	UserNamespace bool
	// Wait bounds every wait for the kernel; zero is DefaultWait. A
	// connection's part of it is 0.7 s at most: less than a lost SYN takes.
	Wait time.Duration
}

// DefaultWait is how long a step may take before it counts as failed. On
// loopback nothing takes a thousandth of it.
const DefaultWait = 2 * time.Second

func (o Options) wait() time.Duration {
	if o.Wait > 0 {
		return o.Wait
	}
	return DefaultWait
}

// Unavailable is Open's error where the running kernel cannot be used as a
// stack at all. A program exits 3 with its text.
type Unavailable struct {
	What string // what is missing: "Linux", "a network namespace"
	Why  string
	Do   string // what the user can do about it, "" for nothing
}

func (u *Unavailable) Error() string {
	s := fmt.Sprintf("the running kernel cannot be tested: no %s: %s", u.What, u.Why)
	if u.Do != "" {
		s += "; " + u.Do
	}
	return s
}

// Feature is one thing that testing the running kernel needs, and whether this
// machine has it.
type Feature struct {
	Name string // "root", "network namespace", "veth", "processors", "socket lookup", "socket destroy"
	OK   bool
	Why  string // why not, or how it is provided
}

func (f Feature) String() string {
	state := "yes"
	if !f.OK {
		state = "no"
	}
	if f.Why == "" {
		return f.Name + ": " + state
	}
	return f.Name + ": " + state + ", " + f.Why
}
