package live

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Observer reads the bind buckets of this process's TCP sockets out of the
// running kernel, through a BPF iterator over the process's open files. All
// offsets come from the kernel's own type information.
//
// An Observer changes nothing that sockets can notice. It is used by one
// goroutine at a time, between steps: a read beside a running bind is no
// snapshot.
type Observer struct {
	layout  *socketLayout
	program *ebpf.Program
	link    int
	buf     []byte
}

// NewObserver loads the iterator, which takes about 0.1 s; reading is quick.
//
// The error is a *[reusecheck.Unsupported] where this system does not allow it
// (no permission, no BPF, no type information, lockdown): that is no fault of
// the kernel under test. Linux 5.11 is the first that can.
func NewObserver() (*Observer, error) {
	types, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, unobservable(fmt.Sprintf("no BTF type information of the running kernel (CONFIG_DEBUG_INFO_BTF): %v", err))
	}
	o := &Observer{link: -1, buf: make([]byte, 0, 2*seqBuffer)}
	if o.layout, err = findLayout(types); err != nil {
		if errors.Is(err, btf.ErrNotFound) || errors.Is(err, errNoMember) {
			return nil, unobservable(err.Error())
		}
		return nil, err
	}
	o.program, err = ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Name:         "reusecheck",
		Type:         ebpf.Tracing,
		AttachType:   ebpf.AttachTraceIter,
		AttachTo:     "task_file",
		Instructions: o.layout.program(),
		// The kernel offers its reading helpers only to programs that say
		// that they may be used under its licence.
		License: "Dual MIT/GPL",
	}, ebpf.ProgramOptions{KernelTypes: types})
	if err != nil {
		return nil, loadError(err)
	}
	if o.link, err = linkFiles(o.program.FD(), os.Getpid()); err != nil {
		o.Close()
		return nil, unobservable(fmt.Sprintf("attaching the BPF iterator: %v", err))
	}
	return o, nil
}

// loadError tells a system that refuses from a program that is wrong.
func loadError(err error) error {
	const lockdown = "/sys/kernel/security/lockdown"
	if b, _ := os.ReadFile(lockdown); strings.Contains(string(b), "[confidentiality]") {
		return unobservable("kernel lockdown (confidentiality) forbids reading kernel memory")
	}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && !isVerifierError(err):
		return unobservable(fmt.Sprintf("the kernel refuses to load a BPF iterator; it needs root, or CAP_BPF and CAP_PERFMON (%v)", err))
	case errors.Is(err, unix.ENOSYS), errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return unobservable(fmt.Sprintf("the kernel has no BPF iterator over files: %v", err))
	}
	return fmt.Errorf("loading the BPF iterator: %w", err)
}

func isVerifierError(err error) bool {
	var v *ebpf.VerifierError
	return errors.As(err, &v) && len(v.Log) > 0
}

// HasPair reports whether this kernel's address buckets have fields of their
// own (6.18 and later).
func (o *Observer) HasPair() bool { return o.layout.hasPair }

// Read gives an observation for every TCP socket that this process has open,
// by rising file descriptor. The result uses buf's storage if it has enough.
// A read takes some 0.02 ms and a fraction of a microsecond for each descriptor.
func (o *Observer) Read(buf []Observation) ([]Observation, error) {
	fd, err := bpf(bpfIterCreate, unsafe.Pointer(&iterCreateAttr{linkFD: uint32(o.link)}), unsafe.Sizeof(iterCreateAttr{}))
	if err != nil {
		return buf[:0], fmt.Errorf("starting the BPF iterator: %w", err)
	}
	defer unix.Close(fd)
	o.buf = o.buf[:0]
	for {
		o.buf = slices.Grow(o.buf, seqBuffer)
		n, err := unix.Read(fd, o.buf[len(o.buf):cap(o.buf)])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			// EAGAIN is the kernel's way to let others run after a million
			// files without a socket among them.
		case err != nil:
			return buf[:0], fmt.Errorf("reading the BPF iterator: %w", err)
		case n == 0:
			return o.layout.decodeAll(buf[:0], o.buf)
		default:
			o.buf = o.buf[:len(o.buf)+n]
		}
	}
}

// Close unloads the iterator.
func (o *Observer) Close() error {
	var err error
	if o.link >= 0 {
		err = unix.Close(o.link)
		o.link = -1
	}
	return errors.Join(err, o.program.Close())
}

// seqBuffer is what an iterator hands out by one read at most: 8 pages.
const seqBuffer = 8 * 4096

// The part of bpf(2) that the BPF library does not offer: an iterator that is
// told which task to visit (Linux 6.1; older kernels ignore it, and the program
// skips what is not this process's). Without it every read would visit every
// open file of the machine.
const (
	bpfLinkCreate = 28
	bpfIterCreate = 33
	bpfTraceIter  = 28
)

type linkCreateAttr struct {
	program, target, attachType, flags uint32
	info                               uint64 // a pointer, 64 bits wide everywhere
	infoLen                            uint32
	_                                  uint32
}

type iterCreateAttr struct{ linkFD, flags uint32 }

// iterTask is the kernel's bpf_iter_link_info for a task iterator.
type iterTask struct{ tid, pid, pidFD uint32 }

// linkFiles attaches the iterator to one thread, or with tid 0 to all. A
// process's first thread stands for it: its threads share one table of files.
func linkFiles(program, tid int) (int, error) {
	info := &iterTask{tid: uint32(tid)}
	var pin runtime.Pinner // the kernel follows a pointer that Go does not see
	pin.Pin(info)
	defer pin.Unpin()
	attr := linkCreateAttr{
		program:    uint32(program),
		attachType: bpfTraceIter,
		info:       uint64(uintptr(unsafe.Pointer(info))),
		infoLen:    uint32(unsafe.Sizeof(*info)),
	}
	return bpf(bpfLinkCreate, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// bpf calls bpf(2) and gives the file descriptor that it returns.
func bpf(command uintptr, attr unsafe.Pointer, size uintptr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
