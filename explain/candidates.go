package explain

import (
	"fmt"
	"net/netip"
	"slices"

	rc "github.com/reusecheck/reusecheck"
)

// kind is what sort of change a candidate is. Of each sort the smallest is told.
type kind uint8

const (
	byOptions kind = iota
	byUser
	byDevice
	byAddress
	byOrder
	byListening
	byClosing
	byPort
)

// placed is a step of a changed trace, and the index that it had; -1 for a new one.
type placed struct {
	op  rc.Op
	was int
}

// candidate is one change of a trace.
type candidate struct {
	kind  kind
	size  int
	text  string
	lines []string
	steps []placed
	ports rc.PortRange
}

// changer makes the candidates for one refused step.
type changer struct {
	t       *rc.Trace
	at      int
	binder  rc.ID
	sockets []rc.ID // that are changed, the one that asks first; each has a socket step
	owners  []rc.ID // that are in the way, accepted sockets and TIME_WAIT ones included
	reason  rc.Reason
	all     []candidate
}

// candidates gives the changes to try, the smallest first.
func candidates(t *rc.Trace, w wayed) []candidate {
	c := &changer{t: t, at: w.step, binder: t.Steps[w.step].Op.Sock, owners: w.involved, reason: w.reason}
	for _, id := range w.involved {
		if r, ok := c.root(id); ok && !slices.Contains(c.sockets, r) {
			c.sockets = append(c.sockets, r)
		}
	}
	for _, s := range t.Steps[:w.step] { // then the others: a refused connect may be about a bystander
		if s.Op.Verb == rc.VSocket && len(c.sockets) < mostInvolved && !slices.Contains(c.sockets, s.Op.Sock) {
			c.sockets = append(c.sockets, s.Op.Sock)
		}
	}
	c.options()
	c.users()
	c.devices()
	c.addresses()
	c.order()
	c.listeners()
	c.closing()
	c.ports()
	c.together()
	slices.SortStableFunc(c.all, func(a, b candidate) int {
		if a.size != b.size {
			return a.size - b.size
		}
		return int(a.kind) - int(b.kind)
	})
	return c.all
}

func (c *changer) name(id rc.ID) string { return c.t.Name(id) }

// made is the index of the step that makes a socket, -1 when it is not before the
// refused one.
func (c *changer) made(id rc.ID) int {
	for i := range c.at {
		if op := &c.t.Steps[i].Op; op.Verb == rc.VSocket && op.Sock == id {
			return i
		}
	}
	return -1
}

// root is the socket whose options an owner has: its own, or its listener's.
func (c *changer) root(id rc.ID) (rc.ID, bool) {
	for range c.t.Steps { // a chain is no longer
		if c.made(id) >= 0 {
			return id, true
		}
		next := rc.NoID
		for i := range c.at {
			if op := &c.t.Steps[i].Op; op.Verb == rc.VInherit && op.Child == id {
				next = op.Sock
			}
		}
		if id = next; id == rc.NoID {
			break
		}
	}
	return rc.NoID, false
}

// steps is the trace as it is.
func (c *changer) steps() []placed {
	ps := make([]placed, len(c.t.Steps))
	for i := range ps {
		ps[i] = placed{c.t.Steps[i].Op, i}
	}
	return ps
}

// edit adds a candidate that changes steps in place.
func (c *changer) edit(k kind, size int, text string, change map[int]rc.Op) {
	ps := c.steps()
	var lines []string
	for i := range ps {
		if op, ok := change[i]; ok {
			ps[i].op = op
			lines = append(lines, op.Text(c.t.Name))
		}
	}
	c.all = append(c.all, candidate{kind: k, size: size, text: text, lines: lines, steps: ps})
}

func (c *changer) toggle(id rc.ID, o rc.Opt) {
	i := c.made(id)
	op := c.t.Steps[i].Op
	op.Opts ^= o
	text := fmt.Sprintf("set %s on %s", o, c.name(id)) + c.onlyOne(o)
	if op.Opts&o == 0 {
		text = fmt.Sprintf("do without %s on %s", o, c.name(id))
	}
	c.edit(byOptions, 1, text, map[int]rc.Op{i: op})
}

// options: one option more or less on one socket, more before less.
func (c *changer) options() {
	for _, add := range []bool{true, false} {
		for _, o := range []rc.Opt{rc.V6Only, rc.ReusePort, rc.ReuseAddr, rc.NoPort} {
			for _, id := range c.sockets {
				op := &c.t.Steps[c.made(id)].Op
				if o == rc.V6Only && !op.Family.Is6() || op.Opts.Has(o) == add {
					continue
				}
				c.toggle(id, o)
			}
		}
	}
}

// users: one of two sockets goes to the other's user.
func (c *changer) users() {
	for _, a := range c.sockets {
		for _, b := range c.sockets {
			i, j := c.made(a), c.made(b)
			if op := c.t.Steps[i].Op; op.UID != c.t.Steps[j].Op.UID {
				op.UID = c.t.Steps[j].Op.UID
				c.edit(byUser, 1, fmt.Sprintf("make %s as the user that makes %s", c.name(a), c.name(b)), map[int]rc.Op{i: op})
			}
		}
	}
}

// devices: another device, where devices play a part at all.
func (c *changer) devices() {
	if !slices.ContainsFunc(c.sockets, func(id rc.ID) bool { return c.t.Steps[c.made(id)].Op.Dev != rc.NoDev }) {
		return
	}
	for _, id := range c.sockets {
		i := c.made(id)
		for d := rc.NoDev; d <= rc.Dev2; d++ {
			if op := c.t.Steps[i].Op; op.Dev != d {
				op.Dev = d
				text := fmt.Sprintf("bind %s to the device %s", c.name(id), d)
				if d == rc.NoDev {
					text = fmt.Sprintf("bind %s to no device", c.name(id))
				}
				c.edit(byDevice, 1, text, map[int]rc.Op{i: op})
			}
		}
	}
}

// binds are the indexes of the bind steps of a socket, the refused step's own last.
func (c *changer) binds(id rc.ID) []int {
	var is []int
	for i := range c.at + 1 {
		if op := &c.t.Steps[i].Op; op.Verb == rc.VBind && op.Sock == id {
			is = append(is, i)
		}
	}
	return is
}

var specific = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3"),
	netip.MustParseAddr("::1"), netip.MustParseAddr("fd00::1")}

// addresses: one address instead of every one, or another one; for an address that
// the host does not have, every one; for one that the socket cannot have, one of its
// family.
func (c *changer) addresses() {
	for _, id := range c.sockets {
		family := c.t.Steps[c.made(id)].Op.Family
		for _, i := range c.binds(id) {
			op := c.t.Steps[i].Op
			was := op.Addr.Addr()
			to := specific
			if c.reason == rc.RefuseNotLocal {
				to = append([]netip.Addr{rc.Canonical(family, netip.Addr{})}, specific...)
			}
			for _, a := range to {
				alike := a.Is4() == was.Unmap().Is4() || was.IsUnspecified() || c.reason == rc.RefuseNotLocal || c.reason == rc.RefuseFamily
				if a == was || !alike || a.Is6() != family.Is6() {
					continue
				}
				op.Addr = netip.AddrPortFrom(a, op.Addr.Port())
				text := fmt.Sprintf("bind %s to another address, such as %s", c.name(id), a)
				switch {
				case a.IsUnspecified():
					text = fmt.Sprintf("bind %s to every address", c.name(id))
				case was.Unmap().IsUnspecified():
					text = fmt.Sprintf("bind %s to one address instead of every one, such as %s", c.name(id), a)
				}
				c.edit(byAddress, 1, text, map[int]rc.Op{i: op})
			}
		}
	}
}

// move puts the step at from behind (or before) the one at to.
func (c *changer) move(from, to int) []placed {
	ps := c.steps()
	x := ps[from]
	ps = slices.Delete(ps, from, from+1)
	return slices.Insert(ps, to, x)
}

// order: an earlier step after the refused one, or a later one before it.
func (c *changer) order() {
	say := func(i int) string { return c.t.Steps[i].Op.Text(c.t.Name) }
	for j := c.at - 1; j >= 0; j-- {
		switch c.t.Steps[j].Op.Verb {
		case rc.VListen, rc.VBind, rc.VConnect, rc.VSet, rc.VInherit:
			c.all = append(c.all, candidate{kind: byOrder, size: 1, steps: c.move(j, c.at),
				text: fmt.Sprintf("do %q after this step, not before it", say(j))})
		}
	}
	for j := c.at + 1; j < len(c.t.Steps); j++ {
		switch c.t.Steps[j].Op.Verb {
		case rc.VClose, rc.VSet, rc.VShutdown, rc.VDisconnect, rc.VExpire, rc.VListen:
			c.all = append(c.all, candidate{kind: byOrder, size: 1, steps: c.move(j, c.at),
				text: fmt.Sprintf("do %q before this step, not after it", say(j))})
		}
	}
}

// listeners: somebody who could listen does so before.
func (c *changer) listeners() {
	if c.reason != rc.RefuseNoListener {
		return
	}
	asks := c.t.Steps[c.at].Op.Verb == rc.VConnect // and is no listener then
	for _, id := range c.sockets {
		if len(c.binds(id)) > 0 && !(asks && id == c.binder) {
			c.insert(byListening, fmt.Sprintf("let %s listen before", c.name(id)), rc.Listen(id))
		}
	}
}

func (c *changer) insert(k kind, text string, op rc.Op) {
	ps := slices.Insert(c.steps(), c.at, placed{op, -1})
	c.all = append(c.all, candidate{kind: k, size: 1, text: text, steps: ps})
}

// closing: an owner goes before.
func (c *changer) closing() {
	for _, id := range c.owners {
		if id == c.binder || id < 0 {
			continue
		}
		waits := slices.ContainsFunc(c.t.Steps[:c.at], func(s rc.Step) bool { return s.Op.Verb == rc.VTimeWait && s.Op.Sock == id })
		if waits {
			c.insert(byClosing, fmt.Sprintf("wait until %s has left TIME_WAIT (a minute)", c.name(id)), rc.Expire(id))
			continue
		}
		c.insert(byClosing, fmt.Sprintf("close %s before", c.name(id)), rc.Close(id))
	}
}

// ports: another port, or a larger range for automatic ones.
func (c *changer) ports() {
	used := map[uint16]bool{0: true}
	for i := range c.t.Steps {
		used[c.t.Steps[i].Op.Addr.Port()] = true
	}
	for _, id := range c.sockets {
		for _, i := range c.binds(id) {
			op := c.t.Steps[i].Op
			p := op.Addr.Port()
			if p == 0 || p == 65535 {
				continue
			}
			for p++; used[p] && p < 65535; p++ {
			}
			op.Addr = netip.AddrPortFrom(op.Addr.Addr(), p)
			c.edit(byPort, 1, fmt.Sprintf("bind %s to another port", c.name(id)), map[int]rc.Op{i: op})
		}
	}
	for _, more := range []uint16{1, 3, 9} {
		if r := c.t.Config.Ports; r.Size() > 0 && r.Hi < 65535-more {
			r.Hi += more
			c.all = append(c.all, candidate{kind: byPort, size: 1, steps: c.steps(), ports: r,
				text: fmt.Sprintf("a larger range of automatic ports, such as %s", r)})
		}
	}
}

// together: what takes more than one change. The sharing options want to be on
// every socket, reuseport with one user.
func (c *changer) together() {
	for n := 2; n <= len(c.sockets); n++ {
		with := c.sockets[:n]
		c.both(rc.ReusePort, with, false)
		c.both(rc.ReuseAddr, with, false)
		c.both(rc.ReusePort, with, true)
	}
}

// both puts an option on every one of some sockets.
func (c *changer) both(o rc.Opt, with []rc.ID, oneUser bool) {
	change := map[int]rc.Op{}
	size, users := 0, false
	uid := c.t.Steps[c.made(with[0])].Op.UID
	for _, id := range with {
		i := c.made(id)
		op := c.t.Steps[i].Op
		if !op.Opts.Has(o) {
			op.Opts |= o
			size++
		}
		if oneUser && op.UID != uid {
			op.UID, users = uid, true
			size++
		}
		change[i] = op
	}
	if size < 2 || oneUser && !users {
		return
	}
	text := fmt.Sprintf("set %s on %s", o, c.list(with)) + c.onlyOne(o)
	if oneUser {
		text += ", made by one user"
	}
	c.edit(byOptions, size, text, change)
}

// onlyOne is what has to be known of sharing by reuseaddr.
func (c *changer) onlyOne(o rc.Opt) string {
	if o == rc.ReuseAddr && c.t.Config.System != rc.UDP && c.t.Steps[c.at].Op.Verb == rc.VBind {
		return " (a port shared by reuseaddr has one listener at most)"
	}
	return ""
}

func (c *changer) list(ids []rc.ID) string {
	var s []string
	for _, id := range ids {
		s = append(s, c.name(id))
	}
	return listed(s, len(s))
}
