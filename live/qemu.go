package live

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// BootOptions say which kernel to boot in QEMU and what to run in it.
type BootOptions struct {
	// Image is the kernel: a bzImage, as packaged (/boot/vmlinuz-*) or built.
	// It needs a serial console, an initial RAM disk, devtmpfs, the loopback
	// and veth (as a module or built in).
	Image string
	// Modules is the directory of its modules, usually /lib/modules/RELEASE,
	// or a root that has such a directory below. Empty: found beside Image or
	// in /lib/modules; a kernel with everything built in needs none.
	Modules string
	// Init is the program that the guest starts: statically linked, with a
	// call of [GuestMain]. Empty: the running program.
	Init string
	// Args go to the function given to GuestMain, Files into the guest, by
	// absolute path.
	Args  []string
	Files map[string][]byte

	Timeout   time.Duration // for the whole run; 0 is DefaultBootTimeout
	MemoryMiB int           // 0 is DefaultMemoryMiB
	CPUs      int           // 0 is DefaultCPUs

	// Object is called with every JSON object that the guest's function
	// writes, in order, from one goroutine. The bytes are its own to keep.
	Object func(object []byte)
	// Progress is called with a short text at every stage.
	Progress func(text string)
	// Console is called with every line of the guest's console as it is,
	// without line end.
	Console func(line []byte)

	// 0 is powerOffTime and startTime; for tests.
	powerOff, start time.Duration
}

// The defaults of BootOptions.
const (
	DefaultBootTimeout = 5 * time.Minute
	DefaultMemoryMiB   = 1024
	DefaultCPUs        = 2
)

// powerOffTime is how long a guest that said its closing line may take to go.
const powerOffTime = 10 * time.Second

// startTime is how long a guest may say nothing at all. An emulated machine now
// and then hangs before its kernel runs.
const startTime = 75 * time.Second

// BootResult is a guest's run that came to its own end.
type BootResult struct {
	Kernel KernelVersion
	// Exit is what the function given to GuestMain returned.
	Exit int
	// Objects is how many JSON objects it wrote; all of them arrived.
	Objects int
	// Missing are the modules of the guest that could not be loaded and whose
	// lack the function has to notice by itself, with the reason.
	Missing []string
	// Warnings are the lines in which the guest's kernel complained of itself
	// (WARNING, BUG) while the function ran.
	Warnings []string

	Accelerator string        // "kvm" or "tcg", which is emulation
	Up          time.Duration // from the start of QEMU to the guest's first line
	Elapsed     time.Duration // of QEMU in all
}

// A BootError is a guest that did not come to its own end, whatever its
// emulator's exit status was.
type BootError struct {
	Err error    // what happened, one of the errors below or a fault that the guest named
	Log []string // the last lines of its console
}

// What can happen to a guest.
var (
	ErrGuestPanic   = errors.New("the guest's kernel panicked")
	ErrGuestTimeout = errors.New("the guest did not finish in time")
	ErrGuestSilent  = errors.New("the guest ended without its closing line")
	ErrGuestLost    = errors.New("lines of the guest were lost on its console")
	ErrGuestFault   = errors.New("the guest cannot run the checks")
)

func (e *BootError) Error() string {
	if len(e.Log) == 0 {
		return e.Err.Error() + "; its console stayed empty (a kernel needs CONFIG_SERIAL_8250_CONSOLE to be heard)"
	}
	return fmt.Sprintf("%v; the guest's last lines:\n  %s", e.Err, strings.Join(e.Log, "\n  "))
}

func (e *BootError) Unwrap() error { return e.Err }

// What the guest says of itself, beside the objects of the function it runs:
// one greeting when it is up, one closing line at its end. Both have the key
// reusecheck, so that no other object is taken for them.
type (
	guestGreeting struct {
		Protocol int      `json:"reusecheck"`
		Release  string   `json:"release"`
		Build    string   `json:"build"`
		Missing  []string `json:"missing,omitempty"`
	}
	guestClosing struct {
		Protocol int      `json:"reusecheck"`
		Done     bool     `json:"done"`
		Exit     int      `json:"exit"`
		Objects  int      `json:"objects"`
		Fault    string   `json:"fault,omitempty"`
		Warnings []string `json:"warnings,omitempty"`
	}
	// guestOrders are what the guest finds in guestConfig.
	guestOrders struct {
		Args    []string `json:"args"`
		Modules []string `json:"modules"`
	}
)

// guestProtocol is the version of all three.
const guestProtocol = 1

// guestMark is the name of the environment variable that the kernel makes of a
// parameter it does not know: its presence tells process 1 that it is a guest's.
const guestMark = "REUSECHECK_GUEST"
