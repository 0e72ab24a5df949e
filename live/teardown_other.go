//go:build !linux

package live

import "context"

// TimeNamespaces fails.
func TimeNamespaces(context.Context, int, int) (Teardown, error) { return Teardown{}, notLinux() }
