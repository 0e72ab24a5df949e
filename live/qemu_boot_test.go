//go:build linux

package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Real boots need an image, which the environment names; `.ci/kernels` gets
// Debian's. One boot takes some 5 s under emulation.
const (
	imageVariable   = "REUSECHECK_IMAGE"
	modulesVariable = "REUSECHECK_MODULES"
)

// bootForReal boots the image named by the environment, with this test program
// inside, and gives what the guest said.
func bootForReal(t *testing.T, o BootOptions) ([]string, *BootResult, error) {
	t.Helper()
	o.Image, o.Modules = os.Getenv(imageVariable), os.Getenv(modulesVariable)
	if o.Image == "" {
		t.Skip("no image to boot: set " + imageVariable)
	}
	o.Init = staticTestProgram(t)
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	var said []string
	o.Object = func(b []byte) { said = append(said, string(b)) }
	o.Progress = func(text string) { t.Log(text) }
	r, err := Boot(t.Context(), o)
	if err == nil {
		t.Logf("%v with %s: up after %v, ended after %v, missing %q", r.Kernel, r.Accelerator, r.Up, r.Elapsed, r.Missing)
	}
	return said, r, err
}

// staticTestProgram is this test program, linked statically: itself, or built
// again where cgo linked it to libraries.
func staticTestProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if checkInit(self) == nil {
		return self
	}
	out := filepath.Join(t.TempDir(), "init")
	build := exec.Command("go", "test", "-c", "-o", out, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the guest's program: %v\n%s", err, text)
	}
	return out
}

func TestAGuestsKernelShowsItsCaches(t *testing.T) {
	said, r, err := bootForReal(t, BootOptions{Args: []string{"scenarios"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) == 0 || r.Exit != 0 {
		t.Fatalf("exit %d, said %q", r.Exit, said)
	}
	var first struct{ Pair bool }
	if err := json.Unmarshal([]byte(said[0]), &first); err != nil {
		t.Fatal(err)
	}
	var got []seen
	for _, line := range said[1:] {
		var s seen
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-70s %s | %s", s.Name, s.Caches, s.Pairs)
		got = append(got, s)
	}
	checkSeen(t, r.Kernel, first.Pair, got)
	if image, err := ImageVersion(os.Getenv(imageVariable)); err != nil || image != r.Kernel {
		t.Errorf("the image says that it is %+v (%v), the guest that it is %+v", image, err, r.Kernel)
	}
}

func TestAGuestGetsItsArgumentsFilesAndModules(t *testing.T) {
	said, r, err := bootForReal(t, BootOptions{
		Args:  []string{"machine", "with a space", "\"quoted\" é"},
		Files: map[string][]byte{"/given/file": []byte("content\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 2 || r.Exit != 7 || r.Objects != 2 || said[1] != `{"last":true}` {
		t.Fatalf("exit %d, %d objects, said %q", r.Exit, r.Objects, said)
	}
	var got struct {
		Args        []string
		File, Error string
		Descriptors int
		Modules     []string
	}
	if err := json.Unmarshal([]byte(said[0]), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"machine", "with a space", "\"quoted\" é"}, got.Args); d != "" {
		t.Errorf("arguments: -want +got\n%s", d)
	}
	if got.File != "content\n" || got.Error != "<nil>" || got.Descriptors < 16000 {
		t.Errorf("%+v", got)
	}
	// All of them are modules in Debian's kernels; elsewhere they are built in.
	t.Logf("modules %v, missing %v", got.Modules, r.Missing)
	if len(r.Missing) > 0 || strings.Contains(r.Kernel.Build, "Debian") && len(got.Modules) != 4 {
		t.Errorf("modules %v, missing %v", got.Modules, r.Missing)
	}
}

func TestNoLineOfAGuestIsLost(t *testing.T) {
	said, r, err := bootForReal(t, BootOptions{Args: []string{"flood"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 5000 || r.Objects != 5000 {
		t.Errorf("%d of 5000 lines arrived", len(said))
	}
}

func TestAGuestsKernelThatComplainsIsHeard(t *testing.T) {
	_, r, err := bootForReal(t, BootOptions{Args: []string{"complain"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "at nowhere") {
		t.Errorf("warnings: %q", r.Warnings)
	}
}

func TestAGuestThatDiesIsAnError(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want error
		log  string
	}{
		{"panic", ErrGuestFault, "a test's panic"},
		{"crash", ErrGuestPanic, "Attempted to kill init"},
		{"hang", ErrGuestTimeout, ""},
	} {
		t.Run(c.arg, func(t *testing.T) {
			o := BootOptions{Args: []string{c.arg}}
			if c.arg == "hang" {
				o.Timeout = 15 * time.Second
			}
			_, r, err := bootForReal(t, o)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.log) {
				t.Errorf("got %+v, %v; want %v with %q", r, err, c.want, c.log)
			}
			t.Log(err)
		})
	}
}

func TestAGuestWithoutVethIsAClearError(t *testing.T) {
	if os.Getenv(imageVariable) == "" {
		t.Skip("no image to boot: set " + imageVariable)
	}
	var console bytes.Buffer
	_, err := Boot(context.Background(), BootOptions{
		Image: os.Getenv(imageVariable), Modules: t.TempDir(), Init: staticTestProgram(t),
		Args: []string{"machine"}, Timeout: time.Minute,
		Console: func(b []byte) { console.Write(append(b, '\n')) },
	})
	if !errors.Is(err, ErrGuestFault) || !strings.Contains(err.Error(), "CONFIG_VETH") {
		t.Errorf("got %v\n%s", err, console.Bytes())
	}
	t.Log(err)
}
