package repro_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
)

func parse(t *testing.T, text string) *reusecheck.Trace {
	t.Helper()
	tr, err := reusecheck.Parse("inline.trace", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// compile makes the executable of a C program.
func compile(t *testing.T, tr *reusecheck.Trace) string {
	t.Helper()
	path := save(t, "p.c", generate(t, tr, "c", repro.Info{}))
	exe := strings.TrimSuffix(path, ".c")
	if out, status := run(t, time.Minute, tool(t, "gcc"), append(strict, "-o", exe, path)...); status != 0 {
		t.Fatal(out)
	}
	return exe
}

// Any kernel answers these in one way: the second bind is refused.
const twoPlain = "socket a tcp4\nsocket b tcp4\nbind a 127.0.0.1:40000\n"

var verdicts = []struct {
	name, steps string
	status      int
	lines       string // the last ones
}{
	{"a kernel without the divergence agrees, and the steps after it are not judged",
		twoPlain + "bind b 127.0.0.1:40000 => ok oracle EADDRINUSE\nlisten b => ok oracle EADDRINUSE\n",
		repro.ExitAgrees, "bind b 127.0.0.1:40000 => EADDRINUSE\nas the oracle says\n"},
	{"an answer that neither has is another divergence",
		twoPlain + "bind b 127.0.0.1:40000 => ok\nlisten b => ok\n",
		repro.ExitDiverges, "bind b 127.0.0.1:40000 => EADDRINUSE oracle ok\nanother divergence: the trace has ok here\n"},
	{"a divergence stays one when the kernel parts from the trace later",
		twoPlain + "bind b 127.0.0.1:40000 => EADDRINUSE oracle ok\nlisten b => EINVAL\nlisten a => ok\n",
		repro.ExitDiverges, "listen b => ok oracle EINVAL\ndivergence reproduced\n"},
	{"a step that states nothing is judged by nobody",
		twoPlain + "bind b 127.0.0.1:40000\n",
		repro.ExitAgrees, "bind b 127.0.0.1:40000 => EADDRINUSE\nas the oracle says\n"},
	{"the oracle alone is enough to judge by",
		twoPlain + "bind b 127.0.0.1:40000 oracle ok\nlisten a => ok\n",
		repro.ExitDiverges, "bind b 127.0.0.1:40000 => EADDRINUSE oracle ok\nlisten a => ok\ndivergence reproduced\n"},
	{"a port of a range of one is compared as it is",
		"ports 40000-40000\nsocket a tcp4\nbind a 127.0.0.1:0 => ok 40001\n",
		repro.ExitDiverges, "bind a 127.0.0.1:0 => ok 40000 oracle ok 40001\nanother divergence: the trace has ok 40001 here\n"},
	{"a picked port that a step has named is not any port",
		"ports 40000-40001\nsocket a tcp4 reuseaddr\nsocket b tcp4\nsocket c tcp4\nbind a 127.0.0.1:40000 => ok\nbind b 127.0.0.2:40001 => ok\nbind c 127.0.0.3:0 => ok 40002\n",
		repro.ExitDiverges, "another divergence: the trace has ok 40002 here\n"},
	{"a setting that the kernel does not have is no verdict",
		"sysctl net.ipv4.no_such_setting 1\n" + twoPlain,
		repro.ExitCannot, "could not run: "},
}

func TestTheExitStatusAndTheLastLineSayWhatCameOut(t *testing.T) {
	needRoot(t)
	python := pythonPath(t)
	for i, v := range verdicts {
		for _, format := range []string{"c", "python"} {
			if !*everything && (i%2 == 0) != (format == "c") { // each in one of the two
				continue
			}
			t.Run(v.name+"/"+format, func(t *testing.T) {
				t.Parallel()
				tr := parse(t, v.steps)
				var out string
				var status int
				if format == "c" {
					out, status = run(t, 30*time.Second, compile(t, tr))
				} else {
					out, status = run(t, 30*time.Second, python, save(t, "p.py", generate(t, tr, format, repro.Info{})))
				}
				if status != v.status || !strings.Contains(out, v.lines) || v.status != repro.ExitCannot && !strings.HasSuffix(out, v.lines) {
					t.Errorf("exit status %d, want %d and %q at the end of\n%s", status, v.status, v.lines, out)
				}
			})
		}
	}
}

// asNobody runs a program without privileges, where it can be read.
func asNobody(t *testing.T, exe string) (string, int) {
	t.Helper()
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "repro-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "p")
	if err := os.WriteFile(open, b, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, open)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestWithoutPrivilegesAProgramRunsInAUserNamespaceOrSaysWhyNot(t *testing.T) {
	needRoot(t)
	overlap := read(t, "testdata/strict-cache-overlap.trace")
	out, status := asNobody(t, compile(t, overlap))
	if strings.Contains(out, "could not run: a network namespace of its own (run as root)") && status == repro.ExitCannot {
		t.Skip("users make no namespaces here: ", out)
	}
	if status != repro.ExitDiverges {
		t.Errorf("exit status %d of\n%s", status, out)
	}
	out, status = asNobody(t, compile(t, read(t, "testdata/strict-cache-device.trace")))
	if want := "could not run: sockets of several users (run as root)\n"; status != repro.ExitCannot || !strings.HasSuffix(out, want) {
		t.Errorf("exit status %d, want %d and %q at the end of\n%s", status, repro.ExitCannot, want, out)
	}
}
