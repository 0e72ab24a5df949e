package matrix

import (
	"fmt"
	"strings"

	"github.com/reusecheck/reusecheck/oracle"
	"github.com/reusecheck/reusecheck/spec"
)

// compare notes in what a cell's outcomes are not alike.
func (m *Matrix) compare(c *Cell) {
	if len(c.Outcomes) < 2 {
		return
	}
	if m.Running {
		c.Disagree = disagreement(&c.Outcomes[0], &c.Outcomes[1])
		return
	}
	for i := range c.Outcomes {
		if c.Outcomes[i].pattern() != c.Outcomes[0].pattern() {
			c.Differ = m.pattern(c)
			return
		}
	}
}

// pattern is what kernels are compared by: answers and paths.
func (o *Outcome) pattern() string { return o.Summary() }

// pattern is what each of the kernels answers, in words.
func (m *Matrix) pattern(c *Cell) string {
	var s []string
	for i := range c.Outcomes {
		s = append(s, fmt.Sprintf("%s: %s", m.Kernels[i], c.Outcomes[i].pattern()))
	}
	return strings.Join(s, "; ")
}

// disagreement says in what a running kernel is not as its model. The kernel
// does not tell its path, so that answers count, and the caches where it shows them.
func disagreement(kernel, model *Outcome) string {
	switch {
	case kernel.Skipped != "" || model.Skipped != "":
		return ""
	case kernel.Alone != model.Alone:
		return fmt.Sprintf("of the first socket alone the kernel says %q, its model %q", kernel.Alone, model.Alone)
	}
	if s := disagree("bind", kernel.Bind, model.Bind); s != "" {
		return s
	}
	return disagree("listen", kernel.Listen, model.Listen)
}

func disagree(verb string, kernel, model *Asked) string {
	switch {
	case kernel == nil || model == nil:
		return "" // not asked of either: what came before it is the same
	case kernel.Answer != model.Answer:
		return fmt.Sprintf("%s is answered %s; its model says %s", verb, kernel.Answer, model.Answer)
	}
	o := spec.Observation{Got: kernel.result, Verdict: oracle.Verdict{Agrees: true, Reference: &model.result}}
	if spec.SameCache.Check(&o).Property != "" {
		return fmt.Sprintf("after %s the cache is %s; in its model it is %s", verb, kernel.Cache, model.Cache)
	}
	return ""
}
