//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestADirectoryForFindingsIsTriedBeforeTheSearch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{file, filepath.Join(file, "below")}
	if _, err := os.Stat("/proc/self"); err == nil {
		dirs = append(dirs, "/proc/self") // nobody makes a file there
	}
	for _, dir := range dirs {
		r := reporter{dir: dir}
		if err := r.prepare(); err == nil || !strings.HasPrefix(err.Error(), "cannot write ") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	r := reporter{dir: filepath.Join(t.TempDir(), "a", "new", "one")}
	if err := r.prepare(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A pipe stands for every file that is no regular one: a test must not risk a device.
func TestWritingToAPipeLeavesItAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// With both ends open nobody waits for the other.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := writeFile(path, []byte("text")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Type() != fs.ModeNamedPipe {
		t.Fatalf("the pipe became %v", info.Mode())
	}
	got := make([]byte, 16)
	n, err := pipe.Read(got)
	if err != nil || string(got[:n]) != "text" {
		t.Errorf("the pipe gives %q, %v", got[:n], err)
	}
}

func TestWritingToALinkReplacesItsTarget(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "new" {
		t.Errorf("the target holds %q, %v", got, err)
	}
}

func TestReplacingAFileKeepsWhoMayReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.c")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode became %v, %v", info.Mode(), err)
	}
}

func TestWhatCannotBeWrittenIsSaidAlikeByEveryVerb(t *testing.T) {
	t.Chdir(t.TempDir())
	const slip = "socket a tcp4 reuseaddr\nsocket b tcp4 reuseaddr reuseport\nsocket c tcp4 reuseport\n" +
		"bind a 127.0.0.1:1\nbind b 127.0.0.1:1\nbind c 127.0.0.1:1\n"
	for _, line := range []string{
		"repro --format c -o none/x -", "shrink -o none/x -", "matrix --rows udp -o none/x",
		"prove --kernel 6.18+stand-in-strict-match --assume " + fewSteps + " --certificate none/x",
	} {
		var errs bytes.Buffer
		code := run(context.Background(), strings.Fields(line), streams{strings.NewReader(slip), io.Discard, &errs})
		if code != exitUsage || !strings.HasSuffix(errs.String(), "checker: cannot write none/x: no such file or directory\n") {
			t.Errorf("%s: exit code %d: %s", line, code, &errs)
		}
	}
	if err := writeRows("none/x", nil); err == nil || err.Error() != "cannot write none/x: no such file or directory" {
		t.Errorf("the rows of a table: %v", err)
	}
	if _, err := os.Stat("none"); err == nil {
		t.Error("a directory was made that nobody asked for")
	}
}

// fewSteps are assumptions that make a proof quick.
const fewSteps = "no-set,no-redirect,no-shutdown,no-connect,no-inherit,no-timewait,no-auto,no-v6,no-uid,no-dev,no-listen"
