// Package repro turns a trace into a program that somebody else can use: a
// maintainer runs it on a kernel, a reviewer puts it into the kernel's tree.
//
// Every format is written from one [reusecheck.Trace] by [Generate]. A step
// that a format cannot express is refused with an [*Inexpressible] that names
// it; no step is ever left out. The same trace gives the same text.
//
// The formats that run in user space (c, python, go) make a network namespace
// of their own, print each step with the kernel's answer in the trace language,
// and end with one of three exit statuses: [ExitAgrees], [ExitDiverges] or
// [ExitCannot]. The world they make is that of package live: lo with
// 127.0.0.0/8, ::1, fd00::1 and fd00::2, and the veth ends d1 and d2, down.
package repro

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// What the exit status of a generated program says. ExitDiverges is given for
// any answer that is not the oracle's; the program's last line tells whether it
// is the one that the trace states.
const (
	ExitAgrees   = 0 // every answer is the oracle's
	ExitDiverges = 1 // the divergence is reproduced
	ExitCannot   = 2 // the program could not run here; the last line says why
)

// Format is one kind of program.
type Format struct {
	Name string // what Generate takes
	Doc  string // what it is, one line
	Ext  string // how a file of it is called after its name, with the dot

	generate func(*reusecheck.Trace, Info) ([]byte, error)
}

// WithControl is the format that has a control beside the finding.
const WithControl = "selftest"

var formats []Format

func init() {
	formats = []Format{
		{"c", "one C file for user space, no dependency, in a network namespace of its own", ".c", generateC},
		{"python", "a Python program, standard library only, in a network namespace of its own", ".py", generatePython},
		{"go", "a Go program, standard library only, in a network namespace of its own", ".go", generateGo},
		{WithControl, "a C case in the form of the kernel's selftests, the control beside the finding", "-selftest.c", generateSelftest},
		{"bench", "a C program that times the trace's binds over and over, for findings about cost", "-bench.c", generateBench},
		{"packetdrill", "a packetdrill script, for traces with one IPv4 address and port", ".pkt", generatePacketdrill},
		{"syz", "a program for syzkaller's tools", ".syz", generateSyz},
		{"kunit", "a KUnit case that binds inside the kernel and looks at the bind bucket", "_test.c", generateKUnit},
	}
}

// Formats lists the formats, in the order of their usefulness.
func Formats() []Format { return append([]Format(nil), formats...) }

// Info is what is said of a trace beside what it says itself.
type Info struct {
	// Name is what the program is called after; by default the trace's file
	// without its extension.
	Name string
	// File is the name of the program's file; by default Name and the format's Ext.
	File string
	// Finding is the finding in a sentence; by default it is made from the
	// trace's divergences.
	Finding string
	// Kernels are the kernels affected; by default the trace's.
	Kernels string
	// Control is a trace of the same shape that does not diverge, which
	// the format [WithControl] has beside the finding.
	Control *reusecheck.Trace
	// Caches are the states of the port's bind bucket that a healthy kernel
	// has after each step, by the step's index; one that does not exist is
	// not checked. For formats that look into the kernel.
	Caches []reusecheck.Cache
}

// Inexpressible is the error of a trace with a step that a format has no words for.
type Inexpressible struct {
	Format string
	Line   int    // of the trace's file, from 1; 0 when unknown
	Step   string // the step in the trace language, or the header
	Why    string
}

func (e *Inexpressible) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	return fmt.Sprintf("%sformat %s cannot express %q: %s", where, e.Format, e.Step, e.Why)
}

// unset refuses the first header with a setting of the namespace, in a format that
// makes none.
func unset(t *reusecheck.Trace, format, why string) error {
	switch c := &t.Config; {
	case c.Ports.Size() > 0:
		return &Inexpressible{Format: format, Step: "ports " + c.Ports.String(), Why: why}
	case len(c.Sysctl) > 0:
		return &Inexpressible{Format: format, Step: "sysctl " + c.Sysctl[0].Name + " " + c.Sysctl[0].Value, Why: why}
	}
	return nil
}

// UnknownFormat is the error of a format that there is not.
type UnknownFormat struct{ Name string }

func (e *UnknownFormat) Error() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	did := ""
	if near := reusecheck.Nearest(e.Name, names); near != "" {
		did = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Sprintf("there is no format %q%s; choose one of %s", e.Name, did, strings.Join(names, ", "))
}

// Generate writes t as a program. Its errors are [*UnknownFormat],
// [*Inexpressible] and those of [reusecheck.Trace.Validate].
func Generate(t *reusecheck.Trace, format string, info Info) ([]byte, error) {
	for _, f := range formats {
		if f.Name == format {
			if err := t.Validate(); err != nil {
				return nil, err
			}
			if err := processors(t, format); err != nil {
				return nil, err
			}
			return f.generate(t, info.withDefaults(t, f.Ext))
		}
	}
	return nil, &UnknownFormat{Name: format}
}

func (info Info) withDefaults(t *reusecheck.Trace, ext string) Info {
	if info.Name == "" {
		info.Name = strings.TrimSuffix(filepath.Base(t.File), filepath.Ext(t.File))
	}
	if info.Name == "" || info.Name == "." || info.Name == "-" {
		info.Name = "repro"
	}
	if info.File == "" {
		info.File = info.Name + ext
	}
	if info.Kernels == "" {
		info.Kernels = t.Kernels.String()
	}
	if info.Finding == "" {
		info.Finding = sentence(t)
	}
	return info
}

// stem is the file's name without its extension: what the program is built to.
func (info Info) stem() string { return strings.TrimSuffix(info.File, filepath.Ext(info.File)) }

// sentence says in words what a trace shows.
func sentence(t *reusecheck.Trace) string {
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Oracle.Kind != reusecheck.Unstated {
			return fmt.Sprintf("%q is answered with %s; looking at every owner gives %s",
				s.Op.Text(t.Name), stated(s.Want, t.Name), stated(s.Oracle, t.Name))
		}
	}
	return "the kernel answers as the oracle does, which looks at every owner"
}

func stated(a reusecheck.Answer, names func(reusecheck.ID) string) string {
	if a.Kind == reusecheck.Unstated {
		return "something else"
	}
	return a.Text(names)
}
