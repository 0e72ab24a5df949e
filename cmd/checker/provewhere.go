package main

import (
	"fmt"

	"github.com/reusecheck/reusecheck/spec"
)

// unprovableError is a system for which there is no proof for any number of sockets.
type unprovableError struct{ system *spec.System }

func (e *unprovableError) Error() string {
	return fmt.Sprintf("nothing can be proved of %s for any number of sockets: %s (see docs/proof.md); explore visits every state of a small world",
		e.system.Name, e.system.Unproved)
}

// provableSystem is an error for a system that prove is not for.
func provableSystem(name string) error {
	systems, err := spec.SelectSystems(name)
	if err != nil {
		return err
	}
	for _, sys := range systems {
		if sys.Unproved != "" {
			return &unprovableError{sys}
		}
	}
	return nil
}
