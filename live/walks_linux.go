package live

import (
	"errors"
	"fmt"

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

// The tally's first entry has the number of batches so far; those after it are a
// ring of the walks and the ended sockets of the last batches.
const (
	tallyBatches = 64 // a power of two
	tallyWalks   = 0  // offsets in an entry
	tallyEnded   = 8
	tallyEntry   = 16
)

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
	c.tally, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: tallyEntry, MaxEntries: 1 + tallyBatches})
	if err != nil {
		return fmt.Errorf("make a map: %w", err)
	}
	c.closers = append(c.closers, c.tally)
	if err := c.probe(batchFunction, newBatch(c.tally.FD())); err != nil {
		return err
	}
	if err := c.probe(walkFunction, addToBatch(c.tally.FD(), tallyWalks)); err != nil {
		return err
	}
	return c.probe(endFunction, addToBatch(c.tally.FD(), tallyEnded))
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

// newBatch counts a batch, and clears its entry of the ring.
func newBatch(tally int) asm.Instructions {
	return append(entryOfBatch(tally, true),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.R0, tallyWalks, asm.R1, asm.DWord),
		asm.StoreMem(asm.R0, tallyEnded, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("done"),
		asm.Return(),
	)
}

// addToBatch adds one to a number of the batch at hand.
func addToBatch(tally int, offset int16) asm.Instructions {
	return append(entryOfBatch(tally, false),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, offset),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("done"),
		asm.Return(),
	)
}

// entryOfBatch leaves in R0 the entry of the batch at hand, or of the next one,
// which then is at hand. Without one it goes to the symbol done.
func entryOfBatch(tally int, next bool) asm.Instructions {
	lookUp := func() asm.Instructions { // the key is in the stack
		return asm.Instructions{
			asm.LoadMapPtr(asm.R1, tally),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "done"),
		}
	}
	is := append(asm.Instructions{asm.StoreImm(asm.RFP, -4, 0, asm.Word)}, lookUp()...)
	is = append(is, asm.LoadMem(asm.R6, asm.R0, 0, asm.DWord))
	if next { // there is one worker, so nobody else adds
		is = append(is, asm.Add.Imm(asm.R6, 1), asm.StoreMem(asm.R0, 0, asm.R6, asm.DWord))
	}
	is = append(is,
		asm.And.Imm(asm.R6, tallyBatches-1),
		asm.Add.Imm(asm.R6, 1),
		asm.StoreMem(asm.RFP, -4, asm.R6, asm.Word),
	)
	return append(is, lookUp()...)
}

func (c *walkCounter) counts() bool { return c != nil && c.missing == nil }

// batches is how many batches there were, the one at hand included; 0 when nothing
// is counted.
func (c *walkCounter) batches() int {
	var e [2]uint64
	if !c.counts() || c.tally.Lookup(uint32(0), &e) != nil {
		return 0
	}
	return int(e[0])
}

// of gives the walks and the ended TIME_WAIT sockets of one of the last batches.
func (c *walkCounter) of(batch int) (walks, ended int, err error) {
	var e [2]uint64
	if err := c.tally.Lookup(uint32(1+batch%tallyBatches), &e); err != nil {
		return 0, 0, fmt.Errorf("read what was counted: %w", err)
	}
	return int(e[0]), int(e[1]), nil
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
