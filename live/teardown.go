package live

import "time"

// Teardown is what making and tearing down network namespaces took.
type Teardown struct {
	Made time.Duration // by the calls that make them
	Gone time.Duration // from the first that was let go of to the end of the last purge

	// Counted says that the kernel let its work be counted: the batches that the
	// namespaces were torn down in, and the walks through tables of connections.
	Counted        bool
	Batches, Walks int
}
