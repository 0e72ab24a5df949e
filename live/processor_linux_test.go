package live

import (
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

func TestAThreadRunsOnTheProcessorAndGetsItsOwnBack(t *testing.T) {
	if err := canPin(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	for n := range 2 {
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			t.Fatal(err)
		}
		err := onProcessor(reusecheck.Processor(n), func() error {
			if err := unix.SchedGetaffinity(0, &during); err != nil {
				return err
			}
			return unix.ECONNREFUSED
		})
		if err != unix.ECONNREFUSED {
			t.Errorf("the error became %v", err)
		}
		if during.Count() != 1 || !during.IsSet(n) {
			t.Errorf("on processor %d the thread may run on %d processors", n, during.Count())
		}
		if err := unix.SchedGetaffinity(0, &after); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("the thread's processors changed:\n%s", d)
		}
	}
}

func TestAProcessorThatIsNotThereIsRefusedByName(t *testing.T) {
	ran := false
	err := onProcessor(reusecheck.Processor(reusecheck.MaxProcessor), func() error { ran = true; return nil })
	var lacks *reusecheck.Unsupported
	if !errors.As(err, &lacks) || lacks.What != "traffic on processor 1023" || ran {
		t.Errorf("got %v, and ran it: %v", err, ran)
	}
	// The thread still runs where it ran.
	if err := onProcessor(reusecheck.Processor(0), func() error { return nil }); err != nil {
		t.Error(err)
	}
}

// The kernel tells whom a socket asked for, and the step changes it.
func TestTheKernelHasTheProcessorThatATraceGives(t *testing.T) {
	s := open(t, Options{})
	r := runnerOf(t, s)
	for _, st := range script(t, "socket a tcp4 cpu=1\nset a cpu=0\nset a cpu=none\n").Steps {
		if res, err := s.Do(st.Op); err != nil || res.Answer != reusecheck.Success {
			t.Fatalf("%s: %v %v", st.Op, res.Answer, err)
		}
		got, err := unix.GetsockoptInt(r.get(0).fd, unix.SOL_SOCKET, unix.SO_INCOMING_CPU)
		if err != nil || got != st.Op.CPU.Number() {
			t.Errorf("after %s the socket wants processor %d (%v)", st.Op, got, err)
		}
	}
}
