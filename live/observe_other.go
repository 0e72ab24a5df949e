//go:build !linux

package live

// Observer reads a Linux kernel's bind buckets; there are none here.
type Observer struct{}

// NewObserver says that this system has no bind buckets to read.
func NewObserver() (*Observer, error) { return nil, unobservable("this is not Linux") }

// HasPair reports false.
func (*Observer) HasPair() bool { return false }

// Read gives nothing.
func (*Observer) Read([]Observation) ([]Observation, error) {
	return nil, unobservable("this is not Linux")
}

// Close does nothing.
func (*Observer) Close() error { return nil }
