package spec

import (
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// TimeWait is the third system: the purge of TIME_WAIT sockets when namespaces
// exit, and the count that tells whether it has to walk through the table.
var TimeWait = &System{
	Name:         reusecheck.TimeWaitExit,
	Doc:          "the purge of TIME_WAIT sockets at the exit of namespaces",
	Properties:   []*Property{Purge, PreciseWalk, Counts},
	Lasting:      true,
	Steps:        28, // two namespaces, each with a pair and its exit, take 16
	Say:          sayTimeWait,
	Explored:     "exits",
	Unproved:     "whether an exit walks is decided by counts of sockets, which no pair of a cache and an owner shows",
	Needs:        []string{"namespace exit"},
	Alone:        "what exits at the same time is one batch to the kernel",
	World:        TimeWaitWorld,
	NewOracle:    func() Oracle { return oracle.NewTimeWait() },
	NewGhost:     func() Ghost { return &remains{} },
	NewGenerator: newTimeWaitGenerator,
	NewMenu:      newTCPMenu,
}

// TimeWaitWorld is everything that a history of namespaces is made of, in small
// domains. Reuse within one namespace is TCP's business: there are just enough
// options for TIME_WAIT sockets to come about and to be in somebody's way.
func TimeWaitWorld() *World {
	return &World{
		Families: []reusecheck.Family{reusecheck.TCP4, reusecheck.TCP6},
		Addrs:    addrs("127.0.0.1", "0.0.0.0", "::1", "::"),
		Ports:    []uint16{40000, 40001},
		Options:  reusecheck.ReuseAddr,
		UIDs:     []uint32{0},
		Devs:     []reusecheck.Dev{reusecheck.NoDev},
		Verbs: map[reusecheck.Verb]bool{
			reusecheck.VBind: true, reusecheck.VListen: true, reusecheck.VConnect: true, reusecheck.VInherit: true,
			reusecheck.VClose: true, reusecheck.VTimeWait: true, reusecheck.VExpire: true,
			reusecheck.VNetns: true, reusecheck.VExit: true,
		},
		Fields:  map[reusecheck.Field]bool{},
		Sockets: 4, // in each namespace
		Nets:    3,
		Batch:   3,
		Tables:  []reusecheck.ConnTable{reusecheck.OwnTable, reusecheck.SharedTable},
		Sysctls: []reusecheck.Sysctl{{Name: "net.ipv4.tcp_child_ehash_entries", Value: "64"}},
	}
}

// remains is the ghost of a system without a cache: it knows whether anything of
// a namespace that is gone was left.
type remains struct {
	admissions
	left int32 // TIME_WAIT sockets, by what the stack said at each exit
}

func (r *remains) Reset() {
	r.admissions.Reset()
	r.left = 0
}

func (r *remains) After(op reusecheck.Op, got reusecheck.Result, live []reusecheck.Socket) reusecheck.Cache {
	if got.Kind == reusecheck.Exited {
		r.left += max(got.Left, 0)
	}
	return r.admissions.After(op, got, live)
}
