package main

import (
	"fmt"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

// noProofs says of a system why the argument about one owner does not carry over.
var noProofs = map[reusecheck.System]string{
	reusecheck.UDP: "its bind ends at the first socket of a list that stands in the way, so that the answer depends on two owners and their order, " +
		"and its look-up is a maximum over all sockets, groups and counters included",
	reusecheck.TimeWaitExit: "whether an exit walks is decided by counts of sockets, which no pair of a cache and an owner shows",
}

// unprovableError is a system for which there is no proof for any number of sockets.
type unprovableError struct{ system reusecheck.System }

func (e *unprovableError) Error() string {
	return fmt.Sprintf("nothing can be proved of %s for any number of sockets: %s (see docs/proof.md); explore visits every state of a small world",
		e.system, noProofs[e.system])
}

// provableSystem is an error for a system that prove is not for.
func provableSystem(name string) error {
	systems, err := spec.SelectSystems(name)
	if err != nil {
		return err
	}
	for _, sys := range systems {
		if sys != spec.TCP {
			return &unprovableError{sys.Name}
		}
	}
	return nil
}
