package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reusecheck/reusecheck"
)

// valueWords say what a flag of each type takes.
var valueWords = map[string]string{
	"int": "a whole number", "uint64": "a whole number of at least 0",
	"duration": "a time such as 30s or 5m", "bool": "true or false",
	"intSlice": "whole numbers, joined by commas", "stringSlice": "words, joined by commas",
}

// flagError makes one clear line of a flag that is wrong.
func flagError(cmd *cobra.Command, err error) error {
	invalid, unknown := (*pflag.InvalidValueError)(nil), (*pflag.NotExistError)(nil)
	switch {
	case errors.As(err, &invalid):
		if w := valueWords[invalid.GetFlag().Value.Type()]; w != "" {
			return fmt.Errorf("--%s is %q: give %s", invalid.GetFlag().Name, invalid.GetValue(), w)
		}
	case errors.As(err, &unknown):
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near := reusecheck.Nearest(unknown.GetSpecifiedName(), flags); near != "" {
			return fmt.Errorf("%s has no flag --%s, did you mean --%s?", cmd.CommandPath(), unknown.GetSpecifiedName(), near)
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// apart refuses two flags together, and says why.
func apart(cmd *cobra.Command, a, b, why string) {
	cmd.MarkFlagsMutuallyExclusive(a, b) // for completion, which offers one of them only
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
			return fmt.Errorf("--%s and --%s are given together, but %s", a, b, why)
		}
		if before == nil {
			return nil
		}
		return before(cmd, args)
	}
}

// aVerb refuses what is not a verb of a command that has some.
func aVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	did := ""
	if near := reusecheck.Nearest(args[0], verbs); near != "" {
		did = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Errorf("%s has no verb %q%s; there are %s", cmd.CommandPath(), args[0], did, strings.Join(verbs, ", "))
}

// oneTrace refuses none, and more than one.
func oneTrace(what string) cobra.PositionalArgs { return cobra.MatchAll(atLeastOne(what), atMostOne) }

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one trace, but %q is given too; see %s --help", cmd.CommandPath(), args[1], cmd.CommandPath())
	}
	return nil
}

// noArguments refuses arguments of a verb that has flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, but %q is given; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}
