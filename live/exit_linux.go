package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// How the teardown of a namespace is followed. A file under /proc/sys/net that was
// opened in a namespace does not keep it alive, and reads ENOENT as soon as the
// subsystem that it belongs to has left the namespace. One worker for the whole
// machine goes through the namespaces that are queued, a batch, and subsystems leave
// a batch in the reverse order of their registration: that of net.core, which was
// there before TCP, when TCP's purge of the batch is over.
const goesAfterPurge = "/proc/sys/net/core/somaxconn"

// teardownWait bounds the wait for a teardown: some 30 ms when nobody else makes
// the worker work.
const teardownWait = 30 * time.Second

// childTable is the setting of a namespace that gives its children tables of their own.
const childTable = "tcp_child_ehash_entries"

// netns makes a namespace with the settings of the trace: a child of its own.
func (r *runner) netns(op reusecheck.Op) (reusecheck.Answer, error) {
	if op.Sock < 0 || r.nets[op.Sock] != nil || r.get(op.Sock) != nil {
		return reusecheck.Answer{}, fmt.Errorf("netns %s: not a name that a trace can give now", op.Sock)
	}
	n, err := r.child(op.Table)
	if lacks := new(reusecheck.Unsupported); errors.As(err, &lacks) {
		return reusecheck.Answer{}, lacks
	}
	if err != nil {
		return reusecheck.Answer{}, fmt.Errorf("netns: %w", err)
	}
	cfg := r.cfg
	cfg.Sysctl = slices.DeleteFunc(slices.Clone(cfg.Sysctl), func(s reusecheck.Sysctl) bool {
		return strings.HasSuffix(s.Name, childTable) // the trace's own has it, whose children these are
	})
	if err := n.configure(cfg); err != nil {
		n.close()
		return reusecheck.Answer{}, err
	}
	if r.nets == nil {
		r.nets = map[reusecheck.ID]*namespace{}
	}
	r.nets[op.Sock] = n
	r.namespaces++
	return reusecheck.Success, nil
}

// child makes a namespace. Its table of connections is what the setting of its maker
// says at that moment.
func (r *runner) child(table reusecheck.ConnTable) (n *namespace, err error) {
	if table == reusecheck.TableAsSet {
		return newNamespace(r.own)
	}
	s, err := r.own.setting("net.ipv4." + childTable)
	if err != nil {
		return nil, err
	}
	size, was := "0", s.current
	if table == reusecheck.OwnTable {
		if size = was; atoi(was) == 0 {
			size = strconv.Itoa(reusecheck.OwnTableSize)
		}
	}
	if err := s.set(size); err != nil {
		return nil, err
	}
	n, err = newNamespace(r.own)
	if back := s.set(was); err == nil && back != nil {
		n.close()
		return nil, back
	}
	return n, err
}

// exit closes what is open in the namespaces, lets go of them together, and
// returns when the purge is over. What the kernel did is counted where it lets us;
// that the TIME_WAIT sockets of the others are still there is seen everywhere.
func (r *runner) exit(batch []reusecheck.ID) (reusecheck.Result, error) {
	var going []*namespace
	for _, id := range batch {
		n := r.nets[id]
		if n == nil || slices.Contains(going, n) {
			return reusecheck.Result{Answer: reusecheck.Fail(reusecheck.EBADF)}, nil
		}
		going = append(going, n)
	}
	if r.walks == nil {
		r.walks = newWalkCounter()
	}
	r.closeAll(going)
	for _, id := range batch {
		delete(r.nets, id)
	}
	done, err := r.tearDown(going)
	got := reusecheck.Result{Answer: reusecheck.Answer{Kind: reusecheck.Exited, Walks: done.walks, Left: done.left}}
	if err == nil {
		got.HasWaiting = true
		got.Waiting, err = r.waiting()
	}
	if lacks, ok := err.(*reusecheck.Unsupported); ok {
		return got, lacks
	}
	if err != nil {
		return got, fmt.Errorf("exit: %w", err)
	}
	return got, nil
}

// closeAll closes the sockets of namespaces, so that TIME_WAIT sockets are all
// that is left in them.
func (r *runner) closeAll(going []*namespace) {
	for i, s := range r.socks {
		if s == nil || !slices.Contains(going, s.ns) {
			continue
		}
		if r.ns = s.ns; s.wait == nil {
			r.reset(s)
		}
		r.socks[i] = nil
	}
	r.ns = r.own
}

// waiting are the trace's TIME_WAIT sockets that are there, by sock_diag in the
// namespace of each.
func (r *runner) waiting() (ids []reusecheck.ID, err error) {
	for id, s := range r.socks {
		if s == nil || s.wait == nil {
			continue
		}
		e, found, err := s.ns.diag.find(*s.wait)
		if err != nil {
			return nil, err
		}
		if !found || e.cookie != s.wait.cookie { // one with the same 4-tuple may stand in front of it
			if found, err = s.ns.diag.stands(*s.wait); err != nil {
				return nil, err
			}
		}
		if found {
			ids = append(ids, reusecheck.ID(id))
		}
	}
	return ids, nil
}

// torn is what is known of a teardown; uncounted what is not.
type torn struct{ walks, left int32 }

// tearDown lets go of namespaces and waits until they are purged. Any error but an
// Unsupported is the package's own.
func (r *runner) tearDown(going []*namespace) (done torn, err error) {
	done = torn{reusecheck.Uncounted, reusecheck.Uncounted}
	defer func() {
		for _, n := range going {
			n.close()
		}
	}()
	var gone []*sign
	defer func() { closeSigns(gone) }()
	waits := 0
	for _, n := range going {
		s, err := n.sign()
		if err != nil {
			return done, err
		}
		gone = append(gone, s)
		tw, err := n.timeWaits()
		if err != nil {
			return done, err
		}
		waits += tw
		// Some references go only after a while, when readers are done with what
		// was closed; what is closed now is out of the way by the time it counts.
		n.closeInside()
	}
	if len(going) > 1 || r.walks.counts() {
		if err := r.awaitLeaving(); err != nil {
			return done, err
		}
		if err := r.occupy(); err != nil {
			return done, err
		}
	}
	before, err := r.walks.all()
	if err != nil {
		return done, err
	}
	for _, n := range going {
		n.close()
	}
	for _, s := range gone {
		if err := r.await(s); err != nil {
			return done, err
		}
	}
	return r.counted(before.Batches+1, waits)
}

// counted is what the kernel did for a batch that had so many TIME_WAIT sockets, if
// it was the last: while the worker was busy with the one before, the namespaces
// gathered, and are the next unless the kernel split them.
func (r *runner) counted(batch uint64, waits int) (done torn, err error) {
	done = torn{reusecheck.Uncounted, reusecheck.Uncounted}
	now, err := r.walks.all()
	if err != nil || !r.walks.counts() || now.Batches != batch {
		return done, err
	}
	did, err := r.walks.of(batch)
	if err != nil {
		return done, err
	}
	return torn{int32(did.Walks), int32(max(0, waits-int(did.Ended)))}, nil
}

// letGo closes a namespace that no exit was asked of. Where walks are counted it
// leaves a sign, since its teardown may come any time later.
func (r *runner) letGo(n *namespace) {
	if n != nil && r.walks.counts() {
		r.leaving = slices.DeleteFunc(r.leaving, func(s *sign) bool {
			gone, err := s.gone()
			if gone = gone || err != nil; gone {
				s.close()
			}
			return gone
		})
		if s, err := n.sign(); err == nil {
			r.leaving = append(r.leaving, s)
		}
	}
	n.close()
}

// awaitLeaving waits until what was let go of is purged.
func (r *runner) awaitLeaving() error {
	defer func() {
		closeSigns(r.leaving)
		r.leaving = nil
	}()
	for _, s := range r.leaving {
		if err := r.await(s); err != nil {
			return err
		}
	}
	return nil
}

// occupy gives the worker a namespace to tear down, and returns when it has purged
// it and has yet to wait for readers: what is let go of now is in its next batch,
// and none of it is purged along with this one.
func (r *runner) occupy() error {
	n := &namespace{ns: -1, home: -1, sockstat: -1, sockstat6: -1}
	defer n.close()
	if err := onFreshThread(func() error { return n.unshare(nil) }); err != nil {
		return err
	}
	s, err := n.sign()
	if err != nil {
		return err
	}
	defer s.close()
	n.close()
	return r.await(s)
}

// timeWaits is how many TIME_WAIT sockets the namespace counts, of both families.
func (n *namespace) timeWaits() (int, error) {
	var buf [1024]byte
	size, err := unix.Pread(n.sockstat, buf[:], 0)
	if err != nil {
		return 0, fmt.Errorf("read the namespace's socket counters: %w", err)
	}
	for line := range strings.Lines(string(buf[:size])) {
		words := strings.Fields(line)
		for i := 1; i+1 < len(words) && words[0] == "TCP:"; i += 2 {
			if words[i] == "tw" {
				return atoi(words[i+1]), nil
			}
		}
	}
	return 0, fmt.Errorf("the namespace's socket counters do not tell of TIME_WAIT sockets: %q", buf[:size])
}

// A sign is a setting of a namespace that is gone when its subsystem is.
type sign struct{ fd int }

// sign opens the setting in the namespace.
func (n *namespace) sign() (s *sign, err error) {
	err = n.enter(func() (err error) {
		s, err = openSign()
		return err
	})
	return s, err
}

// openSign opens the setting of the thread's namespace.
func openSign() (*sign, error) {
	fd, err := unix.Open(goesAfterPurge, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &reusecheck.Unsupported{What: "the end of a network namespace",
			Why: fmt.Sprintf("its teardown is followed by %s, which cannot be opened here: %v", goesAfterPurge, err)}
	}
	return &sign{fd}, nil
}

// gone reports whether the subsystem has left the namespace.
func (s *sign) gone() (bool, error) {
	var buf [32]byte
	switch _, err := unix.Pread(s.fd, buf[:], 0); err {
	case nil:
		return false, nil
	case unix.ENOENT:
		return true, nil
	default:
		return false, fmt.Errorf("look whether a namespace is torn down: %w", err)
	}
}

func (s *sign) close() { unix.Close(s.fd) }

func closeSigns(all []*sign) {
	for _, s := range all {
		s.close()
	}
}

// await waits until a sign is gone; false when it is not in time.
func (s *sign) await(ctx context.Context) (bool, error) {
	for end := time.Now().Add(teardownWait); ; pause() {
		gone, err := s.gone()
		switch {
		case gone || err != nil:
			return gone, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		case time.Now().After(end):
			return false, nil
		}
	}
}

func (r *runner) await(s *sign) error {
	gone, err := s.await(context.Background())
	if err == nil && !gone {
		err = r.stuck("the end of a network namespace", "it was not torn down within %s", teardownWait)
	}
	return err
}
