package explore

import (
	"math/big"

	"github.com/reusecheck/reusecheck/model"
)

// ExitReport is what all interleavings of two exits come to.
type ExitReport struct {
	States        int
	Interleavings *big.Int // from both beginning to both having ended
	// Shortest has, for each fault that some interleaving leads to, the steps of
	// a shortest one.
	Shortest map[model.RaceFault][]string
}

// Exits runs two exits at once in every order of their steps.
func Exits(race *model.ExitRace) ExitReport {
	type from struct {
		state model.RaceState
		text  string
	}
	start := race.Start()
	came := map[model.RaceState]from{start: {}}
	rep := ExitReport{Shortest: map[model.RaceFault][]string{}}
	for layer := []model.RaceState{start}; len(layer) > 0; {
		var next []model.RaceState
		for _, s := range layer {
			for _, f := range race.Faults(s) {
				if rep.Shortest[f] != nil {
					continue
				}
				var steps []string
				for at := s; at != start; at = came[at].state {
					steps = append([]string{came[at].text}, steps...)
				}
				rep.Shortest[f] = steps
			}
			for exit := range 2 {
				to, text, ok := race.Step(s, exit)
				if !ok {
					continue
				}
				if _, met := came[to]; !met {
					came[to] = from{s, text}
					next = append(next, to)
				}
			}
		}
		layer = next
	}
	rep.States = len(came)
	rep.Interleavings = orders(race, start, map[model.RaceState]*big.Int{})
	return rep
}

// orders counts the ways from a moment to the end. A state is met again by ways
// of other lengths, so that they are counted from its end.
func orders(race *model.ExitRace, s model.RaceState, known map[model.RaceState]*big.Int) *big.Int {
	if n := known[s]; n != nil {
		return n
	}
	n, ended := new(big.Int), true
	for exit := range 2 {
		if to, _, ok := race.Step(s, exit); ok {
			ended = false
			n.Add(n, orders(race, to, known))
		}
	}
	if ended {
		n.SetInt64(1)
	}
	known[s] = n
	return n
}
