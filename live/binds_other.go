//go:build !linux

package live

import (
	"context"
	"net/netip"
	"time"

	"github.com/reusecheck/reusecheck"
)

// TimeBinds fails.
func TimeBinds(context.Context, reusecheck.Opt, []netip.Addr, uint16, int) (time.Duration, error) {
	return 0, notLinux()
}
