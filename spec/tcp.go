package spec

import (
	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/oracle"
)

// TCP is the first system: Linux TCP's bind buckets and their
// fastreuse/fastreuseport caches.
var TCP = &System{
	Name:         reusecheck.TCP,
	Doc:          "bind buckets and their fastreuse/fastreuseport caches",
	Properties:   []*Property{Sound, Complete, Precise, Structure},
	Explored:     "v4",
	Packed:       true,
	Cache:        Precise,
	World:        TCPWorld,
	NewOracle:    func() Oracle { return oracle.New() },
	NewGhost:     newTCPGhost,
	NewGenerator: newTCPGenerator,
	NewMenu:      newTCPMenu,
}

// Systems are all systems under test.
var Systems = []*System{TCP, UDP, TimeWait}

// Default is the system where none is named.
var Default = Systems[0]
