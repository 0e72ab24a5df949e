package live

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

// A process with several threads cannot enter a user namespace, and a Go
// program always has several. So without privileges the program runs a copy of
// itself that the kernel starts inside one, and speaks with it over two pipes.

// helperVariable tells the copy what it is for.
const helperVariable = "REUSECHECK_LIVE_HELPER"

// request is what the copy is asked: exactly one of its fields is set.
type request struct {
	Open     *Options
	Reset    *reusecheck.Config
	Op       *reusecheck.Op
	Features bool
}

type reply struct {
	Result     reusecheck.Result
	Features   []Feature
	Namespaces int
	Err        *wireError
}

// wireError is an error that keeps the types that callers ask for.
type wireError struct {
	Unsupported *reusecheck.Unsupported
	Text        string
}

func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error()}
	errors.As(err, &w.Unsupported)
	return w
}

func (w *wireError) error() error {
	switch {
	case w == nil:
		return nil
	case w.Unsupported != nil:
		return w.Unsupported
	}
	return errors.New(w.Text)
}

// Serve makes a program fit to test the running kernel without privileges: call
// it first thing in main (and in TestMain). In a process that [Open] started as
// its helper it answers until the other side is gone, and does not return;
// otherwise it returns at once.
func Serve() {
	if os.Getenv(helperVariable) == "" {
		return
	}
	signal.Ignore(os.Interrupt) // the other side decides what an interrupt ends
	in, out := os.NewFile(3, "requests"), os.NewFile(4, "replies")
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	if in == nil || out == nil {
		fmt.Fprintln(os.Stderr, helperVariable+" is set, but nobody asks: unset it")
		os.Exit(2)
	}
	if err := serve(in, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(in io.Reader, out io.Writer) error {
	dec, enc := gob.NewDecoder(in), gob.NewEncoder(out)
	var r *runner
	for {
		var q request
		if err := dec.Decode(&q); err == io.EOF {
			if r != nil {
				return r.Close()
			}
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		var a reply
		var err error
		switch {
		case q.Open != nil:
			r, err = openRunner(*q.Open)
		case r == nil:
			err = errors.New("the kernel is not open")
		case q.Reset != nil:
			err = r.Reset(*q.Reset)
		case q.Op != nil:
			a.Result, err = r.Do(*q.Op)
		case q.Features:
			a.Features = r.Features()
		}
		a.Err = toWire(err)
		if r != nil {
			a.Namespaces = r.namespaces
		}
		if err := enc.Encode(&a); err != nil {
			return fmt.Errorf("write a reply: %w", err)
		}
	}
}

// A helper is the engine that asks the copy.
type helper struct {
	cmd        *exec.Cmd
	requests   *os.File
	replies    *os.File
	stderr     *bytes.Buffer
	enc        *gob.Encoder
	dec        *gob.Decoder
	namespaces int
}

func openHelper(o Options) (*helper, error) {
	no := func(err error) *Unavailable {
		return &Unavailable{What: "network namespace", Why: err.Error(),
			Do: "run as root, or allow unprivileged user namespaces (sysctl user.max_user_namespaces)"}
	}
	if os.Getenv(helperVariable) != "" {
		return nil, no(errors.New("this is a helper already, and the program does not call live.Serve first"))
	}
	h, err := startHelper()
	if err != nil {
		return nil, no(fmt.Errorf("a copy of the program in a user namespace: %w", err))
	}
	o.UserNamespace = false
	if _, err := h.ask(request{Open: &o}); err != nil {
		h.Close()
		return nil, no(err)
	}
	return h, nil
}

func startHelper() (h *helper, err error) {
	h = &helper{stderr: new(bytes.Buffer)}
	theirIn, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	replies, theirOut, err := os.Pipe()
	if err != nil {
		requests.Close()
		return nil, err
	}
	defer theirOut.Close()
	h.requests, h.replies = requests, replies
	h.enc, h.dec = gob.NewEncoder(requests), gob.NewDecoder(replies)
	h.cmd = exec.Command("/proc/self/exe")
	h.cmd.Env = append(os.Environ(), helperVariable+"=1")
	h.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	h.cmd.Stderr = h.stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := h.cmd.Start(); err != nil {
		requests.Close()
		replies.Close()
		return nil, err
	}
	return h, nil
}

func (h *helper) ask(q request) (reply, error) {
	var a reply
	if err := h.enc.Encode(&q); err != nil {
		return a, h.died(err)
	}
	if err := h.dec.Decode(&a); err != nil {
		return a, h.died(err)
	}
	h.namespaces = a.Namespaces
	return a, a.Err.error()
}

func (h *helper) died(err error) error {
	h.requests.Close()
	_ = h.cmd.Wait() // its output says more than its status
	if said := bytes.TrimSpace(h.stderr.Bytes()); len(said) > 0 {
		return fmt.Errorf("the helper in the user namespace ended: %s", said)
	}
	return fmt.Errorf("the helper in the user namespace ended without an answer (a program must call live.Serve first thing in main): %w", err)
}

func (h *helper) Reset(cfg reusecheck.Config) error {
	_, err := h.ask(request{Reset: &cfg})
	return err
}

func (h *helper) Do(op reusecheck.Op) (reusecheck.Result, error) {
	a, err := h.ask(request{Op: &op})
	return a.Result, err
}

func (h *helper) Features() []Feature {
	a, err := h.ask(request{Features: true})
	if err != nil {
		return []Feature{{Name: "network namespace", Why: err.Error()}}
	}
	return a.Features
}

func (h *helper) Descriptor(reusecheck.ID) (int, bool) { return -1, false }
func (h *helper) Namespaces() int                      { return h.namespaces }

// Close ends the copy, which takes its namespaces with it.
func (h *helper) Close() error {
	h.requests.Close()
	err := h.cmd.Wait()
	h.replies.Close()
	if err != nil {
		return fmt.Errorf("the helper in the user namespace: %w", err)
	}
	return nil
}
