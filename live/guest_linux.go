package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// GuestMain is the first thing that a program calls whose executable may be
// booted with [Boot]. In the guest it prepares the machine, calls run with
// [BootOptions].Args, tells the host what run returned, and turns the machine
// off; it does not return. Everywhere else it returns at once.
//
// What run writes to out reaches the host if it is JSON objects, one a line.
func GuestMain(run func(args []string, out io.Writer) int) {
	if os.Getpid() != 1 || os.Getenv(guestMark) == "" {
		return
	}
	g := &guest{console: os.Stdout}
	g.main(run)
	g.powerOff()
}

// guest is the inside of a guest.
type guest struct {
	console io.Writer
	objects objectWriter
}

func (g *guest) main(run func([]string, io.Writer) int) {
	g.objects.w = g.console
	// What firmware left on the line is ended before anything is said.
	io.WriteString(g.console, "\n")
	orders, missing, err := g.prepare()
	if err != nil {
		g.close(guestClosing{Fault: err.Error()})
		return
	}
	release, build := uname()
	g.say(guestGreeting{Protocol: guestProtocol, Release: release, Build: build, Missing: missing})
	// From here on the kernel keeps off the console what is not its end, so
	// that lines do not mix. Its complaints are read from its log afterwards.
	os.WriteFile("/proc/sys/kernel/printk", []byte("1"), 0)
	before := len(complaints())
	exit, fault := g.call(run, orders.Args)
	g.objects.flush()
	after := complaints()
	g.close(guestClosing{
		Exit: exit, Fault: fault, Objects: g.objects.count,
		Warnings: after[min(before, len(after)):],
	})
}

// call runs the function and catches its panic.
func (g *guest) call(run func([]string, io.Writer) int, args []string) (exit int, fault string) {
	defer func() {
		if p := recover(); p != nil {
			g.objects.flush()
			g.console.Write(debug.Stack())
			fault = fmt.Sprintf("the checker panicked: %v", p)
		}
	}()
	return run(args, &g.objects), ""
}

// close says the closing line.
func (g *guest) close(c guestClosing) {
	c.Protocol, c.Done = guestProtocol, true
	g.say(c)
}

func (g *guest) say(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		b = fmt.Appendf(nil, "the guest cannot say %v: %v", v, err)
	}
	g.console.Write(append(b, '\n'))
}

// prepare makes of a bare kernel a machine that sockets can be tried on. The
// error is a machine on which nothing can be; missing is what is not there.
func (g *guest) prepare() (orders guestOrders, missing []string, err error) {
	if err := mountAll(); err != nil {
		return orders, nil, err
	}
	b, err := os.ReadFile(guestConfig)
	if err == nil {
		err = json.Unmarshal(b, &orders)
	}
	if err != nil {
		return orders, nil, fmt.Errorf("reading the host's orders: %w", err)
	}
	for _, file := range orders.Modules {
		if err := loadModule(file); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if err := loopbackUp(); err != nil {
		return orders, missing, fmt.Errorf("the image has no loopback (CONFIG_INET): %w", err)
	}
	if err := tryVeth(); err != nil {
		return orders, missing, fmt.Errorf("the image has no veth devices, which dev= needs: build it with CONFIG_VETH, "+
			"or give the directory of its modules (%w)%s", err, because(missing))
	}
	raiseDescriptors()
	return orders, missing, nil
}

func because(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return ": " + strings.Join(missing, ", ")
}

// mountAll mounts what the checker and the Go library look into.
func mountAll() error {
	for _, m := range []struct {
		kind, at string
		must     bool
	}{
		{"proc", "/proc", true},
		{"sysfs", "/sys", true},
		{"devtmpfs", "/dev", false}, // its own /dev/console is enough
		{"tmpfs", "/tmp", false},
		{"securityfs", "/sys/kernel/security", false}, // says whether lockdown is on
	} {
		err := unix.Mount(m.kind, m.at, m.kind, 0, "")
		if err != nil && err != unix.EBUSY && m.must {
			return fmt.Errorf("mounting %s on %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// moduleInitCompressed is MODULE_INIT_COMPRESSED_FILE: the kernel unpacks the
// module (Linux 5.17 with CONFIG_MODULE_DECOMPRESS).
const moduleInitCompressed = 4

func loadModule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if compressedModule(file) {
		flags = moduleInitCompressed
	}
	err = unix.FinitModule(int(f.Fd()), "", flags)
	switch {
	case err == nil, err == unix.EEXIST: // the latter: built in, or loaded by another
		return nil
	case flags != 0 && (err == unix.EINVAL || err == unix.EOPNOTSUPP || err == unix.ENOEXEC):
		return fmt.Errorf("module %s: the kernel does not unpack %s modules; unpack it beforehand (%w)",
			moduleName(file), filepath.Ext(file), err)
	}
	return fmt.Errorf("module %s: %w", moduleName(file), err)
}

// loopbackUp sets lo of the thread's network namespace up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("setting lo up: %w", err)
	}
	return nil
}

// tryVeth makes a pair of devices and takes it away again.
func tryVeth() error {
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "try1"}, PeerName: "try2"}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	return netlink.LinkDel(pair)
}

// raiseDescriptors lets process 1 open as many files as the kernel allows any.
func raiseDescriptors() {
	b, err := os.ReadFile("/proc/sys/fs/nr_open")
	var n uint64
	if _, scan := fmt.Sscan(string(b), &n); err == nil && scan == nil {
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n})
	}
}

func uname() (release, build string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "", ""
	}
	return unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:])
}

// RunningKernel is the version of the kernel that runs this program.
func RunningKernel() (KernelVersion, error) {
	release, build := uname()
	if release == "" {
		return KernelVersion{}, errors.New("the running kernel does not say its version")
	}
	return ParseKernelVersion(release, build), nil
}

// complaints are the lines of the kernel's log in which it complains of itself.
func complaints() []string {
	size, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	if err != nil {
		return nil
	}
	b := make([]byte, size)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, b)
	if err != nil {
		return nil
	}
	var out []string
	for line := range bytes.Lines(b[:n]) {
		for _, word := range []string{"WARNING: ", "BUG: ", "INFO: rcu", "suspicious RCU usage"} {
			if bytes.Contains(line, []byte(word)) {
				out = append(out, string(bytes.TrimSpace(line)))
				break
			}
		}
	}
	return out
}

// powerOff ends the machine, once the console has said everything.
func (g *guest) powerOff() {
	unix.IoctlSetInt(1, unix.TCSBRK, 1) // tcdrain
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// A machine that cannot turn itself off may still restart, which QEMU
	// was told to take for the end. Process 1 must not return in any case.
	unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
	for {
		unix.Pause()
	}
}

// objectWriter passes on whole lines, each with one write, and counts those
// that the host takes for objects. A guest whose function writes from several
// goroutines has to serialise them.
type objectWriter struct {
	w     io.Writer
	lines lineSplitter
	count int
}

func (o *objectWriter) Write(p []byte) (int, error) {
	if o.w == nil {
		return 0, fs.ErrClosed
	}
	o.lines.line = o.line
	return o.lines.Write(p)
}

func (o *objectWriter) line(line []byte) {
	if _, ok := jsonObject(line); ok {
		o.count++
	}
	o.w.Write(append(bytes.Clone(line), '\n'))
}

// flush ends a last line without an end.
func (o *objectWriter) flush() {
	if len(o.lines.pending) > 0 {
		o.lines.flush()
	}
}
