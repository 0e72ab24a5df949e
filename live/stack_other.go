//go:build !linux

package live

import (
	"runtime"

	"github.com/reusecheck/reusecheck"
)

// Stack is the running kernel; there is none to test on this system.
type Stack struct{}

// Open fails: only Linux has the short cuts under test.
func Open(Options) (*Stack, error) { return nil, notLinux() }

func notLinux() *Unavailable {
	return &Unavailable{
		What: "Linux",
		Why:  "this is " + runtime.GOOS,
		Do:   "run it on Linux, or check the modelled kernels, which run anywhere",
	}
}

// Serve returns at once.
func Serve() {}

// Release is "" where the running kernel is not Linux.
func Release() string { return "" }

// Features says that nothing is there.
func Features() []Feature {
	return []Feature{{Name: "Linux", Why: "this is " + runtime.GOOS}}
}

// Features says that nothing is there.
func (*Stack) Features() []Feature { return Features() }

// Reset fails.
func (*Stack) Reset(reusecheck.Config) error { return notLinux() }

// Do fails.
func (*Stack) Do(reusecheck.Op) (reusecheck.Result, error) {
	return reusecheck.Result{}, notLinux()
}

// Descriptor finds nothing.
func (*Stack) Descriptor(reusecheck.ID) (int, bool) { return -1, false }

// Namespaces is 0.
func (*Stack) Namespaces() int { return 0 }

// Close does nothing.
func (*Stack) Close() error { return nil }
