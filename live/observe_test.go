package live

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reusecheck/reusecheck"
)

// A made-up kernel's buckets: the fields lie in no order, and not from the
// structure's beginning.
var madeUp = func() bucketLayout {
	l := bucketLayout{
		family: span{16, 2}, port: span{20, 2}, reuse: span{23, 1}, reusePort: span{24, 1},
		uid: span{28, 4}, addr4: span{32, 4}, addr6: span{40, 16}, v6only: span{57, 1},
		hasPair: true, pairReuse: span{9, 1}, pairReusePort: span{8, 1},
	}
	l.bucket = cover(l.v6only, l.family, l.port, l.addr6)
	l.addrBucket = cover(l.pairReuse, l.pairReusePort)
	return l
}()

// record writes what the program would, the bucket's bytes given by offset in
// the structure.
func (l *bucketLayout) record(fd, mask uint32, bucket map[int][]byte, pair ...byte) []byte {
	b := make([]byte, l.recordSize())
	binary.NativeEndian.PutUint32(b[recordFD:], fd)
	binary.NativeEndian.PutUint32(b[recordMask:], mask)
	for off, bytes := range bucket {
		copy(b[recordBucket+off-l.bucket.off:], bytes)
	}
	copy(b[l.addrBucketAt():], pair)
	return b
}

func native16(n uint16) []byte { return binary.NativeEndian.AppendUint16(nil, n) }
func native32(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

func TestARecordIsReadByItsLayout(t *testing.T) {
	l := &madeUp
	v6 := netip.MustParseAddr("fd00::1")
	a16 := v6.As16()
	strict := map[int][]byte{16: native16(afInet6), 20: native16(40000), 23: {0}, 24: {2}, 28: native32(1000), 32: {9, 9, 9, 9}, 40: a16[:], 57: {1}}
	for _, c := range []struct {
		name string
		rec  []byte
		want Observation
	}{
		{"no bucket", l.record(7, 0, strict, 1, 1), Observation{FD: 7, HasPair: true}},
		{"IPv6 and a pair", l.record(3, 3, strict, 2, 0), Observation{FD: 3, Port: 40000, HasPair: true,
			Cache: reusecheck.Cache{Exists: true, FastReusePort: 2, UID: 1000, Family: reusecheck.TCP6, Addr: v6, V6Only: true},
			Pair:  reusecheck.Pair{Exists: true, FastReusePort: 2}}},
		{"IPv4", l.record(4, 1, map[int][]byte{16: native16(afInet), 20: native16(80), 23: {1}, 24: {1}, 32: {127, 0, 0, 1}}),
			Observation{FD: 4, Port: 80, HasPair: true,
				Cache: reusecheck.Cache{Exists: true, FastReuse: 1, FastReusePort: 1, Family: reusecheck.TCP4, Addr: netip.MustParseAddr("127.0.0.1")}}},
		{"a connect's, whose key is whatever lay there", l.record(5, 3, map[int][]byte{16: native16(afInet), 20: native16(1), 23: {0xff}, 24: {0xff}, 28: native32(5), 57: {1}}, 0xff, 0xff),
			Observation{FD: 5, Port: 1, HasPair: true,
				Cache: reusecheck.Cache{Exists: true, FastReuse: -1, FastReusePort: -1},
				Pair:  reusecheck.Pair{Exists: true, FastReuse: -1, FastReusePort: -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := l.decodeAll(nil, c.rec)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]Observation{c.want}, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAKernelWithoutPairsShowsNone(t *testing.T) {
	l := madeUp
	l.hasPair, l.addrBucket = false, span{}
	got := l.decode(l.record(1, maskAddrBucket, nil))
	if d := cmp.Diff(Observation{FD: 1}, got, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if l.recordSize() >= madeUp.recordSize() {
		t.Errorf("its records have %d bytes, those with pairs %d", l.recordSize(), madeUp.recordSize())
	}
}

func TestACutRecordIsAnError(t *testing.T) {
	rec := madeUp.record(1, 0, nil)
	if obs, err := madeUp.decodeAll(nil, append(rec, rec[:8]...)); err == nil || !strings.Contains(err.Error(), "records") {
		t.Errorf("got %v, %v", obs, err)
	}
}
