package spec

import "github.com/reusecheck/reusecheck"

// Contradiction is an answer that is other than its trace states.
type Contradiction struct {
	// Oracle says that it is the reference answer.
	Oracle bool
	// Stated is what the trace says. Unstated when it says nothing, and so
	// no divergence where there is one.
	Stated reusecheck.Answer
	Got    reusecheck.Answer
}

// Contradicts compares what a step states with what was observed. A step that
// states no oracle's answer says that there is no divergence. Where the
// documents leave a step open nothing can be held against it.
func Contradicts(st reusecheck.Step, o *Observation) (Contradiction, bool) {
	switch v := &o.Verdict; {
	case !st.Want.Matches(o.Got.Answer):
		return Contradiction{Stated: st.Want, Got: o.Got.Answer}, true
	case v.Open != "":
	case st.Oracle.Kind == reusecheck.Unstated && !v.Agrees,
		st.Oracle.Kind != reusecheck.Unstated && (v.Agrees || !st.Oracle.Matches(v.Want)):
		return Contradiction{Oracle: true, Stated: st.Oracle, Got: v.Want}, true
	}
	return Contradiction{}, false
}
