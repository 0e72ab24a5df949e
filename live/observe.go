package live

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/reusecheck/reusecheck"
)

// Observation is what the kernel remembers of the port that one TCP socket of
// this process holds.
type Observation struct {
	FD int
	// Port is the bind bucket's, in host order; 0 for a socket without one.
	Port uint16
	// Cache is the bind bucket's, Exists false for a socket without one. Its
	// UID is the kernel's own number, also inside a user namespace.
	Cache reusecheck.Cache
	// Pair is the address bucket's own copy of the two fields. HasPair is
	// false on a kernel whose address buckets have none (before 6.18): Pair
	// then says nothing.
	Pair    reusecheck.Pair
	HasPair bool
}

// span is a piece of a kernel structure: where it starts in the structure, and
// its length, in bytes.
type span struct{ off, size int }

func (s span) end() int { return s.off + s.size }

// in is the piece of b that s names, b itself starting at byte start of the
// structure.
func (s span) in(b []byte, start int) []byte { return b[s.off-start : s.end()-start] }

// cover is the smallest span that holds all of ss.
func cover(ss ...span) span {
	c := ss[0]
	for _, s := range ss[1:] {
		end := max(c.end(), s.end())
		c.off = min(c.off, s.off)
		c.size = end - c.off
	}
	return c
}

// bucketLayout says where a bind bucket (inet_bind_bucket) and an address
// bucket (inet_bind2_bucket) of the running kernel have their fields.
type bucketLayout struct {
	port, reuse, reusePort            span
	uid, family, addr4, addr6, v6only span
	hasPair                           bool
	pairReuse, pairReusePort          span
	bucket/* covers all but the pair */ span
	addrBucket/* covers the pair, or 0 */ span
}

// A record is what the iterator's program writes for one socket: the file
// descriptor, a mask of what follows, the bucket's bytes, the address bucket's.
const (
	recordFD     = 0
	recordMask   = 4
	recordBucket = 8

	maskBucket     = 1
	maskAddrBucket = 2
)

// addrBucketAt is where in a record the address bucket's bytes stand.
func (l *bucketLayout) addrBucketAt() int { return recordBucket + align8(l.bucket.size) }

// recordSize is the length of a record, a multiple of 8.
func (l *bucketLayout) recordSize() int { return l.addrBucketAt() + align8(l.addrBucket.size) }

func align8(n int) int { return (n + 7) &^ 7 }

// The kernel's own numbers of the address families, the same on every
// architecture.
const (
	afInet  = 2
	afInet6 = 10
)

// decode reads one record.
func (l *bucketLayout) decode(rec []byte) Observation {
	o := Observation{FD: int(binary.NativeEndian.Uint32(rec[recordFD:])), HasPair: l.hasPair}
	mask := binary.NativeEndian.Uint32(rec[recordMask:])
	if mask&maskBucket != 0 {
		b, start := rec[recordBucket:recordBucket+l.bucket.size], l.bucket.off
		o.Port = binary.NativeEndian.Uint16(l.port.in(b, start))
		o.Cache = reusecheck.Cache{
			Exists:        true,
			FastReuse:     int8(l.reuse.in(b, start)[0]),
			FastReusePort: int8(l.reusePort.in(b, start)[0]),
			UID:           binary.NativeEndian.Uint32(l.uid.in(b, start)),
			V6Only:        l.v6only.in(b, start)[0] != 0,
		}
		switch binary.NativeEndian.Uint16(l.family.in(b, start)) {
		case afInet:
			o.Cache.Family = reusecheck.TCP4
			o.Cache.Addr = netip.AddrFrom4([4]byte(l.addr4.in(b, start)))
		case afInet6:
			o.Cache.Family = reusecheck.TCP6
			if l.addr6.size != 0 {
				o.Cache.Addr = netip.AddrFrom16([16]byte(l.addr6.in(b, start)))
			}
		}
		// What is uninitialised memory in the kernel is not shown to anybody.
		o.Cache = o.Cache.WithoutKey()
	}
	if l.hasPair && mask&maskAddrBucket != 0 {
		at := l.addrBucketAt()
		b, start := rec[at:at+l.addrBucket.size], l.addrBucket.off
		o.Pair = reusecheck.Pair{
			Exists:        true,
			FastReuse:     int8(l.pairReuse.in(b, start)[0]),
			FastReusePort: int8(l.pairReusePort.in(b, start)[0]),
		}
	}
	return o
}

// decodeAll appends the records in b to obs.
func (l *bucketLayout) decodeAll(obs []Observation, b []byte) ([]Observation, error) {
	size := l.recordSize()
	if len(b)%size != 0 {
		return obs, fmt.Errorf("reading the kernel's bind buckets: %d bytes are not a number of %d-byte records", len(b), size)
	}
	for ; len(b) > 0; b = b[size:] {
		obs = append(obs, l.decode(b[:size]))
	}
	return obs, nil
}

// unobservable is the error of a system that does not let its caches be read.
func unobservable(why string) error {
	return &reusecheck.Unsupported{What: "the kernel's own fastreuse and fastreuseport", Why: why}
}
