package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/bench"
	"github.com/reusecheck/reusecheck/shrink"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"checker": main})
}

func TestEveryVerbDoesWhatItsScriptsSay(t *testing.T) {
	// Scripts are opened while others have the working directory (runIn).
	scripts, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition: func(cond string) (bool, error) {
			return cond == "root" && os.Geteuid() == 0, nil
		},
	})
}

// exits runs a command and checks its exit code: exits 2 checker check --seed x.
// Bad usage has no process of its own, which would take longer than all the rest.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	code := "0"
	if args[0] == strconv.Itoa(exitUsage) && args[1] == "checker" {
		code = strconv.Itoa(runIn(ts.MkAbs("."), args[2:], streams{strings.NewReader(""), ts.Stdout(), ts.Stderr()}))
	} else if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("the exit code is %s, not %s", code, args[0])
	}
}

// oneDir is held by whoever has the process's working directory.
var oneDir sync.Mutex

// runIn is run in a directory.
func runIn(dir string, args []string, std streams) int {
	oneDir.Lock()
	defer oneDir.Unlock()
	was, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		panic(err)
	}
	defer os.Chdir(was)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return run(ctx, args, std)
}

// atFirst calls f when something is written for the first time.
type atFirst struct {
	bytes.Buffer
	f func()
}

func (w *atFirst) Write(b []byte) (int, error) {
	if w.Len() == 0 {
		w.f()
	}
	return w.Buffer.Write(b)
}

func TestAnInterruptEndsTheSearchAndTellsWhatWasFound(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	out := &atFirst{f: interrupt}
	start := time.Now()
	code := run(ctx, strings.Fields("check --time 1h"), streams{strings.NewReader(""), out, io.Discard})
	if code != exitFindings || time.Since(start) > 10*time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(start))
	}
	for _, part := range []string{"\n1 finding on 6.18: ", "\nagain: checker check --kernel 6.18 --system tcp --seed 1 --checks "} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
}

func TestAnInterruptBeforeAnythingIsFoundHasItsOwnExitCode(t *testing.T) {
	for _, line := range []string{"check --time 1h", "replay ../../corpus", "bench bind", "bench history", "bench shrink"} {
		ctx, interrupt := context.WithCancel(context.Background())
		interrupt()
		var errs bytes.Buffer
		if code := run(ctx, strings.Fields(line), streams{strings.NewReader(""), io.Discard, &errs}); code != exitInterrupted {
			t.Errorf("%s: exit code %d: %s", line, code, &errs)
		}
	}
}

func TestAnInterruptEndsAProofInTheMiddleOfItsClosure(t *testing.T) {
	for _, line := range []string{"prove", "prove --table --kernel 4.9"} {
		ctx, interrupt := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, interrupt) // each takes seconds
		start := time.Now()
		var out bytes.Buffer
		code := run(ctx, strings.Fields(line), streams{strings.NewReader(""), &out, io.Discard})
		if took := time.Since(start); code != exitInterrupted || took > time.Second || out.Len() > 0 {
			t.Errorf("%s: exit code %d after %v:\n%s", line, code, took, &out)
		}
	}
}

func TestAnInterruptedMeasurementPrintsWhatItHas(t *testing.T) {
	finding := &shrink.Finding{Trace: reusecheck.MustParse("socket a tcp4\nbind a 127.0.0.1:1 => ok\n")}
	for _, c := range []struct {
		started, code int
		err           error
		says          string
	}{
		{4, exitNothing, nil, " 75.0 %       3       4             all\n"},
		{4, exitFindings, context.Canceled, " 75.0 %       3       4             all\n"},
		{0, exitInterrupted, context.Canceled, ""},
		{4, exitUsage, errors.New("broken"), ""},
	} {
		var out bytes.Buffer
		cs := []*bench.Convergence{{Finding: finding, Started: c.started, Reached: 3}}
		err := tellConvergence(streams{nil, &out, io.Discard}, cs, false, c.err)
		if code := exitCode(context.Background(), err); code != c.code || !strings.HasSuffix(out.String(), c.says) || (c.says == "") != (out.Len() == 0) {
			t.Errorf("%d shrunk, %v: exit code %d, not %d\n%s", c.started, c.err, code, c.code, &out)
		}
	}
}

// idle is a terminal at which somebody interrupts instead of typing.
type idle struct {
	interrupt func()
	end       chan struct{}
}

func (i idle) Read([]byte) (int, error) {
	i.interrupt()
	<-i.end
	return 0, io.EOF
}

func TestAnInterruptEndsTheWaitForATrace(t *testing.T) {
	for _, line := range []string{"replay -", "shrink -", "explain -", "repro --format c -"} {
		ctx, interrupt := context.WithCancel(context.Background())
		in := idle{interrupt, make(chan struct{})}
		late := time.AfterFunc(10*time.Second, func() { close(in.end) })
		code := run(ctx, strings.Fields(line), streams{in, io.Discard, io.Discard})
		if !late.Stop() || code != exitInterrupted {
			t.Errorf("%s: exit code %d", line, code)
		}
	}
}

func TestALimitOfTimeIsSharedByTheSearches(t *testing.T) {
	b := &budget{limit: time.Hour, parts: 3}
	for _, want := range []time.Duration{20 * time.Minute, 30 * time.Minute, time.Hour, time.Hour} {
		ctx, stop := b.within(context.Background())
		defer stop()
		end, ok := ctx.Deadline()
		if got := time.Until(end); !ok || got > want || got < want-time.Minute {
			t.Errorf("a search may take %v, want %v: those before it took no time", got, want)
		}
	}
	if took := time.Until(b.end); took > time.Hour {
		t.Errorf("all of them may take %v, want an hour", took)
	}
}

func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.trace")
	for _, text := range []string{"first", "second"} {
		if err := writeFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != text {
			t.Errorf("%q was written, %q is there: %v", text, got, err)
		}
	}
	if err := writeFile(filepath.Join(dir, "none", "a.trace"), nil); err == nil {
		t.Error("a file was written into a directory that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "b.trace"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "b.trace"), nil); err == nil {
		t.Error("a file took a directory's place")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("what is left is not the file and the directory: %v %v", left, err)
	}
}

// FuzzNoCommandLinePanics gives the program arbitrary words, one a line, and
// arbitrary standard input.
func FuzzNoCommandLinePanics(f *testing.F) {
	f.Add("check\n--kernel\n6.18\n--checks\n10", "")
	f.Add("check\n--without\nset,dev\n--property\nsound\n--json\n--time\n1ms", "")
	f.Add("replay\n--json\n-", "socket a tcp4 reuseaddr\nbind a 127.0.0.1:40000 => ok\n")
	f.Add("shrink\n--kernel=6.18\n-", "socket a tcp4 reuseaddr\nbind a 127.0.0.1:40000\n")
	f.Add("kernels\n6.18-first-bind", "")
	f.Add("bench\nbind\n--sockets\n7\n--rounds=1", "")
	f.Add("explore\n--world\ntcp4 addr=127.0.0.1 reuseaddr close\n--sockets\n2\n--memory\n1MiB", "")
	f.Add("prove\n--assume\nno-set,no-connect\n--property\nsound", "")
	f.Add("matrix\n--kernel\n6.1,6.18\n--rows\ntcp4 0.0.0.0 reuseaddr; tcp6 :: v6only\n--format\nmarkdown", "")
	f.Add("explain\n--sockets\ntcp4 0.0.0.0:80 reuseaddr listen; tcp4 127.0.0.1:80 reuseaddr", "")
	f.Add("explain\n--step\n2\n-", "socket a tcp4\nbind a 127.0.0.1:40000\n")
	f.Add("repro\n--format\nc\n-", "socket a tcp4 reuseaddr\nbind a 127.0.0.1:40000 => ok\n")
	f.Add("__complete\ncheck\n--kernel\n6.18+", "")
	f.Fuzz(func(t *testing.T, line, in string) {
		args := strings.Split(line, "\n")
		if slices.ContainsFunc(args, func(a string) bool {
			// Nothing outside the test is read or written.
			return strings.Contains(a, "/") || strings.Contains(a, "..") || strings.HasPrefix(a, "--o") || strings.HasPrefix(a, "-o")
		}) {
			t.Skip("it names a file")
		}
		t.Chdir(t.TempDir())
		ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer stop()
		var out, errs bytes.Buffer
		switch code := run(ctx, args, streams{strings.NewReader(in), &out, &errs}); code {
		case exitNothing, exitFindings, exitUsage, exitImpossible, exitInterrupted:
		default:
			t.Errorf("%q: exit code %d", args, code)
		}
		if strings.Contains(errs.String(), "goroutine ") {
			t.Errorf("%q: a stack trace:\n%s", args, &errs)
		}
	})
}

func TestFlagsThatExcludeEachOtherAreRefusedWithTheReason(t *testing.T) {
	for line, want := range map[string]string{
		"prove --rows x":                     "--rows is about the table of verdicts: give --table",
		"prove --on live":                    "--on is about the table of verdicts: give --table",
		"prove --table --property sound":     "--table and --property are given together, but the table has every property",
		"prove --table --assume no-set":      "--table and --assume are given together, but the table looks for the weakest assumptions",
		"prove --table --weakest":            "--table and --weakest are given together, but the table looks for the weakest assumptions",
		"prove --table --certificate x":      "--table and --certificate are given together, but a certificate is of one proof",
		"live --self --observe":              "--self and --observe are given together, but a kernel that is held to itself is asked for its answers only",
		"live --self --property sound":       "--self and --property are given together, but a kernel that is held to itself is judged by no property",
		"live --workers 2 --self":            "--self and --workers are given together, but a kernel is held to itself by one history after the other",
		"live --self --checks 1 --modules x": "--modules is about a kernel in QEMU: give its --image",
		"explain --brief --step 1 -":         "--brief and --step are given together, but each of them says which steps are told",
		"replay --image x --kernel 6.18 -":   "--image and --kernel are given together, but the image's kernel answers, no modelled one",
		"replay --kernel 6.18 --modules x -": "--modules is about a kernel in QEMU: give its --image",
	} {
		var errs bytes.Buffer
		code := run(context.Background(), strings.Fields(line), streams{strings.NewReader(""), io.Discard, &errs})
		if code != exitUsage || errs.String() != "checker: "+want+"\n" {
			t.Errorf("%s: exit code %d: %s", line, code, &errs)
		}
	}
}

func TestAnObjectOfAGuestIsHandedOnOrCannotBeRead(t *testing.T) {
	var got []teardownRow
	take := each(func(r teardownRow) error { got = append(got, r); return nil })
	if err := take([]byte(`{"kernel":"6.1","walks":[1,2]}`)); err != nil {
		t.Error(err)
	}
	if err := take([]byte(`{"kernel":`)); err == nil || !strings.HasPrefix(err.Error(), "the guest says what cannot be read: ") {
		t.Errorf("half an object: %v", err)
	}
	if d := cmp.Diff([]teardownRow{{Kernel: "6.1", Walks: []int{1, 2}}}, got); d != "" {
		t.Error(d)
	}
}

func TestAClosedTerminalEndsARunThatWasNotStartedToOutliveIt(t *testing.T) {
	for _, outlives := range []bool{false, true} {
		if ends := slices.Contains(endings(outlives), os.Signal(syscall.SIGHUP)); ends == outlives {
			t.Errorf("started to outlive it: %t, ended by it: %t", outlives, ends)
		}
	}
}
