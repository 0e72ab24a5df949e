package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck"
)

// Boot boots a kernel in QEMU, with this program as the first one in it, and
// gives the result of the function that the program hands to [GuestMain].
// It uses KVM where /dev/kvm can be opened and emulation elsewhere; then a
// kernel needs some 3 s to be up.
//
// The guest has no disk and no network. Nothing is written to a file: the
// initial RAM disk is memory that goes with the process, and QEMU is ended by
// its process id when ctx ends, at the time limit, and when this process dies.
//
// A run that came to its own end is a BootResult, whatever the function
// returned. Else the error is a *[BootError] if QEMU was started, a
// *[reusecheck.Unsupported] where QEMU is missing, or says what is wrong with
// the options.
func Boot(ctx context.Context, o BootOptions) (*BootResult, error) {
	qemu, err := exec.LookPath(qemuProgram)
	if err != nil {
		return nil, &reusecheck.Unsupported{What: "kernels in QEMU",
			Why: qemuProgram + " was not found; install it (Debian: qemu-system-x86)"}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o = o.withDefaults()
	kernel, err := ImageVersion(o.Image)
	if err != nil {
		return nil, err
	}
	archive, err := packGuest(&o, kernel)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	accelerator := "tcg"
	if usable("/dev/kvm") {
		accelerator = "kvm"
	}
	o.Progress(fmt.Sprintf("booting %v with %s", kernel, accelerator))
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, ErrGuestTimeout)
	defer cancel()
	for starts := 1; ; starts++ {
		run := &qemuRun{options: &o, result: BootResult{Kernel: kernel, Accelerator: accelerator}}
		cmd := exec.Command(qemu, qemuArgs(&o, accelerator)...)
		cmd.ExtraFiles = []*os.File{archive}
		r, err := run.run(ctx, cmd)
		if starts == maxStarts || !run.stillborn(err) {
			return r, err
		}
		o.Progress(fmt.Sprintf("booting it once more: %v", errors.Unwrap(err)))
	}
}

// errMute is why a run was ended that showed no sign of life.
var errMute = errors.New("the guest said nothing")

// maxStarts is how often a guest is booted that dies before its first line.
const maxStarts = 3

// stillborn reports whether a guest died by err before anything ran in it that
// is to be judged. A kernel that does so does it again; an emulated machine also
// does it now and then by itself.
func (r *qemuRun) stillborn(err error) bool {
	if r.console.greeting != nil || r.console.closing != nil {
		return false
	}
	return errors.Is(err, ErrGuestPanic) || errors.Is(err, ErrGuestSilent) || errors.Is(err, errMute)
}

const qemuProgram = "qemu-system-x86_64"

func (o BootOptions) withDefaults() BootOptions {
	if o.Timeout <= 0 {
		o.Timeout = DefaultBootTimeout
	}
	if o.MemoryMiB <= 0 {
		o.MemoryMiB = DefaultMemoryMiB
	}
	if o.CPUs <= 0 {
		o.CPUs = DefaultCPUs
	}
	if o.powerOff <= 0 {
		o.powerOff = powerOffTime
	}
	if o.start <= 0 {
		o.start = startTime
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// usable reports whether a device can be opened for use.
func usable(device string) bool {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// packGuest makes the initial RAM disk, in memory.
func packGuest(o *BootOptions, kernel KernelVersion) (*os.File, error) {
	init := o.Init
	if init == "" {
		var err error
		if init, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding this program, which is the guest's first one: %w", err)
		}
	}
	if err := checkInit(init); err != nil {
		return nil, err
	}
	dir := modulesOf(o.Image, o.Modules, kernel.Release)
	// A directory of modules is named after its kernel, where it is installed.
	if of := filepath.Base(dir); leadingVersion.MatchString(of) && of != kernel.Release {
		return nil, fmt.Errorf("%s is for the kernel %s, and the image is %s: give the directory of its own modules", dir, of, kernel.Release)
	}
	modules, err := findModules(dir)
	if err != nil {
		return nil, err
	}
	orders := guestOrders{Args: o.Args}
	for _, m := range modules {
		orders.Modules = append(orders.Modules, m.guestPath())
	}
	config, err := json.Marshal(orders)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("reusecheck-initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making the guest's initial RAM disk: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	w := bufio.NewWriterSize(f, 1<<20)
	a := initramfs{init: init, config: config, modules: modules, files: o.Files}
	if err := errors.Join(a.write(w), w.Flush()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// kernelParameters keep the boot short and the console readable. panic=-1 with
// QEMU's -no-reboot ends QEMU at a panic, and an oops is one.
const kernelParameters = "console=ttyS0 quiet panic=-1 oops=panic tsc=reliable no_timer_check " +
	"cryptomgr.notests nokaslr mitigations=off random.trust_cpu=on " + guestMark + "=1"

func qemuArgs(o *BootOptions, accelerator string) []string {
	args := []string{
		"-machine", "q35", "-smp", strconv.Itoa(o.CPUs), "-m", strconv.Itoa(o.MemoryMiB),
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", o.Image, "-initrd", "/proc/self/fd/3", "-append", kernelParameters,
	}
	if accelerator == "kvm" {
		return append(args, "-accel", "kvm", "-cpu", "host")
	}
	// One thread emulates the processors in turn, which is as quick for what runs
	// here: with a thread each, one may meet a breakpoint that another has just
	// taken out of the kernel's code, and the kernel panics.
	return append(args, "-accel", "tcg,thread=single")
}

// qemuRun is one run of QEMU.
type qemuRun struct {
	options *BootOptions
	console console
	result  BootResult
	stderr  bytes.Buffer
}

// run starts QEMU, follows it to its end, and judges.
func (r *qemuRun) run(ctx context.Context, cmd *exec.Cmd) (*BootResult, error) {
	// QEMU is to die with this process, which the kernel ties to the thread
	// that started it. A terminal's Ctrl-C is for this process alone, so that
	// it is ctx that ends QEMU, and nothing else.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	ctx, end := context.WithCancelCause(ctx)
	cancel := func() { end(nil) }
	defer cancel()
	mute := time.AfterFunc(r.options.start, func() { end(errMute) })
	defer mute.Stop()
	start := time.Now()
	r.console = console{
		options: r.options,
		up: func() {
			r.result.Up = time.Since(start)
			r.options.Progress(fmt.Sprintf("the guest is up after %.1f s", r.result.Up.Seconds()))
		},
		done: func() { time.AfterFunc(r.options.powerOff, cancel) },
	}
	lines := &lineSplitter{line: func(line []byte) {
		mute.Stop()
		r.console.line(line)
	}}
	cmd.Stdout = lines
	cmd.Stderr = &r.stderr
	// A child of QEMU that holds its output open must not hold up this one.
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", qemuProgram, err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	stop()
	if len(lines.pending) > 0 {
		lines.flush()
	}
	r.result.Elapsed = time.Since(start)
	return r.judge(context.Cause(ctx), err)
}

// judge decides by what the guest said. QEMU's own exit status is 0 also when
// the guest died or nothing ran; only another one says something.
func (r *qemuRun) judge(stopped, exited error) (*BootResult, error) {
	c := &r.console
	fail := func(err error) (*BootResult, error) {
		return nil, &BootError{Err: err, Log: append([]string(nil), c.log...)}
	}
	end := c.closing
	switch {
	case end != nil && end.Protocol != guestProtocol:
		return fail(fmt.Errorf("%w: it speaks version %d of the protocol, not %d", ErrGuestFault, end.Protocol, guestProtocol))
	case end != nil && end.Fault != "":
		return fail(fmt.Errorf("%w: %s", ErrGuestFault, end.Fault))
	case end != nil && end.Objects != c.objects:
		return fail(fmt.Errorf("%w: %d were sent and %d arrived", ErrGuestLost, end.Objects, c.objects))
	case end != nil:
		r.result.Exit, r.result.Objects, r.result.Warnings = end.Exit, end.Objects, end.Warnings
		if g := c.greeting; g != nil {
			r.result.Kernel = ParseKernelVersion(g.Release, g.Build)
			r.result.Missing = g.Missing
		}
		r.options.Progress(fmt.Sprintf("the guest ended after %.1f s", r.result.Elapsed.Seconds()))
		return &r.result, nil
	case c.panicked != "":
		return fail(fmt.Errorf("%w%s", ErrGuestPanic, c.panicked))
	case errors.Is(stopped, ErrGuestTimeout):
		return fail(fmt.Errorf("%w (%v)", ErrGuestTimeout, r.options.Timeout))
	case errors.Is(stopped, errMute):
		return fail(fmt.Errorf("%w within %v", errMute, r.options.start))
	case stopped != nil:
		return nil, stopped
	}
	if text := strings.TrimSpace(r.stderr.String()); text != "" || exited != nil {
		return nil, fmt.Errorf("%s ended (%v): %s", qemuProgram, exitText(exited), text)
	}
	return fail(ErrGuestSilent)
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
