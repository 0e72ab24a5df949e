package live

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// Stack is the running kernel as a [reusecheck.Stack], for one goroutine at a
// time, in the network namespace that the program was started in: a goroutine
// that is locked to a thread in another one is taken out of it. Close it when done.
type Stack struct{ engine }

// An engine does a Stack's work: in this process, or in a helper that has the
// rights this one lacks.
type engine interface {
	reusecheck.Stack
	Features() []Feature
	// Descriptor is the file descriptor of a live socket in this process,
	// for those who look into the kernel; false when there is none.
	Descriptor(reusecheck.ID) (int, bool)
	// Namespaces is how many network namespaces were made so far.
	Namespaces() int
	Close() error
}

// Open makes the running kernel a stack. Without the right to make a network
// namespace it runs a copy of the program inside a user namespace, which the
// program must allow by calling [Serve] first thing in main. The error is an
// [*Unavailable] where neither is possible.
func Open(o Options) (*Stack, error) {
	if o.UserNamespace {
		h, err := openHelper(o)
		if err != nil {
			return nil, err
		}
		return &Stack{h}, nil
	}
	r, err := openRunner(o)
	if err == nil {
		return &Stack{r}, nil
	}
	if !isPermission(err) {
		return nil, &Unavailable{What: "network namespace", Why: err.Error(), Do: "run as root"}
	}
	h, herr := openHelper(o)
	if herr != nil {
		return nil, herr
	}
	return &Stack{h}, nil
}

// Release is the running kernel's release, as uname -r gives it.
func Release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// A runner drives the kernel from this process.
type runner struct {
	options    Options
	uids       error      // why sockets cannot belong to several users
	base       int        // the user that sockets are made as when they say nothing
	own        *namespace // the trace's own
	ns         *namespace // where the step at hand happens
	namespaces int
	dirty      bool // the trace's own namespace is not to be used again

	socks  []*socket // by ID, nil for those that are not there
	groups int       // reuseport groups numbered so far
	ports  []uint16  // every port that the trace held or named
	auto   reusecheck.PortRange
	system reusecheck.System
	cfg    reusecheck.Config
	nets   map[reusecheck.ID]*namespace // system timewait: those that the trace made
	walks  *walkCounter                 // nil until the first exit
	// leaving are those that were let go of and may not be torn down yet: their
	// walks are not those of a later exit.
	leaving []*sign
}

func openRunner(o Options) (*runner, error) {
	r := &runner{options: o, base: unix.Geteuid(), uids: probeUIDs()}
	if err := r.renew(); err != nil {
		return nil, err
	}
	return r, nil
}

// renew replaces the namespace by a fresh one.
func (r *runner) renew() error {
	ns, err := newNamespace(nil)
	if err != nil {
		return err
	}
	r.letGo(r.own)
	r.own, r.ns, r.dirty = ns, ns, false
	r.namespaces++
	return nil
}

func (r *runner) Namespaces() int { return r.namespaces }

func (r *runner) Descriptor(id reusecheck.ID) (int, bool) {
	if id.IsOtherEnd() {
		if s := r.get(id.OtherEnd()); s != nil && s.other >= 0 && !s.foreign {
			return s.other, true
		}
		return -1, false
	}
	if s := r.get(id); s != nil && s.fd >= 0 {
		return s.fd, true
	}
	return -1, false
}

// Close drops every socket and the namespace.
func (r *runner) Close() error {
	err := r.drop()
	r.own.close()
	r.own, r.ns = nil, nil
	closeSigns(r.leaving)
	r.leaving = nil
	r.walks.close()
	r.walks = nil
	return err
}

// Reset drops every socket, and the namespace too unless it is shown to be
// empty and can be given the configuration.
func (r *runner) Reset(cfg reusecheck.Config) error {
	switch cfg.System {
	case "", reusecheck.TCP, reusecheck.UDP, reusecheck.TimeWaitExit:
	default:
		return &reusecheck.Unsupported{What: "the system " + string(cfg.System),
			Why: "the running kernel is driven for tcp, udp and timewait"}
	}
	if r.own == nil {
		return errors.New("the stack is closed")
	}
	r.system, r.cfg = cfg.System, cfg
	if err := r.drop(); err != nil {
		r.dirty = true
	}
	if !r.dirty {
		clean, err := r.empty()
		if err != nil {
			return err
		}
		r.dirty = !clean
	}
	r.ports = r.ports[:0]
	r.auto = cfg.Ports
	if r.auto.Size() == 0 {
		r.auto = reusecheck.DefaultPorts
	}
	if !r.dirty {
		err := r.own.configure(cfg)
		if u := new(reusecheck.Unsupported); err == nil || errors.As(err, &u) {
			return err
		}
	}
	if err := r.renew(); err != nil {
		return fmt.Errorf("a fresh network namespace: %w", err)
	}
	if err := r.own.configure(cfg); err != nil {
		r.dirty = true
		return err
	}
	return nil
}

// drop closes every socket by reset, ends every TIME_WAIT entry and lets go of
// the namespaces that the trace made.
func (r *runner) drop() error {
	var first error
	for i, s := range r.socks {
		if s == nil {
			continue
		}
		r.ns = s.ns
		if s.wait != nil {
			if err := r.ns.diag.destroy(*s.wait); err != nil && err != unix.ENOENT && err != unix.ESTALE && first == nil {
				first = err
			}
		} else {
			r.reset(s)
		}
		r.socks[i] = nil
	}
	r.socks, r.ns = r.socks[:0], r.own
	for _, n := range r.nets {
		r.letGo(n)
	}
	r.nets = nil
	return first
}

// empty shows that nothing of the last trace is left: no connection, listener
// or TIME_WAIT entry is counted in the namespace, and on every port that the
// trace held, or a socket may hold that was never told its port, a plain
// dual-stack socket, which every owner would refuse, can be bound to the wildcard.
func (r *runner) empty() (bool, error) {
	const patience = 50 * time.Millisecond // a fresh namespace takes no longer
	for end := time.Now().Add(min(r.options.wait(), patience)); ; pause() {
		n, err := r.ns.counted()
		if err != nil {
			return false, err
		}
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			return false, nil
		}
	}
	// A connection that just ended leaves its tables, and the counters, before it
	// leaves its port.
	const few = 16
	if r.auto.Size() <= few {
		for p := int(r.auto.Lo); p <= int(r.auto.Hi); p++ {
			r.hold(uint16(p))
		}
	}
	if len(r.ports) == 0 {
		return true, nil
	}
	clean := true
	err := r.ns.enter(func() error {
		for _, p := range r.ports {
			free, err := r.ns.free(p)
			if err != nil {
				return err
			}
			clean = clean && free
		}
		return nil
	})
	return clean, err
}

// counted is how many TCP sockets the namespace's own counters know: those in
// the connection and listener tables, and the TIME_WAIT entries.
func (n *namespace) counted() (int, error) {
	var buf [1024]byte
	total := 0
	for _, fd := range []int{n.sockstat, n.sockstat6} {
		if fd < 0 {
			continue
		}
		size, err := unix.Pread(fd, buf[:], 0)
		if err != nil {
			return 0, fmt.Errorf("read the namespace's socket counters: %w", err)
		}
		total += countersOf(string(buf[:size]))
	}
	return total, nil
}

// countersOf adds up inuse and tw in the TCP line of a sockstat file. The
// line's other numbers are the whole machine's.
func countersOf(text string) int {
	total := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "TCP: ") && !strings.HasPrefix(line, "TCP6: ") {
			continue
		}
		words := strings.Fields(line)
		for i := 1; i+1 < len(words); i += 2 {
			if words[i] == "inuse" || words[i] == "tw" {
				total += atoi(words[i+1])
			}
		}
	}
	return total
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 1 // not a number: count it, so that the namespace is not trusted
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// free says whether a plain socket on every address of both families can have
// the port. The thread must be in the namespace.
func (n *namespace) free(port uint16) (bool, error) {
	family, sa := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(port)})
	if n.noIPv6 != nil {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: int(port)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("open a socket to look for leftovers: %w", err)
	}
	defer unix.Close(fd)
	err = unix.Bind(fd, sa)
	if err == unix.EADDRINUSE {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("bind a socket to look for leftovers on port %d: %w", port, err)
	}
	return true, nil
}

// Do performs one operation.
func (r *runner) Do(op reusecheck.Op) (reusecheck.Result, error) {
	if r.own == nil {
		return reusecheck.Result{}, errors.New("the stack is closed")
	}
	var got reusecheck.Result
	var err error
	if op.Verb == reusecheck.VExit && r.system == reusecheck.TimeWaitExit {
		got, err = r.exit(op.Batch)
	} else {
		got.Answer, err = r.do(op)
	}
	if u := new(reusecheck.Unsupported); err != nil && !errors.As(err, &u) {
		r.dirty = true
	}
	return got, err
}

func (r *runner) do(op reusecheck.Op) (reusecheck.Answer, error) {
	r.ns = r.own
	if r.system == reusecheck.UDP {
		return r.doUDP(op)
	}
	switch op.Verb {
	case reusecheck.VSocket:
		return r.socket(op)
	case reusecheck.VNetns:
		if r.system == reusecheck.TimeWaitExit {
			return r.netns(op)
		}
		fallthrough
	case reusecheck.VSend, reusecheck.VExit:
		return reusecheck.Answer{}, &reusecheck.Unsupported{What: op.Verb.String(),
			Why: "it is not a step of this system"}
	}
	s := r.get(op.Sock)
	if s != nil {
		r.ns = s.ns
	}
	if s == nil || s.wait != nil && op.Verb != reusecheck.VExpire {
		return reusecheck.Fail(reusecheck.EBADF), nil
	}
	switch op.Verb {
	case reusecheck.VBind:
		return r.bind(s, op)
	case reusecheck.VListen:
		return r.listen(s)
	case reusecheck.VConnect:
		return r.connect(s, op)
	case reusecheck.VInherit:
		return r.inherit(s, op)
	case reusecheck.VSet:
		return r.set(s, op)
	case reusecheck.VShutdown:
		return r.shutdown(s)
	case reusecheck.VDisconnect:
		return r.disconnect(s)
	case reusecheck.VClose:
		r.reset(s)
		r.leaveQueue(s)
		r.forget(op.Sock)
		return reusecheck.Success, r.stops(s)
	case reusecheck.VExpire:
		return r.expire(s, op.Sock)
	case reusecheck.VTimeWait:
		return r.timewait(s)
	}
	return reusecheck.Answer{}, fmt.Errorf("%s: not an operation", op.Verb)
}

func (r *runner) get(id reusecheck.ID) *socket {
	if id < 0 || int(id) >= len(r.socks) {
		return nil
	}
	return r.socks[id]
}

func (r *runner) put(id reusecheck.ID, s *socket) {
	for int(id) >= len(r.socks) {
		r.socks = append(r.socks, nil)
	}
	s.id, s.ns = id, r.ns
	r.socks[id] = s
}

// here reports whether a socket is there, in the namespace of the step at hand.
func (r *runner) here(s *socket) bool { return s != nil && s.ns == r.ns }

func (r *runner) forget(id reusecheck.ID) { r.socks[id] = nil }

// hold takes note of a port that the trace uses.
func (r *runner) hold(port uint16) {
	for _, p := range r.ports {
		if p == port {
			return
		}
	}
	if port != 0 {
		r.ports = append(r.ports, port)
	}
}
