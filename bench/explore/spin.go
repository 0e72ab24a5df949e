package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reusecheck/reusecheck/explore"
	"github.com/reusecheck/reusecheck/spec"
)

const promela = "bench/spin/v4.pml"

// compare explores the v4 world with SPIN and with package explore, and writes
// both as a table. It needs spin and gcc.
func compare(ctx context.Context) error {
	most := 5
	if len(os.Args) > 2 {
		n, err := strconv.Atoi(os.Args[2])
		if err != nil || n < 1 || n > 6 {
			return fmt.Errorf("%q: give a number of sockets from 1 to 6", os.Args[2])
		}
		most = n
	}
	version, err := exec.CommandContext(ctx, "spin", "-V").Output()
	if err != nil {
		return fmt.Errorf("spin: %w; it is Debian's package spin", err)
	}
	fmt.Printf("# The same world in SPIN\n\n%s against `explore`, one run of `go run ./bench/explore spin`: the world v4 on 6.18, IPv4 addresses\n"+
		"any, A and B, reuseaddr, reuseport; steps bind, listen, close. `%s` is that world in Promela, compiled with\n"+
		"`-O2 -DSAFETY -DNOREDUCE -DNOFAIR` (there is one process, so that partial order reduction has nothing to reduce).\n"+
		"Seconds are wall-clock; those of the processor, in brackets, are of all threads, and hold on a machine that has other work. The\n"+
		"verdict is everything: with symmetry (which is found, not given), findings included. Ratios are SPIN's seconds over explore's; the\n"+
		"processor's in brackets. tr/s are transitions a second of the processor.\n\n",
		strings.TrimSpace(string(version)), promela)
	fmt.Println("| sockets | users | first owner | states, SPIN | states, unreduced | agree | SPIN s (cpu) | unreduced s (cpu) | SPIN tr/s | unreduced tr/s | ratio | states, verdict | verdict s (cpu) | SPIN / verdict (cpu) |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	dir, err := os.MkdirTemp("", "spin")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, first := range []int{0, 1} {
		for users := 1; users <= 2; users++ {
			for n := 3; n <= most-(users-1); n++ {
				if err := compareOne(ctx, dir, n, users, first); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func compareOne(ctx context.Context, dir string, sockets, users, first int) error {
	s, err := runSpin(ctx, dir, sockets, users, first)
	if err != nil {
		return err
	}
	kernel, words := "6.18", fmt.Sprintf("v4 uid=%d", users)
	if first == 1 {
		kernel += "+first-bind-fix"
	}
	x, err := searchIn(kernel, words, sockets, spec.Sound, spec.Complete)
	if err != nil {
		return err
	}
	x.Unreduced = true
	began := processor()
	whole, err := x.Run(ctx, func(*explore.History) error { return nil })
	if err != nil {
		return err
	}
	wholeCPU := processor() - began
	x, err = searchIn(kernel, words, sockets, spec.Sound, spec.Complete)
	if err != nil {
		return err
	}
	start := time.Now()
	began = processor()
	judge := explore.NewJudge(x.Kernel, nil)
	verdict, err := x.Run(ctx, func(h *explore.History) error {
		_, err := judge.Failures(h)
		return err
	})
	if err != nil {
		return err
	}
	took, cpu := time.Since(start).Seconds(), processor()-began
	// SPIN counts the way into its first state as a transition.
	agree := whole.States == s.states && whole.Transitions == s.transitions-1
	rate, wholeRate := float64(s.transitions)/s.cpu, float64(whole.Transitions)/wholeCPU
	fmt.Printf("| %d | %d | %v | %d | %d | %v | %.2f (%.2f) | %.2f (%.2f) | %.2g | %.2g | %.2f | %d | %.3f (%.3f) | **%.0f** (**%.0f**) |\n",
		sockets, users, first == 1, s.states, whole.States, agree, s.seconds, s.cpu, whole.Seconds, wholeCPU, rate, wholeRate, wholeRate/rate,
		verdict.States, took, cpu, s.seconds/took, s.cpu/cpu)
	if !agree {
		return fmt.Errorf("%d sockets: SPIN has %d states and %d transitions, explore %d and %d", sockets, s.states, s.transitions-1, whole.States, whole.Transitions)
	}
	return nil
}

// processor is the processor's time that this process has used, in seconds.
func processor() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

type spinRun struct {
	states, transitions int64
	seconds, cpu        float64
}

func runSpin(ctx context.Context, dir string, sockets, users, first int) (r spinRun, err error) {
	model, err := filepath.Abs(promela)
	if err != nil {
		return r, err
	}
	run := func(name string, args ...string) (*exec.Cmd, string, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			return c, "", fmt.Errorf("%s: %w\n%s", c, err, out)
		}
		return c, string(out), nil
	}
	define := func(name string, v int) string { return fmt.Sprintf("-D%s=%d", name, v) }
	if _, _, err = run("spin", define("SOCKETS", sockets), define("UIDS", users), define("FIRST", first), "-a", model); err != nil {
		return r, err
	}
	if _, _, err = run("gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-w", "-o", "pan", "pan.c"); err != nil {
		return r, err
	}
	start := time.Now()
	// The stack and the table are as large as they need be: SPIN clears them.
	depth, table := "-m1000000", "-w22"
	if sockets > 4 {
		depth, table = "-m10000000", "-w25"
	}
	c, out, err := run("./pan", depth, table, "-E")
	if err != nil {
		return r, err
	}
	r.seconds = time.Since(start).Seconds()
	r.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	for what, n := range map[string]*int64{"states, stored": &r.states, "transitions": &r.transitions} {
		m := regexp.MustCompile(`(\d+) ` + what).FindStringSubmatch(out)
		if m == nil {
			return r, fmt.Errorf("pan does not say how many %s there are:\n%s", what, out)
		}
		*n, _ = strconv.ParseInt(m[1], 10, 64)
	}
	return r, nil
}
