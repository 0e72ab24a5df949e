package live

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// errNoMember is a structure without the member asked for: the kernel is older
// or newer than the member, or configured without it.
var errNoMember = errors.New("no such member")

// member finds a member of a structure by name, also inside the anonymous
// structures and unions that only group members.
func member(t btf.Type, name string) (span, error) {
	var members []btf.Member
	switch s := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		members = s.Members
	case *btf.Union:
		members = s.Members
	}
	for _, m := range members {
		if m.Name == name {
			if m.BitfieldSize != 0 {
				return span{}, fmt.Errorf("%s is a bit field", name)
			}
			size, err := btf.Sizeof(m.Type)
			return span{int(m.Offset.Bytes()), size}, err
		}
		if m.Name != "" {
			continue
		}
		if inner, err := member(m.Type, name); err == nil {
			inner.off += int(m.Offset.Bytes())
			return inner, nil
		}
	}
	return span{}, fmt.Errorf("%w: %s.%s", errNoMember, t.TypeName(), name)
}

// members looks up members of the kernel's structures and keeps the first
// error, so that a list of look-ups reads as a list.
type members struct {
	types *btf.Spec
	err   error
}

// of finds a member that must be there with a size in bytes, 0 for any.
func (m *members) of(structure, name string, size int) span {
	s, err := m.find(structure, name)
	if err == nil && size != 0 && s.size != size {
		err = fmt.Errorf("%s.%s has %d bytes, expected %d", structure, name, s.size, size)
	}
	if err != nil && m.err == nil {
		m.err = err
	}
	return s
}

// try finds a member that a kernel may lack; false says that it does.
func (m *members) try(structure, name string, size int) (span, bool) {
	s, err := m.find(structure, name)
	switch {
	case errors.Is(err, errNoMember) || errors.Is(err, btf.ErrNotFound):
		return span{}, false
	case err == nil && s.size != size:
		err = fmt.Errorf("%s.%s has %d bytes, expected %d", structure, name, s.size, size)
	}
	if err != nil && m.err == nil {
		m.err = err
	}
	return s, err == nil
}

func (m *members) find(structure, name string) (span, error) {
	var s *btf.Struct
	if err := m.types.TypeByName(structure, &s); err != nil {
		return span{}, fmt.Errorf("struct %s: %w", structure, err)
	}
	return member(s, name)
}

// socketLayout is how the program finds its way from the iterator's context to
// a socket's buckets.
type socketLayout struct {
	ctxMeta, ctxTask, ctxFD, ctxFile span
	metaSeq, taskTgid, socketSk      span
	protocol                         span
	bindHash, bind2Hash              span
	bucketLayout
}

// findLayout asks the kernel's type information for every offset. The address
// bucket's own pair came with 6.18: without it only HasPair is lost.
func findLayout(types *btf.Spec) (*socketLayout, error) {
	m := members{types: types}
	l := &socketLayout{
		ctxMeta: m.of("bpf_iter__task_file", "meta", 8),
		ctxTask: m.of("bpf_iter__task_file", "task", 8),
		ctxFD:   m.of("bpf_iter__task_file", "fd", 4),
		ctxFile: m.of("bpf_iter__task_file", "file", 8),

		metaSeq:  m.of("bpf_iter_meta", "seq", 8),
		taskTgid: m.of("task_struct", "tgid", 4),
		socketSk: m.of("socket", "sk", 8),
		protocol: m.of("sock", "sk_protocol", 2),
		bindHash: m.of("inet_connection_sock", "icsk_bind_hash", 8),
		bucketLayout: bucketLayout{
			port:      m.of("inet_bind_bucket", "port", 2),
			reuse:     m.of("inet_bind_bucket", "fastreuse", 1),
			reusePort: m.of("inet_bind_bucket", "fastreuseport", 1),
			uid:       m.of("inet_bind_bucket", "fastuid", 4),
			family:    m.of("inet_bind_bucket", "fast_sk_family", 2),
			addr4:     m.of("inet_bind_bucket", "fast_rcv_saddr", 4),
			v6only:    m.of("inet_bind_bucket", "fast_ipv6_only", 1),
		},
	}
	all := []span{l.port, l.reuse, l.reusePort, l.uid, l.family, l.addr4, l.v6only}
	if addr6, ok := m.try("inet_bind_bucket", "fast_v6_rcv_saddr", 16); ok {
		l.addr6 = addr6
		all = append(all, addr6)
	}
	l.bucket = cover(all...)

	var hash, reuse, reusePort bool
	l.bind2Hash, hash = m.try("inet_connection_sock", "icsk_bind2_hash", 8)
	l.pairReuse, reuse = m.try("inet_bind2_bucket", "fastreuse", 1)
	l.pairReusePort, reusePort = m.try("inet_bind2_bucket", "fastreuseport", 1)
	if l.hasPair = hash && reuse && reusePort; l.hasPair {
		l.addrBucket = cover(l.pairReuse, l.pairReusePort)
	}
	if m.err != nil {
		return nil, fmt.Errorf("finding the bind buckets in the kernel's type information: %w", m.err)
	}
	if n := l.recordSize(); n > maxRecord {
		return nil, fmt.Errorf("the kernel's bind buckets are too far apart to be read: %d bytes of %d", n, maxRecord)
	}
	return l, nil
}

// A program has 512 bytes of stack: the record, and a place for one pointer.
const (
	maxRecord    = 512 - pointerSpace
	pointerSpace = 8
)

// tcp is IPPROTO_TCP.
const tcp = 6

// program is the iterator's body: for a TCP socket of the reading process,
// write one record. The buckets are read through bpf_probe_read_kernel because
// the verifier knows a file's socket as a struct sock only, and its cast to a
// TCP socket is refused for sockets that were found through a file.
func (l *socketLayout) program() asm.Instructions {
	const (
		ctx, task, file, sk = asm.R6, asm.R7, asm.R8, asm.R9
		out                 = "out"
	)
	record := -pointerSpace - l.recordSize()
	pointer := -pointerSpace
	p := asm.Instructions{
		asm.Mov.Reg(ctx, asm.R1),
		// The iterator calls once more at its end, with no task and no file.
		asm.LoadMem(task, ctx, int16(l.ctxTask.off), asm.DWord),
		asm.JEq.Imm(task, 0, out),
		asm.LoadMem(file, ctx, int16(l.ctxFile.off), asm.DWord),
		asm.JEq.Imm(file, 0, out),
		// Both sides are numbers of the initial PID namespace, so this holds
		// inside a container too.
		asm.LoadMem(task, task, int16(l.taskTgid.off), asm.Word),
		asm.FnGetCurrentPidTgid.Call(),
		asm.RSh.Imm(asm.R0, 32),
		asm.JNE.Reg(asm.R0, task, out),

		asm.Mov.Reg(asm.R1, file),
		asm.FnSockFromFile.Call(),
		asm.JEq.Imm(asm.R0, 0, out),
		asm.LoadMem(sk, asm.R0, int16(l.socketSk.off), asm.DWord),
		asm.JEq.Imm(sk, 0, out),
		asm.LoadMem(asm.R1, sk, int16(l.protocol.off), asm.Half),
		asm.JNE.Imm(asm.R1, tcp, out),
		asm.Mov.Imm(asm.R1, 0),
	}
	for at := record; at < 0; at += 8 {
		p = append(p, asm.StoreMem(asm.RFP, int16(at), asm.R1, asm.DWord))
	}
	p = append(p,
		asm.LoadMem(asm.R1, ctx, int16(l.ctxFD.off), asm.Word),
		asm.StoreMem(asm.RFP, int16(record+recordFD), asm.R1, asm.Word),
	)
	p = append(p, readBucket(sk, l.bindHash.off, l.bucket, pointer, record+recordBucket, record+recordMask, maskBucket)...)
	if l.hasPair {
		p = append(p, readBucket(sk, l.bind2Hash.off, l.addrBucket, pointer, record+l.addrBucketAt(), record+recordMask, maskAddrBucket)...)
	}
	return append(p,
		asm.LoadMem(asm.R1, ctx, int16(l.ctxMeta.off), asm.DWord),
		asm.LoadMem(asm.R1, asm.R1, int16(l.metaSeq.off), asm.DWord),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, int32(record)),
		asm.Mov.Imm(asm.R3, int32(l.recordSize())),
		asm.FnSeqWrite.Call(),
		// The return value asks for nothing: a full buffer makes the kernel
		// visit this file again on the next read.
		asm.Mov.Imm(asm.R0, 0).WithSymbol(out),
		asm.Return(),
	)
}

// readBucket follows the pointer at off in the socket sk, copies the bytes that
// bucket names to the stack at to, and sets bit in the mask there. A socket
// without a bucket leaves both zero. pointer, to and mask are stack offsets.
func readBucket(sk asm.Register, off int, bucket span, pointer, to, mask int, bit int32) asm.Instructions {
	none := fmt.Sprintf("no_bucket_%d", bit)
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, int32(pointer)),
		asm.Mov.Imm(asm.R2, 8),
		asm.Mov.Reg(asm.R3, sk),
		asm.Add.Imm(asm.R3, int32(off)),
		asm.FnProbeReadKernel.Call(),
		asm.JNE.Imm(asm.R0, 0, none),
		asm.LoadMem(asm.R3, asm.RFP, int16(pointer), asm.DWord),
		asm.JEq.Imm(asm.R3, 0, none),

		asm.Mov.Reg(asm.R1, asm.RFP),
		asm.Add.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, int32(bucket.size)),
		asm.Add.Imm(asm.R3, int32(bucket.off)),
		asm.FnProbeReadKernel.Call(),
		asm.JNE.Imm(asm.R0, 0, none),
		asm.LoadMem(asm.R1, asm.RFP, int16(mask), asm.Word),
		asm.Or.Imm(asm.R1, bit),
		asm.StoreMem(asm.RFP, int16(mask), asm.R1, asm.Word),
		asm.Mov.Imm(asm.R0, 0).WithSymbol(none),
	}
}
