package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// defaultKernel is the newest generation's name.
const defaultKernel = "6.18"

func addKernel(cmd *cobra.Command, kernel *string) {
	cmd.Flags().StringVar(kernel, "kernel", defaultKernel,
		"modelled kernel: a generation with changes added or taken away, such as 6.18+first-bind-fix")
	complete(cmd, "kernel", kernelWords)
}

// addSystems lets a person choose among the systems; none chosen is all of them.
func addSystems(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "system", nil, "systems to check, joined by commas (all that the kernel models)")
	complete(cmd, "system", systemWords)
}

func systemWords(string) []string {
	var s []string
	for _, sys := range spec.Systems {
		s = append(s, string(sys.Name)+"\t"+sys.Doc)
	}
	return s
}

// systemsThat names the systems of which something is so.
func systemsThat(is func(*spec.System) bool) string {
	var s []string
	for _, sys := range spec.Systems {
		if is(sys) {
			s = append(s, string(sys.Name))
		}
	}
	return joined(s)
}

func addProperties(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "property", nil, "properties to judge, joined by commas (all of them)")
	complete(cmd, "property", func(string) []string {
		var s []string
		seen := map[string]bool{}
		for _, sys := range spec.Systems {
			for _, p := range sys.Properties {
				if !seen[p.Name] {
					s = append(s, p.Name+"\t"+p.Doc)
				}
				seen[p.Name] = true
			}
		}
		return s
	})
}

// complete completes the last of a flag's values, which commas join.
func complete(cmd *cobra.Command, flag string, words func(typed string) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		done := typed[:strings.LastIndexByte(typed, ',')+1]
		var s []string
		for _, w := range words(typed[len(done):]) {
			s = append(s, done+w)
		}
		return s, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the flag was not defined before
	}
}

// kernelWords are the generations, and after a kernel every change that can be
// added or taken away. A sign may also be the hyphen of a change's name.
func kernelWords(typed string) []string {
	for i := range typed {
		if typed[i] != '+' && typed[i] != '-' {
			continue
		}
		if _, err := model.Parse(typed[:i]); err != nil {
			continue
		}
		var s []string
		for _, sys := range spec.Systems {
			for _, c := range model.ChangesOf(sys.Name) {
				if strings.HasPrefix(c.Name, typed[i+1:]) {
					s = append(s, typed[:i+1]+c.Name+"\t"+c.Subject)
				}
			}
		}
		if len(s) > 0 {
			return s
		}
	}
	return model.GenerationNames()
}

func worldWords(string) []string {
	names, docs := spec.Words()
	for i := range names {
		names[i] += "\t" + docs[i]
	}
	return names
}

func propertyHelp() string {
	var b strings.Builder
	for i, sys := range spec.Systems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "Properties of %s, %s:\n", sys.Name, sys.Doc)
		for _, p := range sys.Properties {
			writeItem(&b, p.Name, p.Doc)
		}
	}
	return b.String()
}

func worldHelp() string {
	var b strings.Builder
	b.WriteString("Parts of the world that --without takes away:\n")
	names, docs := spec.Words()
	for i, n := range names {
		writeItem(&b, n, docs[i])
	}
	return b.String()
}

// writeItem prints a word and what it means, wrapped for a terminal of 80 columns.
func writeItem(b *strings.Builder, word, doc string) {
	const left, right = 14, 80
	fmt.Fprintf(b, "  %-*s ", left-3, word)
	col := max(left, 3+len(word))
	for i, w := range strings.Fields(doc) {
		if i > 0 && col+1+len(w) > right {
			fmt.Fprintf(b, "\n%*s", left, "")
			col = left
		} else if i > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	b.WriteByte('\n')
}
