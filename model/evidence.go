package model

import (
	"net/netip"

	rc "github.com/reusecheck/reusecheck"
)

// trail notes the owners that the looks of a step step over. It is off unless
// somebody wants to tell of it: the loops that it listens to are measured.
type trail struct {
	watched bool
	looked  []rc.ID
}

// Watch lets the stack note which owners it looks at, from the next step on.
func (t *trail) Watch() { t.watched = true }

// Looked are the owners that were looked at since it was last asked, in order,
// the asking socket included when it is one. It is valid until the next step.
func (t *trail) Looked() []rc.ID {
	ids := t.looked
	t.looked = t.looked[len(t.looked):]
	return ids
}

func (t *trail) note(id rc.ID) {
	if t.watched {
		t.looked = append(t.looked, id)
	}
}

// noteBucket notes the first n owners of an address bucket.
func (t *TCP) noteBucket(b int32, n int) {
	for i := t.addrs[b].owners; i >= 0 && n > 0; i, n = t.owns[i].next, n-1 {
		t.note(t.socks[i].id)
	}
}

// AddrBucket is one address bucket of a port, with its owners, newest first.
type AddrBucket struct {
	Addr   netip.Addr
	Owners []rc.ID
}

// AddrBuckets are a port's address buckets, newest first; none on a kernel that
// has no such buckets (before 6.1).
func (t *TCP) AddrBuckets(port uint16) []AddrBucket {
	p := t.index.get(port)
	if p < 0 || !t.rules.addrBuckets {
		return nil
	}
	var bs []AddrBucket
	for b := t.ports[p].addrs; b >= 0; b = t.addrs[b].next {
		ab := AddrBucket{Addr: t.addrs[b].addr.netip(t.addrs[b].made6)}
		for i := t.addrs[b].owners; i >= 0; i = t.owns[i].next {
			ab.Owners = append(ab.Owners, t.socks[i].id)
		}
		bs = append(bs, ab)
	}
	return bs
}
