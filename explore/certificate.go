package explore

import "io"

// Certificate writes the proof as SMT-LIB 2.
func (p *Prover) Certificate(out io.Writer, a Assumption) error { return nil }
