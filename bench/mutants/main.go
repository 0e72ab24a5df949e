// Command mutants changes one condition at a time in the functions that decide on
// the fast path and keep the cache, runs the tests against each change, and
// prints which test noticed. A change that no test notices is a hole in them.
//
//	go run ./bench/mutants > bench/mutants.md
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	dir := flag.String("dir", "model", "package whose conditions are changed")
	funcs := flag.String("funcs", defaultFuncs, "regular expression of the functions' names")
	tests := flag.String("tests", "./model ./corpus ./spec", "packages whose tests must notice")
	limit := flag.Duration("limit", 2*time.Minute, "time for the tests of one change; running over counts as noticed")
	list := flag.Bool("list", false, "only list the changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survivors, err := mutate(ctx, *dir, *funcs, strings.Fields(*tests), *limit, *list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

func mutate(ctx context.Context, dir, funcs string, tests []string, limit time.Duration, list bool) (survivors int, err error) {
	names, err := regexp.Compile("^(" + funcs + ")$")
	if err != nil {
		return 0, err
	}
	ms, err := find(dir, names)
	if err != nil {
		return 0, err
	}
	if len(ms) == 0 {
		return 0, fmt.Errorf("no condition in %s is in a function that matches %s", dir, funcs)
	}
	if list {
		for _, m := range ms {
			fmt.Println(m)
		}
		return 0, nil
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	r := runner{tmp: tmp, tests: tests, limit: limit}
	if out, ok := r.test(ctx); !ok {
		return 0, fmt.Errorf("the tests fail before anything is changed:\n%s", out)
	}
	fmt.Printf("| where | function | change | noticed by |\n|---|---|---|---|\n")
	noticed, invalid := 0, 0
	for _, m := range ms {
		by, err := r.try(ctx, m)
		if err != nil {
			return survivors, err
		}
		switch by {
		case "":
			survivors++
			by = "**nothing**"
		case doesNotCompile:
			invalid++
			continue
		default:
			noticed++
		}
		fmt.Printf("| %s:%d | %s | `%s` | %s |\n", filepath.Base(m.file), m.line, m.function, m.what(), by)
	}
	fmt.Printf("\n%d changes: %d noticed, %d not; %d more do not compile.\n", noticed+survivors, noticed, survivors, invalid)
	return survivors, nil
}

const doesNotCompile = "the compiler"

type runner struct {
	tmp   string
	tests []string
	limit time.Duration
}

// try runs the tests on a change and gives the test that noticed, "" for none.
func (r *runner) try(ctx context.Context, m mutant) (string, error) {
	file := filepath.Join(r.tmp, "mutant.go")
	if err := os.WriteFile(file, m.text(), 0o644); err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: file}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(r.tmp, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o644); err != nil {
		return "", err
	}
	limited, stop := context.WithTimeout(ctx, r.limit)
	defer stop()
	out, ok := r.test(limited, "-overlay", name)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case ok:
		return "", nil
	case limited.Err() != nil:
		return "the time limit", nil
	case strings.Contains(out, "[build failed]"):
		return doesNotCompile, nil
	}
	return who(out), nil
}

func (r *runner) test(ctx context.Context, args ...string) (string, bool) {
	args = append([]string{"test", "-failfast", "-vet=off"}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, r.tests...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// who is the first test that failed, in its innermost name.
func who(out string) string {
	name := "a panic"
	for _, m := range failed.FindAllStringSubmatch(out, -1) {
		if name == "a panic" || strings.HasPrefix(m[1], name+"/") {
			name = m[1]
		}
	}
	return name
}
