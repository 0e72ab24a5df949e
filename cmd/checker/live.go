package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/shrink"
	"github.com/reusecheck/reusecheck/spec"
)

type liveFlags struct {
	budget
	programFlags
	guestFlags
	system     string
	kernel     string
	properties []string
	self       bool
	observe    bool
	features   bool
	json       bool
	dir        string
}

// liveChecks is the default budget on a kernel, which is slower than a model.
const liveChecks = 2000

// selfChecks is that of a kernel held to itself. With it seeds 1 to 8 all find what
// the cache forgets by reuseaddr, by device and by v6only.
const selfChecks = 8000

func newLive(std streams) *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:   "live",
		Short: "hold the running kernel, or one booted in QEMU, to its model, to itself or to the oracle",
		Long: `Live plays random histories on a real kernel, in network namespaces that it makes
for them: over their loopback, and of datagrams over a pair of devices in them.

By default every step is played on the model too, and a step that the two answer
differently is a finding: the trace states the kernel's answer, and as the
oracle's that of the model. With --observe the kernel's own cache fields are read
after every step, compared with the model's, and judged by the property precise.

With --self there is no model. Each bind and listen is asked again after a change
that a look at every owner cannot notice: a plain bind elsewhere on the port,
which empties the cache, or one socket fewer. An answer that flips is a finding.

With --property the oracle judges the kernel's answers by these properties.

With --image all this happens inside a kernel that QEMU boots.

With --system timewait namespaces come and go too. What other namespaces had in
TIME_WAIT must still be there after an exit; walks are compared where kprobes can
count them, as in a packaged kernel.

It needs root, or a user namespace, in which several users cannot be tested.

` + exitCodes,
		Example: `  checker live --checks 20000
  checker live --self --time 1m
  checker live --observe
  checker live --system udp --checks 50000
  checker live --system timewait
  checker live --property sound --out findings
  checker live --image /boot/vmlinuz-6.1.0-49-cloud-amd64 --modules /lib/modules/6.1.0-49-cloud-amd64`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.image != "" {
				return f.inGuest(cmd, std)
			}
			return f.run(cmd, std)
		},
	}
	f.budget.addTo(cmd, liveChecks, 1)
	f.guestFlags.addTo(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.kernel, "kernel", "", "modelled kernel to compare with (picked from the running release)")
	complete(cmd, "kernel", kernelWords)
	fs.StringVar(&f.system, "system", string(spec.Default.Name), "system to test")
	complete(cmd, "system", systemWords)
	addProperties(cmd, &f.properties)
	fs.BoolVar(&f.self, "self", false, "hold the kernel to itself, without a model")
	fs.BoolVar(&f.observe, "observe", false, "read the kernel's caches after every step")
	fs.BoolVar(&f.features, "features", false, "only say what can be tested here, and why not")
	fs.BoolVar(&f.json, "json", false, "print one JSON object a line")
	fs.StringVar(&f.dir, "out", "", "also write each finding as a .trace file into this directory")
	f.programFlags.addTo(cmd)
	apart(cmd, "self", "observe", "a kernel that is held to itself is asked for its answers only")
	apart(cmd, "self", "property", "a kernel that is held to itself is judged by no property")
	apart(cmd, "self", "workers", "a kernel is held to itself by one history after the other")
	return cmd
}

func (f *liveFlags) run(cmd *cobra.Command, std streams) error {
	if f.features {
		return printFeatures(std)
	}
	if err := f.budget.verify(cmd); err != nil {
		return err
	}
	if f.self && !cmd.Flags().Changed("checks") && !cmd.Flags().Changed("time") {
		f.budget.checks = selfChecks
	}
	r := &reporter{std: std, json: f.json, dir: f.dir}
	if err := f.programFlags.into(r); err != nil {
		return err
	}
	running, err := live.RunningKernel()
	if err != nil {
		return err
	}
	sys, err := f.pickSystem()
	if err != nil {
		return err
	}
	profile := model.ForReleaseOf(sys.Name, running.Version)
	if f.kernel != "" {
		p, err := model.ParseOf(sys.Name, f.kernel)
		if err != nil {
			return err
		}
		profile = p
	}
	props, err := sys.Select(f.properties...)
	if err != nil {
		return err
	}
	k := &kernelStacks{observe: f.observe}
	defer k.close()
	world, err := f.reachable(std, k, sys)
	if err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	h := hunt{
		cmd: cmd, budget: &f.budget, report: r, world: world, stack: k.stack,
		kernel: running.String(), words: "checker live", system: sys,
	}
	if sys != spec.Default {
		h.words += " --system " + string(sys.Name)
	}
	if h.kernels, err = reusecheck.ParseKernels(profile.Generation.Name); err != nil {
		return err
	}
	if err := f.hunt(cmd.Context(), &h, profile, props); err != nil {
		return err
	}
	return r.ending(cmd.Context())
}

// hunt makes the comparison that was asked for.
func (f *liveFlags) hunt(ctx context.Context, h *hunt, profile *model.Profile, props []*spec.Property) error {
	switch {
	case f.self:
		return huntSelf(ctx, h)
	case len(f.properties) > 0:
		h.props = props
		h.words += " --property " + joined(f.properties)
		if f.observe {
			h.words += " --observe"
		}
		return h.run(ctx)
	}
	of := h.system
	sys, err := spec.Conformance(of, func() (reusecheck.Stack, error) { return profile.Stack(of.Name) })
	if err != nil {
		return err
	}
	words := h.words
	h.system, h.words = sys, words+" --kernel "+profile.String()
	running := h.kernel
	h.kernel = fmt.Sprintf("%s against its model %s", running, profile)
	if f.observe {
		h.words += " --observe"
		f.budget.parts = 2
	}
	if err := h.run(ctx); err != nil || !f.observe {
		return err
	}
	h.system, h.props, h.kernel = of, []*spec.Property{of.Cache}, running
	h.words = words + " --observe --property " + of.Cache.Name
	return h.run(ctx)
}

// pickSystem is the system that was named. A kernel can be held to itself, or its
// caches read, only where a system has them.
func (f *liveFlags) pickSystem() (*spec.System, error) {
	systems, err := spec.SelectSystems(f.system)
	if err != nil {
		return nil, err
	}
	switch sys := systems[0]; {
	case sys.Alone != "" && f.budget.workers > 1:
		return nil, fmt.Errorf("--workers is for other systems: %s", sys.Alone)
	case sys.Cache != nil || !f.self && !f.observe:
		return sys, nil
	}
	return nil, fmt.Errorf("--self and --observe are for the caches of %s, not for %s",
		systemsThat(func(sys *spec.System) bool { return sys.Cache != nil }), f.system)
}

// kernelStacks opens the running kernel, once for each worker.
type kernelStacks struct {
	observe   bool
	mu        sync.Mutex
	stacks    []*live.Stack
	observers []*live.Observer
}

func (k *kernelStacks) stack() (reusecheck.Stack, error) {
	s, err := live.Open(live.Options{})
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stacks = append(k.stacks, s)
	if !k.observe {
		return s, nil
	}
	o, err := live.NewObserver()
	if err != nil {
		return nil, err
	}
	k.observers = append(k.observers, o)
	return live.Watch(s, o), nil
}

// watched opens the running kernel, with its caches where they can be read.
func (k *kernelStacks) watched() (reusecheck.Stack, error) {
	s, err := k.stack()
	if err != nil {
		return nil, err
	}
	o, err := live.NewObserver()
	if err != nil {
		return s, nil
	}
	k.observers = append(k.observers, o)
	return live.Watch(k.stacks[0], o), nil
}

func (k *kernelStacks) close() {
	for _, o := range k.observers {
		o.Close()
	}
	for _, s := range k.stacks {
		s.Close()
	}
}

// needs are the parts of the world that need something of the machine.
var needs = map[string]string{
	"uids": "uid", "veth": "dev", "processors": "cpu", "IPv6 addresses": "v6", "socket destroy": "expire", "socket lookup": "other-port",
	"packet sockets": "arrival",
}

// reachable is the world less what this machine cannot test, which it says.
func (f *liveFlags) reachable(std streams, k *kernelStacks, sys *spec.System) (*spec.World, error) {
	world, err := f.budget.world(sys)
	if err != nil {
		return nil, err
	}
	s, err := live.Open(live.Options{})
	if err != nil {
		return nil, err
	}
	k.stacks = append(k.stacks, s)
	for _, have := range s.Features() {
		if !have.OK && slices.Contains(sys.Needs, have.Name) {
			return nil, &reusecheck.Unsupported{What: "system " + string(sys.Name), Why: have.Why}
		}
		word := needs[have.Name]
		if have.OK || word == "" {
			continue
		}
		fmt.Fprintf(std.errs, "skipped: %s: %s\n", have.Name, have.Why)
		if err := world.Without(word); err != nil {
			return nil, err
		}
	}
	return world, nil
}

func printFeatures(std streams) error {
	var missing error
	for _, f := range live.Features() {
		fmt.Fprintln(std.out, f)
		if !f.OK {
			missing = &reusecheck.Unsupported{What: f.Name, Why: f.Why}
		}
	}
	return missing
}

// huntSelf holds the kernel to itself.
func huntSelf(ctx context.Context, h *hunt) error {
	limited, stop := h.budget.within(ctx)
	defer stop()
	kernel, err := h.stack()
	if err != nil {
		return err
	}
	h.report.meter = newMeter(h.report.std.errs, "histories", h.budget.checks)
	self := &spec.Self{
		System: h.system, Kernel: kernel, World: h.world, Seed: h.budget.seed, Checks: h.budget.checks, Steps: h.budget.steps,
		Progress: func(s spec.SelfStats) { h.report.meter.set(s.Histories) },
	}
	finder := &shrink.FlipFinder{Self: self, Kernels: h.kernels}
	h.words += " --self"
	start := time.Now()
	var failed error
	stats, err := self.Run(limited, func(flip *spec.Flip) bool {
		n, err := finder.Find(limited, flip)
		if err == nil && n != nil {
			err = h.report.add(h.flipped(n))
		}
		failed = err
		return err == nil && limited.Err() == nil
	})
	h.report.meter.clear()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	stats.Stats.Skipped = stats.Skipped
	h.summary(stats.Stats, h.report.n, time.Since(start))
	fmt.Fprintf(h.report.std.errs, "%d binds and listens asked again: %d with an empty cache (%d had no room for that), %d with one socket fewer\n",
		stats.Tested, stats.Resets, stats.NoReset, stats.Removed)
	return nil
}

// flipped puts a flip into words.
func (h *hunt) flipped(n *shrink.FlipFinding) finding {
	t := *n.Flip.Trace
	first, again := n.Flip.Answers()
	op := t.Steps[len(t.Steps)-1].Op
	t.Title = fmt.Sprintf("self: %s is answered %s, and %s %s", op.Verb, first.Text(t.Name), again.Text(t.Name), n.How())
	if causes := n.Violation.Tags.Causes(); causes != "" {
		t.Title += " (" + causes + ")"
	}
	t.Source = fmt.Sprintf("%s --seed %d, history %d", h.words, h.budget.seed, n.Flip.History+1)
	return finding{
		Title: t.Title, Kernel: h.kernel, Property: "self", Kind: n.Flip.How, Sentence: n.Sentence(),
		Minimal: n.Report.Minimal, CrossesUsers: n.CrossesUsers, History: n.Flip.History + 1, Trace: t.String(), Control: n.Flip.Control.String(),
	}
}
