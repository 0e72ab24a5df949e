package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

func newKernels(std streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "kernels [NAME]",
		Short: "list the modelled kernels and the changes that make them",
		Long: `Kernels lists the generations and every change: its commit, the release that has
it first, what rule it sets and which kernels have it. With the name of a kernel
it lists the changes of that one, with that of a change the change alone. A change is added to a generation with + and taken away
with -. A ? behind a commit id says that the id is unverified.`,
		Example: `  checker kernels
  checker kernels 6.18+first-bind-fix
  checker kernels first-bind-fix
  checker kernels --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one name, but %q is given too", cmd.CommandPath(), args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var p *model.Profile
			if len(args) == 1 {
				if sys, c, ok := changeNamed(args[0]); ok {
					return listChange(std.out, sys, c, asJSON)
				}
				var err error
				if p, err = model.Parse(args[0]); err != nil {
					return meantChange(args[0], err)
				}
			}
			for _, sys := range spec.Systems {
				if err := listKernels(std.out, sys, p, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kernelWords(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// listKernels lists what is modelled of one system: everything, or one kernel.
func listKernels(out io.Writer, sys *spec.System, p *model.Profile, asJSON bool) error {
	generations, changes := model.GenerationsOf(sys.Name), model.ChangesOf(sys.Name)
	if p != nil {
		changes = p.ChangesOf(sys.Name)
		generations = slices.DeleteFunc(generations, func(g model.Generation) bool { return g.Name != p.Generation.Name })
	}
	if len(generations) == 0 {
		return nil
	}
	if asJSON {
		return jsonKernels(out, sys, generations, changes)
	}
	first := ""
	if sys != spec.Default {
		first = "\n"
	}
	if _, err := fmt.Fprintf(out, "%sKernels of %s, %s:\n", first, sys.Name, sys.Doc); err != nil {
		return &outputError{err}
	}
	return textKernels(out, sys, generations, changes)
}

func textKernels(out io.Writer, sys *spec.System, generations []model.Generation, changes []model.Change) error {
	tab := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, g := range generations {
		fmt.Fprintf(tab, "%s\t%s\t%s\n", g.Name, g.Release, g.Doc)
	}
	if err := tab.Flush(); err != nil {
		return &outputError{err}
	}
	for _, c := range changes {
		if _, err := io.WriteString(out, "\n"+changeText(sys, c)); err != nil {
			return &outputError{err}
		}
	}
	return nil
}

// meantChange adds the change that a name is near to.
func meantChange(name string, err error) error {
	var names []string
	for _, sys := range spec.Systems {
		for _, c := range model.ChangesOf(sys.Name) {
			names = append(names, c.Name)
		}
	}
	if near := reusecheck.Nearest(name, names); near != "" {
		return fmt.Errorf("%w; did you mean the change %s?", err, near)
	}
	return err
}

// changeNamed finds a change of any system.
func changeNamed(name string) (*spec.System, model.Change, bool) {
	for _, sys := range spec.Systems {
		for _, c := range model.ChangesOf(sys.Name) {
			if c.Name == name {
				return sys, c, true
			}
		}
	}
	return nil, model.Change{}, false
}

func listChange(out io.Writer, sys *spec.System, c model.Change, asJSON bool) error {
	if asJSON {
		return jsonKernels(out, sys, nil, []model.Change{c})
	}
	if _, err := io.WriteString(out, changeText(sys, c)); err != nil {
		return &outputError{err}
	}
	return nil
}

func changeText(sys *spec.System, c model.Change) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Name)
	writeField(&b, "commit", strings.TrimSpace(c.Commit+"  "+c.Subject))
	writeField(&b, "since", since(c))
	writeField(&b, "kernels", havers(sys, c))
	writeField(&b, "", c.Doc)
	return b.String()
}

func writeField(b *strings.Builder, word, text string) {
	if text != "" {
		writeItem(b, word, text)
	}
}

func since(c model.Change) string {
	if c.Stable == "" {
		return c.Since
	}
	return c.Since + "; stable: " + c.Stable
}

// havers are the generations that have a change.
func havers(sys *spec.System, c model.Change) string {
	var s []string
	for _, g := range model.GenerationsOf(sys.Name) {
		for _, name := range g.Changes {
			if name == c.Name {
				s = append(s, g.Name)
			}
		}
	}
	if len(s) == 0 {
		return "none of these"
	}
	return strings.Join(s, ", ")
}

type jsonGeneration struct {
	Generation string   `json:"generation"`
	System     string   `json:"system"`
	Release    string   `json:"release"`
	Doc        string   `json:"doc"`
	Changes    []string `json:"changes"`
}

type jsonChange struct {
	Change  string `json:"change"`
	System  string `json:"system"`
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Since   string `json:"since"`
	Stable  string `json:"stable,omitempty"`
	Rows    string `json:"history,omitempty"`
	Doc     string `json:"doc"`
}

func jsonKernels(out io.Writer, sys *spec.System, generations []model.Generation, changes []model.Change) error {
	for _, g := range generations {
		if err := writeJSON(out, jsonGeneration{g.Name, string(sys.Name), g.Release, g.Doc, g.Changes}); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := writeJSON(out, jsonChange{c.Name, string(sys.Name), c.Commit, c.Subject, c.Since, c.Stable, c.Rows, c.Doc}); err != nil {
			return err
		}
	}
	return nil
}
