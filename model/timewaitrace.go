package model

import (
	"fmt"

	rc "github.com/reusecheck/reusecheck"
)

// Waiting is a TIME_WAIT socket that two exits at once meet in the shared table.
type Waiting struct {
	Exit int  // whose namespace it is of, 0 or 1
	Six  bool // of an IPv6 socket
}

// ExitRace is two exits of one namespace each that run at once: a failed clone
// unwinds while the worker tears down what is queued. Both namespaces are dead
// when it begins, and each walk kills what it finds of either. Timers do not fire.
type ExitRace struct {
	rules TimeWaitRules
	waits []Waiting
}

// MaxWaiting is how many TIME_WAIT sockets an [ExitRace] can have.
const MaxWaiting = 6

// RaceState is one moment of an [ExitRace]. It is comparable.
type RaceState struct {
	row     [2]row
	cleared [2]bool
	exits   [2]exitState
	waits   [MaxWaiting]waitState
	lock    int8 // one more than the exit that holds it
	warned  bool
	used    bool
}

type exitState struct {
	at    phase
	holds int8 // one more than the socket that it has killed and not yet taken off the count
}

type waitState uint8

const (
	inTable waitState = iota
	killed            // out of the table, and still counted
	counted           // off the count
)

// phase is how far an exit is.
type phase uint8

const (
	atPass6 phase = iota
	atWalk6
	atExit4
	atLock
	atPass4
	atWalk4
	atGiveBack
	atUnlock
	atEnd
)

// NewExitRace makes the race of a kernel with these TIME_WAIT sockets.
func NewExitRace(p *Profile, waits []Waiting) (*ExitRace, error) {
	if len(waits) > MaxWaiting {
		return nil, &rc.Unsupported{What: fmt.Sprintf("%d TIME_WAIT sockets", len(waits)), Why: fmt.Sprintf("a race has %d at most", MaxWaiting)}
	}
	for _, w := range waits {
		if w.Exit != 0 && w.Exit != 1 {
			return nil, fmt.Errorf("exit %d of a TIME_WAIT socket: there are 0 and 1", w.Exit)
		}
	}
	return &ExitRace{rules: p.timewait, waits: waits}, nil
}

// Start is the moment at which both begin.
func (x *ExitRace) Start() RaceState {
	var s RaceState
	for e := range s.row {
		s.row[e].refs = x.rules.row.own()
	}
	for _, w := range x.waits {
		s.row[w.Exit].refs++
	}
	for i := len(x.waits); i < MaxWaiting; i++ {
		s.waits[i] = counted
	}
	return s
}

// Step is the next step of one exit: the moment after it, and what is done. It is
// false for an exit that has ended, or that has to wait for the other.
func (x *ExitRace) Step(s RaceState, exit int) (RaceState, string, bool) {
	me := &s.exits[exit]
	name := [2]string{"A", "B"}[exit]
	if me.at == atLock && x.rules.exclusive && s.lock != 0 {
		return s, "", false
	}
	switch me.at {
	case atPass6:
		if x.rules.onePass || x.rules.oneFamily {
			me.at = atExit4
			return x.Step(s, exit)
		}
		return s, x.decide(&s, exit, only6, name, "IPv6"), true
	case atWalk6:
		return s, x.walkOn(&s, exit, only6, name, "IPv6"), true
	case atExit4:
		me.at++
		if x.rules.row != rowBlock {
			return x.Step(s, exit)
		}
		x.drop(&s, exit)
		s.cleared[exit] = x.rules.skip == skipProposed && s.row[exit].freed
		return s, name + " gives back its own 1 in its IPv4 exit", true
	case atLock:
		me.at++
		if !x.rules.exclusive {
			return x.Step(s, exit)
		}
		s.lock = int8(exit) + 1
		return s, name + " begins its batch exit, which excludes the other's", true
	case atPass4:
		return s, x.decide(&s, exit, x.lastTakes(), name, "IPv4"), true
	case atWalk4:
		return s, x.walkOn(&s, exit, x.lastTakes(), name, "IPv4"), true
	case atGiveBack:
		me.at++
		if x.rules.row != rowInside {
			return x.Step(s, exit)
		}
		x.drop(&s, exit)
		text := name + " gives back its own 1"
		if n := s.row[exit].refs; n != 0 {
			s.warned = true
			text += fmt.Sprintf(", which is not the last: its death row counts %d", n)
		}
		return s, text, true
	case atUnlock:
		me.at++
		if !x.rules.exclusive {
			return s, name + " ends", true
		}
		s.lock = 0
		return s, name + " ends its batch exit", true
	}
	return s, "", false
}

func (x *ExitRace) lastTakes() families {
	if x.rules.onePass && !x.rules.oneFamily {
		return bothFams
	}
	return only4
}

// decide is the beginning of a pass.
func (x *ExitRace) decide(s *RaceState, exit int, take families, name, pass string) string {
	me := &s.exits[exit]
	asks := true
	switch {
	case x.rules.noPurge:
		asks = false
	case x.rules.skip == skipProposed && take == only4:
		asks = !s.cleared[exit]
	case x.rules.skip != skipNever:
		s.used = s.used || s.row[exit].freed
		asks = s.row[exit].refs != x.rules.row.own()
	}
	if !asks {
		me.at += 2
		return fmt.Sprintf("%s leaves out the walk of its %s pass", name, pass)
	}
	me.at++
	return fmt.Sprintf("%s begins the walk of its %s pass", name, pass)
}

// walkOn is the next step of a walk: it kills a socket, takes off the count the
// one that it has killed, or reaches the end.
func (x *ExitRace) walkOn(s *RaceState, exit int, take families, name, pass string) string {
	me := &s.exits[exit]
	if me.holds > 0 {
		i := me.holds - 1
		me.holds, s.waits[i] = 0, counted
		x.drop(s, x.waits[i].Exit)
		return fmt.Sprintf("%s takes %s off the count", name, x.socket(int(i)))
	}
	for i, w := range x.waits {
		if s.waits[i] == inTable && take[familyIndex(w.Six)] {
			s.waits[i], me.holds = killed, int8(i)+1
			return fmt.Sprintf("%s finds and kills %s", name, x.socket(i))
		}
	}
	me.at++
	return fmt.Sprintf("%s reaches the end of the table in its %s pass", name, pass)
}

func (x *ExitRace) socket(i int) string {
	w, family := x.waits[i], "IPv4"
	if w.Six {
		family = "IPv6"
	}
	return fmt.Sprintf("%s TIME_WAIT socket %d, of %s", family, i+1, [2]string{"A", "B"}[w.Exit])
}

func (x *ExitRace) drop(s *RaceState, exit int) {
	r := &s.row[exit]
	s.used = s.used || r.freed
	if r.refs--; r.refs == 0 && x.rules.row == rowBlock {
		r.freed = true
	}
}

// RaceFault is what can go wrong when two exits run at once.
type RaceFault string

// The faults of an [ExitRace].
const (
	RaceWarns RaceFault = "a namespace's own 1 is not the last"
	RaceUses  RaceFault = "a death row is used after it is freed"
	RaceLoses RaceFault = "a TIME_WAIT socket is left, or counted, when both have ended"
)

// Faults are what has gone wrong by this moment; what is left is told at the end.
func (x *ExitRace) Faults(s RaceState) (faults []RaceFault) {
	if s.warned {
		faults = append(faults, RaceWarns)
	}
	if s.used {
		faults = append(faults, RaceUses)
	}
	if s.exits[0].at != atEnd || s.exits[1].at != atEnd {
		return faults
	}
	for e := range s.row {
		if s.row[e].refs != 0 {
			return append(faults, RaceLoses)
		}
	}
	for _, w := range s.waits {
		if w != counted {
			return append(faults, RaceLoses)
		}
	}
	return faults
}
