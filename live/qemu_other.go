//go:build !linux

package live

import (
	"context"

	"github.com/reusecheck/reusecheck"
)

// Boot needs the Linux build of this program, which is the guest's first one.
func Boot(context.Context, BootOptions) (*BootResult, error) {
	return nil, &reusecheck.Unsupported{What: "kernels in QEMU",
		Why: "a guest starts this very program, and it is not built for Linux"}
}
