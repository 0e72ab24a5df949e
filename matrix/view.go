package matrix

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// view is a matrix as it is printed: what stands in each cell, and what it means.
type view struct {
	*Matrix
	codes    []string // of the cells
	patterns []pattern
}

// pattern is a way in which kernels differ, with its letter.
type pattern struct {
	letter string
	words  string
	n      int
}

// same stands in a cell in which kernels do not differ.
const same = "."

func (m *Matrix) view() *view {
	v := &view{Matrix: m}
	letters := map[string]int{}
	for i := range m.Cells {
		c := &m.Cells[i]
		if !m.Comparing() {
			v.codes = append(v.codes, m.code(c))
			continue
		}
		code := same
		if c.Differ != "" {
			at, ok := letters[c.Differ]
			if !ok {
				at = len(v.patterns)
				letters[c.Differ] = at
				v.patterns = append(v.patterns, pattern{letter: reusecheck.ID(at).String(), words: c.Differ})
			}
			v.patterns[at].n++
			code = v.patterns[at].letter
		}
		if m.diverges(c) {
			code += markDiverges
		}
		v.codes = append(v.codes, code)
	}
	return v
}

// sign is a code and what it means.
type sign struct{ Code, Words string }

// legend explains the codes that occur.
func (v *view) legend() []sign {
	var signs []sign
	seen := strings.Join(v.codes, " ")
	add := func(code, words string) {
		if strings.Contains(seen, code) {
			signs = append(signs, sign{code, words})
		}
	}
	if v.Comparing() {
		for _, p := range v.patterns {
			signs = append(signs, sign{p.letter, fmt.Sprintf("%s (%s)", p.words, pairs(p.n))})
		}
		add(same, "the same on all of them")
		add(markDiverges, "an answer is not what a look at every owner gives")
		return signs
	}
	bind := "may bind, but not listen"
	if v.System == reusecheck.UDP {
		bind = "may bind"
	}
	paths := ""
	if v.Running {
		paths = ", in its model: the kernel does not tell"
	}
	add(codeListen, "may bind and listen")
	add(codeBind, bind)
	add(codeRefused, "refused: the address is in use")
	add(codeOther, "refused with another error, or the first socket cannot be made")
	add(codeSkipped, "cannot be tested here")
	add("f", "the bind was granted by the cache"+paths)
	add("s", "the bind was granted after a look at the owners"+paths)
	add("-", "the bind found no owner to look at"+paths)
	add(markDiverges, "an answer is not what a look at every owner gives")
	add(markDisagree, "the kernel is not as its model")
	return signs
}

func pairs(n int) string {
	if n == 1 {
		return "1 pair"
	}
	return fmt.Sprintf("%d pairs", n)
}

// axes says which socket is which.
func (v *view) axes() string {
	second := "asks to bind and listen"
	if v.System == reusecheck.UDP {
		second = "asks to bind"
	}
	return "A row is the first socket, which has the port; a column is the second, which " + second +
		": of the kind in the row with that number, not listening yet."
}

// tally counts the cells.
func (v *view) tally() string {
	if v.Comparing() {
		return fmt.Sprintf("%s; on %d the kernels differ", pairs(len(v.Cells)), len(v.Differences()))
	}
	n := map[string]int{}
	for i := range v.Cells {
		n[v.Cells[i].Outcomes[0].grant()]++
	}
	s := pairs(len(v.Cells))
	sep := ": "
	for _, c := range []sign{{codeListen, "may bind and listen"}, {codeBind, "may bind only"}, {codeRefused, "are refused"},
		{codeOther, "are otherwise"}, {codeSkipped, "cannot be tested"}} {
		if n[c.Code] > 0 {
			s += fmt.Sprintf("%s%d %s", sep, n[c.Code], c.Words)
			sep = ", "
		}
	}
	s += fmt.Sprintf("; %d diverge", len(v.Divergences()))
	if v.Running {
		s += fmt.Sprintf("; in %d the kernel is not as its model", len(v.Disagreements()))
	}
	return s
}

// told is a cell that a reader should not have to look for, why, and its trace.
type told struct {
	cell  *Cell
	why   string
	trace string
}

// told are first the cells that are not as a model, then those that diverge.
func (v *view) told() []told {
	var ts []told
	for _, c := range v.Disagreements() {
		ts = append(ts, told{c, "not as its model: " + c.Disagree, c.Outcomes[0].Trace})
	}
	for _, c := range v.Divergences() {
		for i, o := range v.judged(c) {
			if o.Diverges() {
				ts = append(ts, told{c, "diverges on " + v.Kernels[i] + ": " + o.Summary(), o.Trace})
			}
		}
	}
	return ts
}
