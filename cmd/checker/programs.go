package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
	"github.com/reusecheck/reusecheck/spec"
)

// programFlags say which programs are written beside the traces of a search.
type programFlags struct{ formats []string }

func (p *programFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&p.formats, "repro", nil,
		"also write each finding as programs of these formats beside its trace (see checker repro)")
	complete(cmd, "repro", formatWords)
}

// into makes a reporter write the programs, into the directory of its traces.
func (p *programFlags) into(r *reporter) error {
	formats, err := pickFormats(p.formats)
	if err != nil {
		return fmt.Errorf("--repro: %w", err)
	}
	if len(formats) > 0 && r.dir == "" {
		return errors.New("--repro writes beside the traces: give the directory for them with --out")
	}
	r.formats = formats
	return nil
}

// programs writes a finding's programs beside its trace. A format that has no
// words for a step is told of, and does not stop the others.
func (r *reporter) programs(f *finding) error {
	if len(r.formats) == 0 {
		return nil
	}
	t, err := reusecheck.Parse(f.File, []byte(f.Trace))
	if err != nil {
		return err
	}
	info, err := infoOf(f, t)
	if err != nil {
		return err
	}
	for _, format := range r.formats {
		info.File = ""
		text, err := repro.Generate(t, format.Name, info)
		if no := (*repro.Inexpressible)(nil); errors.As(err, &no) {
			fmt.Fprintf(r.std.errs, "no program: %v\n", inexpressible(t, err))
			continue
		}
		if err != nil {
			return err
		}
		file := filepath.Join(r.dir, info.Name+format.Ext)
		if err := writeFile(file, text); err != nil {
			return err
		}
		f.Programs = append(f.Programs, file)
	}
	return nil
}

// infoOf is what a finding's programs say of it.
func infoOf(f *finding, t *reusecheck.Trace) (repro.Info, error) {
	info := repro.Info{
		Name:    strings.TrimSuffix(filepath.Base(f.File), filepath.Ext(f.File)),
		Finding: f.Title + ". " + f.Sentence, Kernels: t.Kernels.String() + "; found on " + f.Kernel,
	}
	if f.Control != "" {
		control, err := reusecheck.Parse(f.File, []byte(f.Control))
		if err != nil {
			return info, err
		}
		info.Control = control
	}
	sys, err := spec.SystemOf(t)
	if err != nil {
		return info, nil
	}
	// What a model says of it beside: the cache that a healthy bucket has, and
	// which other kernels show the same.
	if r, err := tellingReplay(sys, t, ""); err == nil && r != nil && r.shown && r.violation.Property == f.Property {
		info.Caches, info.Kernels = r.caches, affected(sys, t, r.violation)
	}
	return info, nil
}
