package live

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// A walkCounter counts what the kernel does for each batch of namespaces that it
// tears down: the walks through a table of TCP connections, and the TIME_WAIT
// sockets that end meanwhile. It is made of kprobes, which not every kernel has.
type walkCounter struct {
	missing error // why it does not count, nil when it does
	tally   *ebpf.Map
	closers []interface{ Close() error }
}

// What is probed. Each is called through a pointer or from another file than its
// own, so that no compiler makes it a part of its caller.
const (
	batchFunction = "cleanup_net"         // the worker takes the namespaces that are queued
	walkFunction  = "inet_twsk_purge"     // one walk through one table
	endFunction   = "tcp_twsk_destructor" // the end of one TIME_WAIT socket
)

// An entry of the tally has these numbers. The first has them of all batches; the
// others, a ring, of one of the last batches each.
const (
	tallyWalks   = 0 // offsets
	tallyEnded   = 8
	tallyBatches = 16
	tallySize    = 24

	tallyRing = 64 // entries, a power of two
)

type tallyEntry struct{ Walks, Ended, Batches uint64 }

// newWalkCounter gives a counter that may not count: where the kernel does not let
// us, its error says why.
func newWalkCounter() *walkCounter {
	c := &walkCounter{}
	if c.missing = c.open(); c.missing != nil {
		c.release()
	}
	return c
}

func (c *walkCounter) open() (err error) {
	c.tally, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: tallySize, MaxEntries: 1 + tallyRing})
	if err != nil {
		return fmt.Errorf("make a map: %w", err)
	}
	c.closers = append(c.closers, c.tally)
	for _, p := range []struct {
		function     string
		all, ofBatch asm.Instructions
	}{
		{batchFunction, addOne(tallyBatches), clearBatch()},
		{walkFunction, addOne(tallyWalks), addOne(tallyWalks)},
		{endFunction, addOne(tallyEnded), addOne(tallyEnded)},
	} {
		if err := c.probe(p.function, tallyProgram(c.tally.FD(), p.all, p.ofBatch)); err != nil {
			return err
		}
	}
	return nil
}

func (c *walkCounter) probe(function string, program asm.Instructions) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "reusecheck", Type: ebpf.Kprobe, Instructions: program, License: "Dual MIT/GPL"})
	if err != nil {
		return fmt.Errorf("load a program for %s: %w", function, err)
	}
	c.closers = append(c.closers, p)
	l, err := link.Kprobe(function, p, nil)
	if err != nil {
		return fmt.Errorf("a kprobe on %s: %w", function, err)
	}
	c.closers = append(c.closers, l)
	return nil
}

// tallyProgram changes the entry of all batches, and then that of the batch at hand.
// Each finds the entry in R0. Batches do not overlap: there is one worker.
func tallyProgram(tally int, all, ofBatch asm.Instructions) asm.Instructions {
	lookUp := func() asm.Instructions { // the key is in the stack
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, tally),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "done"),
		}
	}
	return slices.Concat(
		asm.Instructions{asm.StoreImm(asm.RFP, -4, 0, asm.Word)},
		lookUp(),
		all,
		asm.Instructions{
			asm.LoadMem(asm.R6, asm.R0, tallyBatches, asm.DWord),
			asm.And.Imm(asm.R6, tallyRing-1),
			asm.Add.Imm(asm.R6, 1),
			asm.StoreMem(asm.RFP, -4, asm.R6, asm.Word),
		},
		lookUp(),
		ofBatch,
		asm.Instructions{asm.Mov.Imm(asm.R0, 0).WithSymbol("done"), asm.Return()},
	)
}

func addOne(offset int16) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R1, 1), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, offset)}
}

func clearBatch() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R0, tallyWalks, asm.R1, asm.DWord),
		asm.StoreMem(asm.R0, tallyEnded, asm.R1, asm.DWord),
	}
}

func (c *walkCounter) counts() bool { return c != nil && c.missing == nil }

// all is the tally of all batches, that at hand included; nothing where nothing is
// counted.
func (c *walkCounter) all() (t tallyEntry, err error) {
	if !c.counts() {
		return t, nil
	}
	return c.entry(0)
}

// of is the tally of one of the last batches.
func (c *walkCounter) of(batch uint64) (tallyEntry, error) {
	return c.entry(uint32(1 + batch%tallyRing))
}

func (c *walkCounter) entry(key uint32) (t tallyEntry, err error) {
	if err = c.tally.Lookup(key, &t); err != nil {
		err = fmt.Errorf("read what was counted: %w", err)
	}
	return t, err
}

func (c *walkCounter) close() {
	if c != nil {
		c.release()
		c.missing = errors.New("the counter is closed")
	}
}

func (c *walkCounter) release() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i].Close()
	}
	c.closers = nil
}
