package live

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
)

// fakeQEMU puts a shell script into PATH in QEMU's place, so that what is made
// of a guest's end is tested without one. The script finds the directory that
// is returned in $dir.
func fakeQEMU(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := "#!/bin/sh\ndir=" + dir + "\necho $$ >$dir/pid\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, qemuProgram), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// fakeBoot are options with which a fake QEMU starts.
func fakeBoot(t *testing.T) BootOptions {
	t.Helper()
	return BootOptions{
		Image:   writeFile(t, "vmlinuz", string(fakeImage(debian61))),
		Init:    writeFile(t, "init", fakeELF(elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD)),
		Modules: t.TempDir(),
		Timeout: 20 * time.Second,
	}
}

const (
	greet   = `printf '\033c\n{"reusecheck":1,"release":"6.1.0-57-cloud-amd64","build":"Debian 6.1.192-3"}\r\n'`
	objects = `printf '{"step":1}\r\nkernel noise\r\n{"step":2}\r\n'`
	closing = `printf '{"reusecheck":1,"done":true,"exit":%d,"objects":%d}\r\n' `
)

// gone waits until the process that the fake QEMU was is no more.
func gone(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return // killed before it could say
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("QEMU's process %d is still there: %v", pid, err)
	}
}

func TestAGuestIsJudgedByItsClosingLine(t *testing.T) {
	for _, c := range []struct {
		name, script string
		exit         int
		objects      []string
	}{
		{"exit 0", greet + "\n" + objects + "\n" + closing + "0 2", 0, []string{`{"step":1}`, `{"step":2}`}},
		{"another exit", greet + "\n" + closing + "5 0", 5, nil},
		{"whatever QEMU's exit status is", greet + "\n" + closing + "0 0; echo oh >&2; exit 9", 0, nil},
		{"also without a line end", greet + "\n" + `printf '{"reusecheck":1,"done":true,"exit":4,"objects":0}'`, 4, nil},
		{"also if the greeting was lost", closing + "3 0", 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeQEMU(t, c.script)
			o := fakeBoot(t)
			var got []string
			o.Object = func(b []byte) { got = append(got, string(b)) }
			r, err := Boot(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Exit != c.exit || r.Objects != len(c.objects) || r.Kernel.Version != "6.1.192" {
				t.Errorf("%+v", r)
			}
			if d := cmp.Diff(c.objects, got); d != "" {
				t.Errorf("objects: -want +got\n%s", d)
			}
			gone(t, dir)
		})
	}
}

func TestAGuestWithoutItsClosingLineIsAnError(t *testing.T) {
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
		want         error
		texts        []string
	}{
		{"a panic, with exit status 0", greet + "\necho before\necho '[ 1.0] Kernel panic - not syncing: no init'\necho trace", 0,
			ErrGuestPanic, []string{"panicked: no init", "before"}},
		{"an early end, with exit status 0", greet + "\necho last words", 0, ErrGuestSilent, []string{"last words"}},
		{"silence", "true", 0, ErrGuestSilent, []string{"CONFIG_SERIAL_8250_CONSOLE"}},
		{"a hang", greet + "\necho stuck\nexec sleep 1000", 300 * time.Millisecond, ErrGuestTimeout, []string{"stuck", "300ms"}},
		{"a lost line", greet + "\n" + objects + "\n" + closing + "0 3", 0, ErrGuestLost, []string{"3 were sent and 2 arrived"}},
		{"a fault", `echo '{"reusecheck":1,"done":true,"exit":0,"objects":0,"fault":"the image has no loopback"}'`, 0,
			ErrGuestFault, []string{"no loopback"}},
		{"another version of this program", `echo '{"reusecheck":99,"done":true}'`, 0, ErrGuestFault, []string{"version 99"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeQEMU(t, c.script)
			o := fakeBoot(t)
			if c.timeout != 0 {
				o.Timeout = c.timeout
			}
			r, err := Boot(t.Context(), o)
			var boot *BootError
			if !errors.Is(err, c.want) || !errors.As(err, &boot) {
				t.Fatalf("got %+v, %v; want %v", r, err, c.want)
			}
			for _, text := range c.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			gone(t, dir)
		})
	}
}

func TestQEMUsOwnErrorIsPassedOn(t *testing.T) {
	fakeQEMU(t, "echo 'qemu: could not load kernel' >&2; exit 1")
	_, err := Boot(t.Context(), fakeBoot(t))
	if err == nil || !strings.Contains(err.Error(), "could not load kernel") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("got %v", err)
	}
}

func TestAGuestEndsWithItsContext(t *testing.T) {
	dir := fakeQEMU(t, greet+"\nexec sleep 1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := fakeBoot(t)
	interrupted := errors.New("interrupted")
	o.Progress = func(text string) {
		if strings.Contains(text, "is up") {
			cancel(interrupted)
		}
	}
	if r, err := Boot(ctx, o); !errors.Is(err, interrupted) {
		t.Errorf("got %+v, %v", r, err)
	}
	gone(t, dir)
	o.Progress = func(text string) { t.Errorf("with a context that has ended: %s", text) }
	if r, err := Boot(ctx, o); !errors.Is(err, interrupted) {
		t.Errorf("with a context that has ended: %+v, %v", r, err)
	}
}

func TestAGuestThatDoesNotTurnOffIsEnded(t *testing.T) {
	dir := fakeQEMU(t, greet+"\n"+closing+"0 0\nexec sleep 1000")
	o := fakeBoot(t)
	o.powerOff = 100 * time.Millisecond
	start := time.Now()
	r, err := Boot(t.Context(), o)
	if err != nil || r.Exit != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if d := time.Since(start); d > o.Timeout/2 {
		t.Errorf("it took %v", d)
	}
	gone(t, dir)
}

func TestAGuestThatDiesBeforeItsFirstLineIsBootedOnceMore(t *testing.T) {
	const (
		panics = "echo '[ 1.0] Kernel panic - not syncing: Fatal exception'"
		comes  = "\n" + greet + "\n" + closing + "0 0"
	)
	first := func(does string) string { return "[ $(wc -l <$dir/starts) = 1 ] && " + does }
	for _, c := range []struct {
		name, script string
		starts       int
		want         error
	}{
		{"silent, and comes up", first("exec sleep 1000") + comes, 2, nil},
		{"panicking, and comes up", first("{ "+panics+"; exit; }") + comes, 2, nil},
		{"ending, and comes up", first("exit") + comes, 2, nil},
		{"silent, and is given up", "exec sleep 1000", 3, errMute},
		{"panicking, and is given up", panics, 3, ErrGuestPanic},
		{"but not one that spoke", greet + "\nexec sleep 1000", 1, ErrGuestTimeout},
		{"but not one that spoke and panics", greet + "\n" + panics, 1, ErrGuestPanic},
		{"but not one that says what is wrong", `echo '{"reusecheck":1,"done":true,"exit":0,"objects":0,"fault":"no loopback"}'`, 1, ErrGuestFault},
		{"but not for an error of QEMU's own", "exit 1", 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeQEMU(t, "echo start >>$dir/starts\n"+c.script)
			o := fakeBoot(t)
			o.start, o.Timeout = 300*time.Millisecond, 2*time.Second
			if r, err := Boot(t.Context(), o); c.want != nil && !errors.Is(err, c.want) || (r == nil) == (err == nil) {
				t.Errorf("got %+v, %v; want %v", r, err, c.want)
			}
			starts, err := os.ReadFile(filepath.Join(dir, "starts"))
			if n := strings.Count(string(starts), "\n"); err != nil || n != c.starts {
				t.Errorf("started %d times, %v; want %d", n, err, c.starts)
			}
			gone(t, dir)
		})
	}
}

func TestQEMUGetsTheArchiveAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := fakeQEMU(t, `
while [ $# -gt 0 ]; do
	case $1 in
	-initrd) cp "$2" $dir/archive ;;
	-append) printf %s "$2" >$dir/append ;;
	esac
	shift
done
`+greet+"\n"+closing+"0 0")
	o := fakeBoot(t)
	o.Args, o.Files = []string{"replay", "--on"}, map[string][]byte{"/traces/x": []byte("bind a")}
	if _, err := Boot(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(dir, "archive"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"init\x00", "\x7fELF", `{"args":["replay","--on"]`, "traces/x\x00", "bind a", "TRAILER!!!"} {
		if !strings.Contains(string(archive), part) {
			t.Errorf("%q is not in the archive", part)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "append")); err != nil || !strings.Contains(string(b), guestMark+"=1") {
		t.Errorf("the kernel's parameters are %q, %v", b, err)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatIsMissingIsSaidBeforeAnythingStarts(t *testing.T) {
	dir := fakeQEMU(t, greet+"\n"+closing+"0 0")
	for _, c := range []struct {
		name   string
		change func(*BootOptions)
		want   string
	}{
		{"no image", func(o *BootOptions) { o.Image += "-of-nobody" }, "kernel image cannot be read"},
		{"no kernel image", func(o *BootOptions) { o.Image = o.Init }, "bzImage"},
		{"a dynamic program", func(o *BootOptions) {
			o.Init = writeFile(t, "init", fakeELF(elf.EM_X86_64, elf.ET_DYN, elf.PT_INTERP))
		}, "CGO_ENABLED=0"},
		{"no directory of modules", func(o *BootOptions) { o.Modules += "/none" }, "directory of the kernel's modules"},
		{"another kernel's modules", func(o *BootOptions) {
			o.Modules = filepath.Join(o.Modules, "6.12.117+deb12-cloud-amd64")
			if err := os.Mkdir(o.Modules, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "the image is 6.1.0"},
		{"a wrong file name", func(o *BootOptions) { o.Files = map[string][]byte{"x": nil} }, "absolute path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := fakeBoot(t)
			c.change(&o)
			if r, err := Boot(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", r, err, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
		t.Error("QEMU was started")
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Boot(t.Context(), fakeBoot(t))
	var no *reusecheck.Unsupported
	if !errors.As(err, &no) || !strings.Contains(fmt.Sprint(err), "qemu-system-x86") {
		t.Errorf("without QEMU: %v", err)
	}
}
