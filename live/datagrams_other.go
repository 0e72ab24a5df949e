//go:build !linux

package live

import (
	"context"
	"time"
)

// TimeDatagrams fails.
func TimeDatagrams(context.Context, int, int) (time.Duration, error) { return 0, notLinux() }
