//go:build !linux

package live

import "io"

// GuestMain returns: this is no guest.
func GuestMain(func(args []string, out io.Writer) int) {}

// RunningKernel fails: there is no Linux to name.
func RunningKernel() (KernelVersion, error) { return KernelVersion{}, notLinux() }
