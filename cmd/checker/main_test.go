package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"checker": main})
}

func TestEveryVerbDoesWhatItsScriptsSay(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition: func(cond string) (bool, error) {
			return cond == "root" && os.Geteuid() == 0, nil
		},
	})
}

// exits runs a command and checks its exit code: exits 2 checker check --seed x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("the exit code is %s, not %s", code, args[0])
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
