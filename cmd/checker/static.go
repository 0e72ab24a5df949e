package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
)

// guestInit is the program that a guest starts: this one, when it is linked
// statically, else one that is built so for the purpose. It says where that is
// and how to let go of it.
func guestInit(ctx context.Context) (path string, done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("finding this program, which is the guest's first one: %w", err)
	}
	if isStatic(self) {
		return self, func() {}, nil
	}
	// "go run" links the C library where there is a C compiler.
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", nil, fmt.Errorf("%s is dynamically linked, and a guest has no libraries: build it with CGO_ENABLED=0", self)
	}
	dir, err := os.MkdirTemp("", "checker")
	if err != nil {
		return "", nil, err
	}
	done = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "checker")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, info.Path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		done()
		return "", nil, fmt.Errorf("%s is dynamically linked, and a guest has no libraries; build it with CGO_ENABLED=0, or run it in its source tree; doing so here failed: %w: %.200s",
			self, err, bytes.TrimSpace(out))
	}
	return path, done, nil
}

func isStatic(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return true // no ELF file, no interpreter
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
