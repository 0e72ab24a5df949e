package reusecheck

// Trace is a sequence of steps in a namespace of its own, with what is said of
// it: the project's one exchange format. See [Parse] for its text.
type Trace struct {
	File   string // where it was read from, for messages; not part of the text
	Title  string
	Source string
	// Kernels are those whose answers the steps state.
	Kernels KernelSet
	Config  Config
	// StatesAll and StatesTCP say that "kernels all" and "system tcp", the
	// defaults, were written out, so that printing writes them out again.
	StatesAll, StatesTCP bool
	// Names are the sockets' (and namespaces') names by ID. One that is
	// missing is the canonical one.
	Names []string
	Steps []Step

	headers []header // where they were read, for messages; not part of the text
}

// Step is an operation with the answers that are stated of it.
type Step struct {
	Op Op
	// Want is the kernels' answer, Oracle the reference answer where it
	// differs. Unstated when the trace says nothing.
	Want, Oracle Answer
	Line         int // where it stands in its file, from 1; 0 when made by a program
}

// Name is id's name in the trace, with "'s other end" for a nameless one.
func (t *Trace) Name(id ID) string {
	switch {
	case id.IsOtherEnd():
		return t.Name(id.OtherEnd()) + "'s other end"
	case id >= 0 && int(id) < len(t.Names):
		return t.Names[id]
	}
	return id.String()
}

// Diverges reports whether the trace states a divergence: it is a counterexample.
func (t *Trace) Diverges() bool {
	for i := range t.Steps {
		if t.Steps[i].Oracle.Kind != Unstated {
			return true
		}
	}
	return false
}

// Clone is a copy that shares nothing with t.
func (t *Trace) Clone() *Trace {
	c := *t
	c.Config.Sysctl = append([]Sysctl(nil), t.Config.Sysctl...)
	c.Names = append([]string(nil), t.Names...)
	c.Steps = append([]Step(nil), t.Steps...)
	for i := range c.Steps {
		c.Steps[i].Op.Batch = append([]ID(nil), c.Steps[i].Op.Batch...)
	}
	return &c
}
