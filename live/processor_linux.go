package live

import (
	"fmt"
	"runtime"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// processorTries is inheritTries for a connection that says where it arrives: each
// try goes by the hash alone, so that a member of six is missed once in 10^5 times.
const processorTries = 64

// onProcessor runs f on a processor: what it sends by the loopback arrives there.
// The thread's own processors are given back afterwards.
func onProcessor(cpu reusecheck.CPU, f func() error) error {
	if cpu == reusecheck.NoCPU {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the thread's processors: %w", err)
	}
	one.Set(cpu.Number())
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return noProcessor(cpu, err)
	}
	err := f() // as it is: an error number is the step's answer
	if back := unix.SchedSetaffinity(0, &before); back != nil {
		return fmt.Errorf("give the thread its processors back: %w", back)
	}
	return err
}

func noProcessor(cpu reusecheck.CPU, err error) error {
	return &reusecheck.Unsupported{What: "traffic on processor " + cpu.String(),
		Why: fmt.Sprintf("the program cannot run there: %v", err)}
}

// canPin says why connections cannot arrive on both of two processors, nil when
// they can.
func canPin() error {
	for n := range 2 {
		if err := onProcessor(reusecheck.Processor(n), func() error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// setProcessor lets a socket prefer the connections of a processor.
func (s *socket) setProcessor(cpu reusecheck.CPU) error {
	return unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_INCOMING_CPU, cpu.Number())
}
