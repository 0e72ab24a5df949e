//go:build !linux

package live

import "io"

// GuestMain returns: this is no guest.
func GuestMain(func(args []string, out io.Writer) int) {}
