package live

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

func TestAMemberIsFoundThroughAnonymousGroups(t *testing.T) {
	word := &btf.Int{Name: "u32", Size: 4}
	half := &btf.Typedef{Name: "u16", Type: &btf.Int{Name: "unsigned short", Size: 2}}
	structure := &btf.Struct{Name: "bucket", Size: 32, Members: []btf.Member{
		{Name: "first", Type: word},
		{Type: &btf.Union{Size: 8, Members: []btf.Member{
			{Name: "choice", Type: word},
			{Type: &btf.Struct{Size: 8, Members: []btf.Member{
				{Name: "inner", Type: word},
				{Name: "deep", Type: half, Offset: 32},
			}}},
		}}, Offset: 8 * 8},
		{Name: "named", Type: &btf.Struct{Name: "other", Size: 4, Members: []btf.Member{{Name: "hidden", Type: word}}}, Offset: 16 * 8},
		{Name: "bits", Type: word, Offset: 24 * 8, BitfieldSize: 3},
		{Name: "list", Type: &btf.Array{Type: half, Index: word, Nelems: 4}, Offset: 28 * 8},
	}}
	for name, want := range map[string]span{
		"first": {0, 4}, "choice": {8, 4}, "inner": {8, 4}, "deep": {12, 2}, "named": {16, 4}, "list": {28, 8},
	} {
		if got, err := member(structure, name); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"hidden", "nothing"} {
		if got, err := member(structure, name); !errors.Is(err, errNoMember) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if got, err := member(structure, "bits"); err == nil || errors.Is(err, errNoMember) {
		t.Errorf("a bit field: got %v, %v", got, err)
	}
}

// madeUpKernel is the type information of a kernel whose structures have the
// members given, each with its size in bytes, packed in that order behind 8
// bytes of something else.
func madeUpKernel(t *testing.T, structures map[string]string) *btf.Spec {
	t.Helper()
	var types []btf.Type
	for name, list := range structures {
		s := &btf.Struct{Name: name, Size: 8}
		for _, m := range strings.Fields(list) {
			member, size, _ := strings.Cut(m, ":")
			n, err := strconv.Atoi(size)
			if err != nil {
				t.Fatal(err)
			}
			bytes := &btf.Array{Type: &btf.Int{Name: "char", Size: 1}, Index: &btf.Int{Name: "int", Size: 4}, Nelems: uint32(n)}
			s.Members = append(s.Members, btf.Member{Name: member, Type: bytes, Offset: btf.Bits(8 * s.Size)})
			s.Size += uint32(n)
		}
		types = append(types, s)
	}
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// kernel618 has what a kernel since 6.18 has.
func kernel618() map[string]string {
	return map[string]string{
		"bpf_iter__task_file":  "meta:8 task:8 fd:4 pad:4 file:8",
		"bpf_iter_meta":        "seq:8",
		"task_struct":          "pid:4 tgid:4",
		"socket":               "sk:8",
		"sock":                 "sk_protocol:2",
		"inet_connection_sock": "icsk_bind_hash:8 icsk_bind2_hash:8",
		"inet_bind_bucket":     "port:2 fastreuse:1 fastreuseport:1 fastuid:4 fast_v6_rcv_saddr:16 fast_rcv_saddr:4 fast_sk_family:2 fast_ipv6_only:1",
		"inet_bind2_bucket":    "other:4 fastreuse:1 fastreuseport:1",
	}
}

func TestALayoutIsWhatTheKernelsTypesSay(t *testing.T) {
	l, err := findLayout(madeUpKernel(t, kernel618()))
	if err != nil {
		t.Fatal(err)
	}
	want := bucketLayout{
		port: span{8, 2}, reuse: span{10, 1}, reusePort: span{11, 1}, uid: span{12, 4}, addr6: span{16, 16}, addr4: span{32, 4},
		family: span{36, 2}, v6only: span{38, 1}, bucket: span{8, 31},
		hasPair: true, pairReuse: span{12, 1}, pairReusePort: span{13, 1}, addrBucket: span{12, 2},
	}
	if l.bucketLayout != want {
		t.Errorf("got  %+v\nwant %+v", l.bucketLayout, want)
	}
}

func TestWhatAnOlderKernelLacksIsNoError(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(map[string]string)
		pair   bool
		addr6  bool
	}{
		{"no pair in the address bucket (6.1)", func(k map[string]string) { k["inet_bind2_bucket"] = "other:4" }, false, true},
		{"no address bucket (6.0)", func(k map[string]string) {
			delete(k, "inet_bind2_bucket")
			k["inet_connection_sock"] = "icsk_bind_hash:8"
		}, false, true},
		{"no IPv6", func(k map[string]string) {
			k["inet_bind_bucket"] = strings.Replace(k["inet_bind_bucket"], "fast_v6_rcv_saddr:16", "", 1)
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kernel618()
			c.change(k)
			l, err := findLayout(madeUpKernel(t, k))
			if err != nil {
				t.Fatal(err)
			}
			if l.hasPair != c.pair || (l.addr6 != span{}) != c.addr6 {
				t.Errorf("pair %v, IPv6 %v; want %v, %v", l.hasPair, l.addr6, c.pair, c.addr6)
			}
		})
	}
}

func TestAKernelWithOtherBucketsIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, structure, members, want string
	}{
		{"without the field", "inet_bind_bucket", "port:2 fastreuse:1", "inet_bind_bucket.fastreuseport"},
		{"with a field of another size", "sock", "sk_protocol:1", "sock.sk_protocol has 1 bytes, expected 2"},
		{"with a pair of another size", "inet_bind2_bucket", "fastreuse:4 fastreuseport:4", "inet_bind2_bucket.fastreuse has 4 bytes"},
		{"without the iterator", "bpf_iter__task_file", "", "bpf_iter__task_file"},
		{"with fields too far apart", "inet_bind2_bucket", "fastreuse:1 gap:480 fastreuseport:1", "too far apart"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kernel618()
			k[c.structure] = c.members
			if l, err := findLayout(madeUpKernel(t, k)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", l, err, c.want)
			}
		})
	}
}
