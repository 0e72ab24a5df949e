package repro_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
)

// traces reads the traces of testdata.
func traces(t *testing.T) []*reusecheck.Trace {
	t.Helper()
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatal("no traces in testdata", err)
	}
	var out []*reusecheck.Trace
	for _, f := range files {
		out = append(out, read(t, f))
	}
	return out
}

func read(t *testing.T, file string) *reusecheck.Trace {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := reusecheck.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func base(tr *reusecheck.Trace) string {
	return strings.TrimSuffix(filepath.Base(tr.File), ".trace")
}

// missing skips a test that this machine cannot run. CI's can.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" && runtime.GOOS == "linux" && os.Geteuid() == 0 {
		t.Fatal(why)
	}
	t.Skip(why)
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+" is not there: "+err.Error())
	}
	return path
}

// timeLimit is for what takes a moment on an idle machine.
const timeLimit = time.Minute

// python asks for the interpreter itself, once: a version manager's launcher is
// slower than the programs.
var python = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

func pythonPath(t *testing.T) string {
	t.Helper()
	path, err := python()
	if err != nil {
		missing(t, "python3 is not there: "+err.Error())
	}
	return path
}

func needRoot(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		missing(t, "running the programs takes root on Linux")
	}
}

// release is the running kernel's.
func release(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		missing(t, err.Error())
	}
	return strings.TrimSpace(string(b))
}

// run runs a command, and gives what it printed and its exit status.
func run(t *testing.T, limit time.Duration, name string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: %v\n%s", name, ctx.Err(), out)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

func generate(t *testing.T, tr *reusecheck.Trace, format string, info repro.Info) []byte {
	t.Helper()
	src, err := repro.Generate(tr, format, info)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// save writes a program into a directory of its own.
func save(t *testing.T, name string, src []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, src, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// ended holds a program's end against what the trace says of the running kernel.
func ended(t *testing.T, tr *reusecheck.Trace, out string, status int) {
	t.Helper()
	want, last := repro.ExitAgrees, "as the oracle says"
	if tr.Diverges() {
		want, last = repro.ExitDiverges, "divergence reproduced"
	}
	if status != want || !strings.HasSuffix(out, last+"\n") {
		t.Errorf("exit status %d, want %d and %q at the end of\n%s", status, want, last, out)
	}
	// The output is a trace of what the kernel answered.
	got, err := reusecheck.Parse("output", []byte(header(tr)+strings.TrimSuffix(out, last+"\n")))
	if err != nil {
		t.Fatalf("the output is no trace: %v\n%s", err, out)
	}
	if len(got.Steps) != len(tr.Steps) {
		t.Errorf("%d of the trace's %d steps are in the output\n%s", len(got.Steps), len(tr.Steps), out)
	}
}

func header(tr *reusecheck.Trace) string {
	h := fmt.Sprintf("system %s\n", tr.Config.System)
	if tr.Config.System == "" {
		h = ""
	}
	return h
}

// everything has the programs of all traces compiled and run in every language.
// Without it that is done for as many as have every part.
var everything = flag.Bool("repro.all", false, "compile and run the programs of all traces in every language")

// sample gives traces whose programs have every part of a language, each chosen
// for having the most that those before it lack: after one that diverges, the one
// that has all ends of a socket and the one whose datagrams end in errors, which
// parts do not tell apart.
func sample(t *testing.T, lang string) []*reusecheck.Trace {
	t.Helper()
	all := traces(t)
	if *everything {
		return all
	}
	some := []*reusecheck.Trace{read(t, "testdata/strict-cache-overlap.trace"), read(t, "testdata/ends.trace"), read(t, "testdata/udp-errors.trace")}
	if !some[0].Diverges() {
		t.Error("no program of the sample has to show a divergence")
	}
	seen := map[string]bool{}
	parts := map[*reusecheck.Trace][]string{} // those not seen; none where the language has no words for a trace
	for _, tr := range slices.Concat(some, all) {
		parts[tr], _ = repro.PartsOf(tr, lang)
	}
	for i := 0; i < len(some); i++ { // grows
		for _, p := range parts[some[i]] {
			seen[p] = true
		}
		for _, tr := range all {
			parts[tr] = slices.DeleteFunc(parts[tr], func(p string) bool { return seen[p] })
		}
		next := slices.MaxFunc(all, func(a, b *reusecheck.Trace) int { return cmp.Compare(len(parts[a]), len(parts[b])) })
		if i+1 == len(some) && len(parts[next]) > 0 {
			some = append(some, next)
		}
	}
	return some
}

var strict = []string{"-std=gnu11", "-Wall", "-Wextra", "-Werror"}

// runC compiles a trace's C program, runs it, and holds its end against the
// trace where that is about the running kernel.
func runC(t *testing.T, tr *reusecheck.Trace, kernel string) {
	t.Helper()
	out, status := run(t, 30*time.Second, compile(t, tr))
	if tr.Kernels.Includes("", kernel) {
		ended(t, tr, out, status)
		return
	}
	endedSomehow(t, out, status)
	t.Skipf("%s is not among the trace's kernels, %s", kernel, tr.Kernels)
}

// endings are the beginnings of the last lines that a program may have, by its
// exit status.
var endings = [][]string{
	repro.ExitAgrees:   {"as the oracle says"},
	repro.ExitDiverges: {"divergence reproduced", "another divergence: the trace has "},
	repro.ExitCannot:   {"could not run: "},
}

// endedSomehow holds a program's end to the three that there are: on a kernel
// that a trace is not about it gives any answer, and knows what it gave.
func endedSomehow(t *testing.T, out string, status int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	last := lines[len(lines)-1]
	if status < 0 || status >= len(endings) || !slices.ContainsFunc(endings[status], func(s string) bool { return strings.HasPrefix(last, s) }) {
		t.Errorf("exit status %d does not go with the last line of\n%s", status, out)
	}
}

func TestACProgramReproducesTracesOnTheRunningKernel(t *testing.T) {
	needRoot(t)
	kernel := release(t)
	for _, tr := range sample(t, "c") {
		t.Run(base(tr), func(t *testing.T) {
			t.Parallel()
			runC(t, tr, kernel)
		})
	}
}

// corpus are the traces of the corpus below these directories, all by default.
func corpus(t *testing.T, dirs ...string) []*reusecheck.Trace {
	t.Helper()
	if dirs == nil {
		dirs = []string{"."}
	}
	var out []*reusecheck.Trace
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join("../corpus", dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".trace" {
				out = append(out, read(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// beyondC says what keeps a trace from being a C program: that user space does not
// see the end of a namespace. Anything else is a failure of the generator.
func beyondC(tr *reusecheck.Trace) error {
	_, err := repro.Generate(tr, "c", repro.Info{})
	var no *repro.Inexpressible
	if errors.As(err, &no) && tr.Config.System == reusecheck.TimeWaitExit {
		return err
	}
	return nil
}

func TestACProgramReproducesEveryTraceOfTheCorpusThatUserSpaceCanRun(t *testing.T) {
	if !*everything {
		t.Skip("hundreds of programs: run with -repro.all")
	}
	needRoot(t)
	kernel := release(t)
	start := time.Now()
	var compiled, judged, beyond atomic.Int32
	t.Run("corpus", func(t *testing.T) {
		for _, tr := range corpus(t) {
			t.Run(strings.TrimPrefix(tr.File, "../corpus/"), func(t *testing.T) {
				t.Parallel()
				if why := beyondC(tr); why != nil {
					beyond.Add(1)
					t.Skip(why)
				}
				compiled.Add(1)
				if tr.Kernels.Includes("", kernel) {
					judged.Add(1)
				}
				runC(t, tr, kernel)
			})
		}
	})
	if compiled.Load() < 300 || judged.Load() < 200 {
		t.Errorf("the corpus has fewer programs than it should")
	}
	t.Logf("%d programs compiled and run in %.0f s, %d of them held to what their traces say of %s; %d traces are beyond user space",
		compiled.Load(), time.Since(start).Seconds(), judged.Load(), kernel, beyond.Load())
}

func TestACProgramGivesNoWarningWithOptimizationOrInClang(t *testing.T) {
	t.Parallel()
	files := []string{"-fsyntax-only"}
	programs, limit := sample(t, "c"), timeLimit
	if *everything {
		programs, limit = append(programs, corpus(t)...), 5*timeLimit
	}
	for i, tr := range programs {
		if beyondC(tr) == nil {
			files = append(files, save(t, fmt.Sprintf("%d-%s.c", i, base(tr)), generate(t, tr, "c", repro.Info{})))
		}
	}
	if out, status := run(t, limit, tool(t, "clang"), append(files, strict...)...); status != 0 {
		t.Error(out)
	}
	// One that has nearly every part, for what gcc finds out by optimizing only.
	for _, name := range []string{"timewait", "inherit-group"} {
		path := save(t, name+".c", generate(t, read(t, "testdata/"+name+".trace"), "c", repro.Info{}))
		if out, status := run(t, timeLimit, tool(t, "gcc"), append(strict, "-O2", "-c", "-o", "/dev/null", path)...); status != 0 {
			t.Error(out)
		}
	}
}

func TestAPythonProgramReproducesTracesOnTheRunningKernel(t *testing.T) {
	needRoot(t)
	kernel := release(t)
	python := pythonPath(t)
	for _, tr := range sample(t, "python") {
		t.Run(base(tr), func(t *testing.T) {
			t.Parallel()
			if !tr.Kernels.Includes("", kernel) {
				t.Skipf("%s is not among the trace's kernels, %s", kernel, tr.Kernels)
			}
			src := generateWhereItCan(t, tr.File, "python")
			if src == nil {
				t.Skip("the format has no words for it")
			}
			path := save(t, "p.py", src)
			out, status := run(t, 30*time.Second, python, path)
			ended(t, tr, out, status)
		})
	}
}

func TestAGoProgramReproducesTracesOnTheRunningKernel(t *testing.T) {
	needRoot(t)
	kernel := release(t)
	// One program with all of them, so that one run of the compiler and the linker is enough.
	dir := t.TempDir()
	write := func(path string, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module repros\n\ngo 1.26\n")
	var imports, cases strings.Builder
	var all []*reusecheck.Trace
	for _, tr := range sample(t, "go") {
		src := generateWhereItCan(t, tr.File, "go")
		if src == nil {
			continue // the format has no words for it
		}
		all = append(all, tr)
		name := fmt.Sprintf("p%d", len(all))
		write(name+"/main.go", asPackage(t, name, src))
		fmt.Fprintf(&imports, "import \"repros/%s\"\n", name)
		fmt.Fprintf(&cases, "case %q: %s.Main()\n", base(tr), name)
	}
	write("main.go", "package main\n\nimport \"os\"\n"+imports.String()+"\nfunc main() {\nswitch os.Args[1] {\n"+cases.String()+"default: os.Exit(100)\n}\n}\n")
	if *everything {
		if out, status := run(t, 2*timeLimit, tool(t, "go"), "vet", "-C", dir, "./..."); status != 0 {
			t.Fatal(out)
		}
	}
	exe := filepath.Join(dir, "programs")
	if out, status := run(t, 2*timeLimit, tool(t, "go"), "build", "-C", dir, "-ldflags=-s -w", "-o", exe); status != 0 {
		t.Fatal(out)
	}
	t.Run("run", func(t *testing.T) {
		for _, tr := range all {
			t.Run(base(tr), func(t *testing.T) {
				t.Parallel()
				if !tr.Kernels.Includes("", kernel) {
					t.Skipf("%s is not among the trace's kernels, %s", kernel, tr.Kernels)
				}
				out, status := run(t, 30*time.Second, exe, base(tr))
				ended(t, tr, out, status)
			})
		}
	})
}

// asPackage is a Go program as a package, whose function Main is the program's main.
func asPackage(t *testing.T, name string, program []byte) string {
	t.Helper()
	src := string(program)
	for _, r := range [][2]string{{"\npackage main\n", "\npackage " + name + "\n"}, {"\nfunc main() {\n", "\nfunc Main() {\n"}} {
		if strings.Count(src, r[0]) != 1 {
			t.Fatalf("%q is to be there once in\n%s", r[0], src)
		}
		src = strings.Replace(src, r[0], r[1], 1)
	}
	return src
}
