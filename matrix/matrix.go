package matrix

import (
	"slices"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// Matrix is what kernels answer for every pair of kinds.
type Matrix struct {
	// Command is the command line that made it, for its readers.
	Command string            `json:"command,omitempty"`
	System  reusecheck.System `json:"system"`
	// Kernels are those asked, in the order of each cell's outcomes.
	Kernels []string `json:"kernels"`
	// Running says that Kernels is a running kernel and then its model.
	Running bool   `json:"running"`
	Kinds   []Kind `json:"kinds"`
	// Columns are the kinds that the second socket has, as indices of Kinds; it
	// does not listen yet, whatever its row does.
	Columns []int  `json:"columns"`
	Cells   []Cell `json:"cells"` // row by row, a cell for each column
}

// Cell is one pair: a socket of the kind First has the port, and one of the
// kind Second asks for it. Both are indices of the matrix's kinds.
type Cell struct {
	First    int       `json:"first"`
	Second   int       `json:"second"`
	Outcomes []Outcome `json:"outcomes"` // one a kernel
	// Differ says in what the kernels differ, Disagree in what the running
	// kernel is not as its model; "" for nothing.
	Differ   string `json:"differ,omitempty"`
	Disagree string `json:"disagree,omitempty"`
}

// Outcome is what one kernel answers in a cell.
type Outcome struct {
	// Trace is the pair as a trace that states the kernel's answers.
	Trace string `json:"trace"`
	// Alone says which step of the first socket failed with nobody there, and
	// Skipped what cannot be tested here; nothing is asked then.
	Alone   string `json:"alone,omitempty"`
	Skipped string `json:"skipped,omitempty"`
	// Bind is the second socket's bind. Listen is its listen, asked where the
	// bind was granted and the system has it.
	Bind   *Asked `json:"bind,omitempty"`
	Listen *Asked `json:"listen,omitempty"`
}

// Asked is one request of the second socket, and what came of it.
type Asked struct {
	Answer  string `json:"answer"` // ok or an error's symbol
	Oracle  string `json:"oracle"` // what looking at every owner gives
	Path    string `json:"path"`   // fast, scan, none or unknown
	Visited int    `json:"visited"`
	Owner   string `json:"owner,omitempty"` // who decided, or stands against it
	Rule    string `json:"rule,omitempty"`  // the rule that decided, in words
	Cache   string `json:"cache,omitempty"` // fastreuse/fastreuseport afterwards
	// Open is why the oracle does not judge, "" when it does.
	Open     string   `json:"open,omitempty"`
	Diverges bool     `json:"diverges,omitempty"` // Answer is not the oracle's
	Words    string   `json:"words"`              // all that in a sentence
	Notes    []string `json:"notes,omitempty"`    // properties that the step violates, in words

	result reusecheck.Result
}

// Granted reports whether the answer is ok.
func (a *Asked) Granted() bool { return a != nil && a.Answer == reusecheck.Success.String() }

// Diverges reports whether an answer of the outcome is not the oracle's.
func (o *Outcome) Diverges() bool {
	return o.Bind != nil && o.Bind.Diverges || o.Listen != nil && o.Listen.Diverges
}

// The letters of a cell: what is granted, and how the bind was.
const (
	codeListen  = "L" // may bind and listen
	codeBind    = "B" // may bind, but not listen; of UDP, may bind
	codeRefused = "." // refused: the address is in use
	codeOther   = "!" // another error, or the first socket cannot be made
	codeSkipped = "?" // cannot be tested here
)

// Code is the outcome in one or two letters, see [Matrix.Legend].
func (o *Outcome) Code() string {
	code := o.grant()
	if o.Bind.Granted() {
		code += pathCode(o.Bind.Path)
	}
	return code
}

func (o *Outcome) grant() string {
	switch {
	case o.Skipped != "":
		return codeSkipped
	case o.Bind == nil:
		return codeOther
	case o.Listen.Granted():
		return codeListen
	case o.Bind.Granted():
		return codeBind
	case o.Bind.Answer == reusecheck.EADDRINUSE.String():
		return codeRefused
	}
	return codeOther
}

func pathCode(path string) string {
	switch path {
	case reusecheck.PathFast.String():
		return "f"
	case reusecheck.PathScan.String():
		return "s"
	case reusecheck.PathNone.String():
		return "-"
	}
	return ""
}

// Summary is the outcome in words: the answers and the paths to them.
func (o *Outcome) Summary() string {
	switch {
	case o.Skipped != "":
		return "skipped: " + o.Skipped
	case o.Bind == nil:
		return o.Alone
	}
	s := "bind " + o.Bind.brief()
	if o.Listen != nil {
		s += ", listen " + o.Listen.brief()
	}
	return s
}

func (a *Asked) brief() string {
	s := a.Answer
	if pathCode(a.Path) != "" {
		s += " (" + a.Path + ")"
	}
	if a.Diverges {
		s += ", the oracle says " + a.Oracle
	}
	return s
}

// code is the cell's text in a grid of one kernel, or of a running one: its
// answers, with the path of its model, which a kernel does not tell.
func (m *Matrix) code(c *Cell) string {
	o := &c.Outcomes[0]
	code := o.Code()
	if m.Running && len(c.Outcomes) > 1 && o.Bind.Granted() && c.Disagree == "" {
		code += pathCode(c.Outcomes[1].Bind.Path)
	}
	switch {
	case c.Disagree != "":
		code += markDisagree
	case o.Diverges():
		code += markDiverges
	}
	return code
}

// The marks of a cell.
const (
	markDiverges = "*"
	markDisagree = "#"
)

// Comparing reports whether the matrix is about where modelled kernels differ.
func (m *Matrix) Comparing() bool { return len(m.Kernels) > 1 && !m.Running }

// Disagreements are the cells in which the running kernel is not as its model.
func (m *Matrix) Disagreements() []*Cell {
	return m.where(func(c *Cell) bool { return c.Disagree != "" })
}

// Differences are the cells in which the kernels differ, in answer or path.
func (m *Matrix) Differences() []*Cell {
	return m.where(func(c *Cell) bool { return c.Differ != "" })
}

// Divergences are the cells in which a kernel's answer is not the oracle's. A
// running kernel's model is not asked: it is there to be compared with.
func (m *Matrix) Divergences() []*Cell { return m.where(m.diverges) }

func (m *Matrix) diverges(c *Cell) bool {
	return slices.ContainsFunc(m.judged(c), func(o Outcome) bool { return o.Diverges() })
}

// judged are the outcomes that the oracle judges.
func (m *Matrix) judged(c *Cell) []Outcome {
	if m.Running {
		return c.Outcomes[:1]
	}
	return c.Outcomes
}

// Skipped are the cells that could not be tested.
func (m *Matrix) Skipped() []*Cell {
	return m.where(func(c *Cell) bool {
		return slices.ContainsFunc(c.Outcomes, func(o Outcome) bool { return o.Skipped != "" })
	})
}

func (m *Matrix) where(is func(*Cell) bool) []*Cell {
	var cs []*Cell
	for i := range m.Cells {
		if is(&m.Cells[i]) {
			cs = append(cs, &m.Cells[i])
		}
	}
	return cs
}

// Title says what the matrix is about.
func (m *Matrix) Title() string {
	switch {
	case m.Running && len(m.Kernels) > 1:
		return "Who may share a port on " + m.Kernels[0] + ", held to its model " + m.Kernels[1]
	case m.Comparing():
		return "Where " + strings.Join(m.Kernels, ", ") + " differ on who may share a port"
	}
	return "Who may share a port on " + strings.Join(m.Kernels, ", ")
}
