package live

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/reusecheck/reusecheck"
)

// A redirect hands the connections that arrive in a namespace to the listener
// in its map, whatever their port: what a transparent proxy does. While the map
// is empty it changes nothing.
type redirect struct {
	listener *ebpf.Map
	program  *ebpf.Program
	link     *link.NetNsLink
}

const redirectName = "inherit at another port"

func newRedirect(ns int) (r *redirect, err error) {
	r = &redirect{}
	defer func() {
		if err != nil {
			r.close()
			r = nil
		}
	}()
	if r.listener, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.SockMap, KeySize: 4, ValueSize: 8, MaxEntries: 1}); err != nil {
		return r, redirectError("make a socket map", err)
	}
	if r.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup,
		Instructions: redirectProgram(r.listener.FD()),
	}); err != nil {
		return r, redirectError("load a socket lookup program", err)
	}
	if r.link, err = link.AttachNetNs(ns, r.program); err != nil {
		return r, redirectError("attach a socket lookup program", err)
	}
	return r, nil
}

func redirectError(what string, err error) error {
	if isPermission(err) {
		return &reusecheck.Unsupported{What: redirectName, Why: "the BPF program that redirects a connection takes root, not that of a user namespace"}
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		return &reusecheck.Unsupported{What: redirectName, Why: fmt.Sprintf("%s: %v", what, err)}
	}
	return fmt.Errorf("%s: %s: %w", redirectName, what, err)
}

// redirectProgram assigns the listener in slot 0 of the map to the connection
// that is looked up, itself and not another member of its reuseport group.
func redirectProgram(listener int) asm.Instructions {
	const (
		noReuseport = 2 // BPF_SK_LOOKUP_F_NO_REUSEPORT
		pass        = 1 // SK_PASS
	)
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, listener),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Mov.Imm(asm.R3, noReuseport),
		asm.FnSkAssign.Call(),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.FnSkRelease.Call(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"),
		asm.Return(),
	}
}

func (r *redirect) close() {
	if r.link != nil {
		r.link.Close()
	}
	if r.program != nil {
		r.program.Close()
	}
	if r.listener != nil {
		r.listener.Close()
	}
}

// redirectTo sends what arrives in the namespace to l until done is called.
func (r *runner) redirectTo(l *socket) (done func(), err error) {
	if err := r.ns.canRedirect(); err != nil {
		return nil, err
	}
	m := r.ns.redirect.listener
	if err := m.Update(uint32(0), uint64(l.fd), ebpf.UpdateAny); err != nil {
		return nil, fmt.Errorf("%s: put the listener into the map: %w", redirectName, err)
	}
	return func() { _ = m.Delete(uint32(0)) }, nil // deleting what is there does not fail
}
