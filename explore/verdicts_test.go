package explore

import (
	"strings"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

func TestWeakestAssumptionsAreEachNeeded(t *testing.T) {
	p := prover(t, "6.18+exact-strict-match")
	d, why, err := p.Weakest(t.Context(), spec.Sound, assume(t, smallProof), 3)
	if err != nil || !d.Proved || len(why) != 0 || d.Assume != assume(t, smallProof) {
		t.Errorf("proved is %v, assuming %s, with %d obstacles: %v", d.Proved, d.Assume, len(why), err)
	}
	p = prover(t, "6.18")
	d, why, err = p.Weakest(t.Context(), spec.Sound, assume(t, smallProof), 3)
	a := d.Assume
	if err != nil || !d.Proved || a == assume(t, smallProof) {
		t.Fatalf("proved is %v, assuming %s: %v", d.Proved, a, err)
	}
	for i := range why {
		if why[i].Proved || a&why[i].Without == 0 {
			t.Errorf("without %s it is proved or %s does not assume it", why[i].Without, a)
		}
		if !p.Prove(spec.Sound, a).Proved || p.Prove(spec.Sound, a&^why[i].Without).Proved {
			t.Errorf("%s can be given up", why[i].Without)
		}
		if why[i].Trace == nil {
			t.Errorf("no history shows why %s is needed", why[i].Without)
		}
	}
}

func TestTheTableTellsEachHistoryOnceAndWhereItIsConfirmed(t *testing.T) {
	shows := Obstacle{Without: "no-set-opt", Assume: "nothing", Pair: "some pair",
		Trace: "socket a tcp4\nbind a 0.0.0.0:40000 => ok\n"}
	rows := []Row{
		{Kernel: "one", Property: "sound", Proved: true, Assume: "no-set-opt", Why: []Obstacle{shows}},
		{Kernel: "two", Property: "sound", Proved: true, Assume: "no-set-opt", Why: []Obstacle{shows}},
		{Kernel: "two", Property: "precise", Why: []Obstacle{{Assume: "no-dev", Pair: "another", World: "v4", Sockets: 3}}},
	}
	var b strings.Builder
	asked := 0
	err := WriteVerdicts(&b, rows, func(tr *rc.Trace, property string) (string, error) {
		asked++
		if property != "sound" || len(tr.Steps) != 2 {
			t.Errorf("%s of %s is to be confirmed", property, tr)
		}
		return "9.9", nil
	})
	if err != nil || asked != 1 {
		t.Fatalf("%d histories were replayed: %v", asked, err)
	}
	for _, want := range []string{
		"| one | sound | no-set-opt | 0 | 0 | no-set-opt: [1](#1) | 1: 9.9 |",
		"| two | sound | no-set-opt | 0 | 0 | no-set-opt: [1](#1) | 1: 9.9 |",
		"| two | precise | **not proved**, whatever is assumed | 0 | 0 | no proof and no history, [2](#2) |  |",
		"No history with up to 3 sockets shows it in the world `v4`.",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "    bind a"); n != 1 {
		t.Errorf("the history is told %d times", n)
	}
}
