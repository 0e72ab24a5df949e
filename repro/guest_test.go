package repro_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/live"
	"github.com/reusecheck/reusecheck/repro"
)

// The image to boot and its modules; `.ci/kernels` gets Debian's.
const (
	imageVar   = "REUSECHECK_IMAGE"
	modulesVar = "REUSECHECK_MODULES"
)

func TestMain(m *testing.M) {
	live.GuestMain(runInGuest)
	os.Exit(m.Run())
}

// guestRun is what came out of one program in a guest.
type guestRun struct {
	Name   string
	Out    string
	Status int
}

// runInGuest runs every program that the host put there.
func runInGuest(_ []string, out io.Writer) int {
	programs, _ := filepath.Glob("/programs/*")
	enc := json.NewEncoder(out)
	for _, p := range programs {
		if os.Chmod(p, 0o755) != nil {
			return 1
		}
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		text, err := exec.CommandContext(ctx, p).CombinedOutput()
		cancel()
		r := guestRun{Name: filepath.Base(p), Out: string(text)}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			r.Status = exit.ExitCode()
		} else if err != nil {
			r.Status, r.Out = -1, r.Out+err.Error()
		}
		if enc.Encode(r) != nil {
			return 1
		}
	}
	return 0
}

// inGuest is the name of a trace's program, which is its path: two systems may have
// traces of one name.
func inGuest(tr *reusecheck.Trace) string { return strings.ReplaceAll(nameOf(tr), "/", ":") }

func nameOf(tr *reusecheck.Trace) string {
	return strings.TrimSuffix(strings.TrimPrefix(tr.File, "../"), ".trace")
}

func TestACProgramReproducesEveryTraceInAGuest(t *testing.T) {
	image := os.Getenv(imageVar)
	if image == "" {
		t.Skip("no image to boot: set " + imageVar + " and " + modulesVar + " (.ci/kernels gets some)")
	}
	needRoot(t)
	kernel, err := live.ImageVersion(image)
	if err != nil {
		t.Fatal(err)
	}
	// The package's own traces, and those of the findings that are written down.
	all := append(traces(t), corpus(t, "tcp/findings", "tcp/kunit", "tcp/history", "udp/history")...)
	files := make(map[string][]byte)
	for _, tr := range all {
		if !tr.Kernels.Includes("", kernel.Version) || beyondC(tr) != nil {
			continue
		}
		exe := save(t, base(tr), nil)
		src := save(t, "p.c", generate(t, tr, "c", repro.Info{}))
		if out, status := run(t, timeLimit, tool(t, "gcc"), "-static", "-s", "-o", exe, src); status != 0 {
			t.Fatal(out)
		}
		if files["/programs/"+inGuest(tr)], err = os.ReadFile(exe); err != nil {
			t.Fatal(err)
		}
	}
	init := filepath.Join(t.TempDir(), "init")
	build := exec.Command("go", "test", "-c", "-o", init, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := make(map[string]guestRun)
	_, err = live.Boot(t.Context(), live.BootOptions{
		Image: image, Modules: os.Getenv(modulesVar), Init: init, Files: files,
		Object: func(b []byte) {
			var r guestRun
			if err := json.Unmarshal(b, &r); err != nil {
				t.Error(err)
			}
			got[r.Name] = r
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range all {
		if _, ran := files["/programs/"+inGuest(tr)]; !ran {
			continue
		}
		t.Run(nameOf(tr), func(t *testing.T) {
			r := got[inGuest(tr)]
			ended(t, tr, r.Out, r.Status)
		})
	}
}
