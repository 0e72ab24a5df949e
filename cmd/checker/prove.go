package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

type proveFlags struct {
	kernel      string
	system      string
	properties  []string
	assume      []string
	weakest     bool
	sockets     int
	certificate string
	table       bool
	rows        string
	on          string
	json        bool
}

func newProve(std streams) *cobra.Command {
	var f proveFlags
	cmd := &cobra.Command{
		Use:   "prove",
		Short: "prove a property for any number of sockets, or say what stands in the way",
		Long: `Prove closes a bucket under every step, as a cache and one owner, the others
doing whatever they please. If no pair of the two violates the property, it holds
for any number of sockets, addresses, users and devices; the verdict names what
was assumed. If one does, a concrete history is looked for, and if there is none
two tracked owners are tried; the verdict says how many it took. See docs/proof.md.

Requests for a port that the user names or holds are judged; what connect and
automatic ports answer is not. Of systems udp and timewait nothing is proved: the
argument is about pairs, and they are about lists and counts.

` + assumptionHelp() + `
` + exitCodes,
		Example: `  checker prove --kernel 6.18+stand-in-strict-match --property sound --assume no-set,no-redirect,no-shutdown
  checker prove --kernel 5.4 --property precise --weakest
  checker prove --kernel 6.18+exact-strict-match --assume no-set,no-redirect,no-shutdown --certificate sound.smt2
  checker prove --table --rows verdicts.json --on live > verdicts.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return prove(cmd, std, &f) },
	}
	addKernel(cmd, &f.kernel)
	fs := cmd.Flags()
	fs.StringVar(&f.system, "system", string(spec.TCP.Name), "system to prove it of: tcp; of the others it is said why there is no proof")
	complete(cmd, "system", systemWords)
	fs.StringSliceVar(&f.properties, "property", []string{"sound"}, "properties to prove, joined by commas: sound, complete, precise")
	fs.StringSliceVar(&f.assume, "assume", nil, "what does not happen, joined by commas")
	fs.BoolVar(&f.weakest, "weakest", false, "find assumptions of which none can be given up")
	fs.IntVar(&f.sockets, "sockets", 3, "sockets of a history that is looked for where there is no proof")
	fs.StringVar(&f.certificate, "certificate", "", "write the proof of soundness to this file, as SMT-LIB 2 for z3")
	fs.BoolVar(&f.table, "table", false, "write the table of verdicts for every generation, as Markdown")
	fs.StringVar(&f.rows, "rows", "", "of --table: keep verdicts in this file, and take those that are in it")
	fs.StringVar(&f.on, "on", "model", "of --table: model, or live to replay the histories on the running kernel too")
	complete(cmd, "on", func(string) []string { return []string{onModel, onLive} })
	fs.BoolVar(&f.json, "json", false, "print one JSON object a line")
	apart(cmd, "table", "property", "the table has every property")
	for _, flag := range []string{"assume", "weakest"} {
		apart(cmd, "table", flag, "the table looks for the weakest assumptions")
	}
	apart(cmd, "table", "certificate", "a certificate is of one proof")
	return cmd
}

func assumptionHelp() string {
	var b strings.Builder
	b.WriteString("Assumptions:\n")
	names, docs := explore.Assumptions()
	for i, n := range names {
		writeItem(&b, n, docs[i])
	}
	return b.String()
}

func prove(cmd *cobra.Command, std streams, f *proveFlags) error {
	if err := provableSystem(f.system); err != nil {
		return err
	}
	if f.table {
		return verdicts(cmd, std, f)
	}
	for _, flag := range []string{"rows", "on"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about the table of verdicts: give --table", flag)
		}
	}
	profile, err := model.ParseOf(spec.TCP.Name, f.kernel)
	if err != nil {
		return err
	}
	props, err := provable(f.properties)
	if err != nil {
		return err
	}
	assume, err := explore.ParseAssumptions(f.assume)
	if err != nil {
		return err
	}
	if f.sockets < 1 || f.sockets > model.MaxSockets {
		return fmt.Errorf("--sockets is %d: give a number from 1 to %d", f.sockets, model.MaxSockets)
	}
	if f.certificate != "" && f.certificate != "-" {
		if err := mayWrite(f.certificate); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	p, err := await(ctx, func() (*explore.Prover, error) { return explore.NewProver(profile) })
	if err != nil {
		return err
	}
	open := false
	for _, prop := range props {
		d, err := await(ctx, func() (explore.Verdict, error) {
			if !f.weakest {
				return p.Settle(ctx, prop, assume, f.sockets)
			}
			d, _, err := p.Weakest(ctx, prop, assume, f.sockets)
			return d, err
		})
		if err != nil {
			return err
		}
		open = open || !d.Proved
		if err := tellProof(std, f, &d); err != nil {
			return err
		}
	}
	if f.certificate != "" && !open {
		if err := writeCertificate(ctx, std, p, assume, f.certificate); err != nil {
			return err
		}
	}
	if open {
		return errFindings
	}
	return nil
}

func provable(names []string) ([]*spec.Property, error) {
	if len(names) == 0 {
		return nil, errors.New("--property names nothing to prove: give sound, complete or precise")
	}
	var ps []*spec.Property
	for _, n := range names {
		i := len(ps)
		for _, p := range explore.Provable {
			if p.Name == n {
				ps = append(ps, p)
			}
		}
		if len(ps) == i {
			return nil, fmt.Errorf("%q cannot be proved: give sound, complete or precise", n)
		}
	}
	return ps, nil
}

func writeCertificate(ctx context.Context, std streams, p *explore.Prover, a explore.Assumption, path string) error {
	text, err := await(ctx, func() (string, error) {
		var b strings.Builder
		err := p.Certificate(&b, a)
		return b.String(), err
	})
	if err != nil {
		return err
	}
	if path == "-" {
		return written(fmt.Fprint(std.out, text))
	}
	return writeFile(path, []byte(text))
}

type jsonVerdict struct {
	Kernel   string `json:"kernel"`
	Property string `json:"property"`
	Assume   string `json:"assume"`
	Proved   bool   `json:"proved"`
	Caches   int    `json:"caches"`
	Pairs    int    `json:"pairs"`
	Pair     string `json:"pair,omitempty"`
	World    string `json:"world,omitempty"`
	Sockets  int    `json:"sockets,omitempty"`
	Trace    string `json:"trace,omitempty"`
	// NeverFirst: another grant of a named port is wrong before the property fails.
	NeverFirst bool `json:"neverFirst,omitempty"`
	// Owners are tracked by the proof; Refined is why two do not do where there is none.
	Owners  int    `json:"owners,omitempty"`
	Refined string `json:"refined,omitempty"`
	Cut     bool   `json:"cut,omitempty"`
}

func tellProof(std streams, f *proveFlags, d *explore.Verdict) error {
	if f.json {
		v := jsonVerdict{f.kernel, d.Property, d.Assume.String(), d.Proved, d.Caches, d.Pairs, d.Pair, d.World, d.Sockets, "", d.NeverFirst, d.Owners, d.Refined, d.Cut}
		if d.Trace != nil {
			v.Trace = d.Trace.Trace.String()
		}
		return writeJSON(std.out, v)
	}
	switch {
	case d.Proved:
		fmt.Fprintf(std.out, "%s holds on %s for any number of sockets, assuming %s: %d caches, %d pairs of a cache and an owner, none violates it (%s tracked)\n",
			d.Property, f.kernel, d.Assume, d.Caches, d.Pairs, count(d.Owners, "owner"))
	case d.Trace != nil:
		fmt.Fprintf(std.out, "%s does not hold on %s, assuming %s: %s\n\n", d.Property, f.kernel, d.Assume, d.Pair)
		indent(std.out, d.Trace.Trace.String())
		if d.NeverFirst {
			fmt.Fprintf(std.out, "\nBut it never fails first, for any number of sockets: the scan has granted a named port wrongly before.\n")
		}
	default:
		fmt.Fprintf(std.out, "%s is not proved on %s, assuming %s: %s; but no history of up to %s shows it in the world %q%s; two tracked owners: %s\n",
			d.Property, f.kernel, d.Assume, d.Pair, count(d.Sockets, "socket"), d.World, explore.AsFar(d.Cut), d.Refined)
	}
	return nil
}
