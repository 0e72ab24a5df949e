package live

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// cpioWriter writes an archive of the "newc" kind, which the kernel unpacks as
// the root of a guest (Documentation/driver-api/early-userspace). It keeps the
// first error; times are zero, so equal contents are equal archives.
type cpioWriter struct {
	w       io.Writer
	inode   uint32
	written map[string]bool
	err     error
}

func newCPIO(w io.Writer) *cpioWriter {
	return &cpioWriter{w: w, written: map[string]bool{}}
}

// The file types of a cpio mode, as in stat(2).
const (
	cpioDir     = 0o040000
	cpioChar    = 0o020000
	cpioRegular = 0o100000
)

// dir adds a directory and its parents, each once.
func (c *cpioWriter) dir(name string) {
	name = path.Clean("/" + name)
	if name == "/" || c.written[name] {
		return
	}
	c.dir(path.Dir(name))
	c.entry(name, cpioDir|0o755, 0, 0, 0)
}

// device adds a character device.
func (c *cpioWriter) device(name string, major, minor uint32) {
	c.dir(path.Dir(name))
	c.entry(name, cpioChar|0o600, 0, major, minor)
}

// file adds a regular file of exactly size bytes from r.
func (c *cpioWriter) file(name string, perm uint32, r io.Reader, size int64) {
	if size > 1<<32-1 {
		c.fail(fmt.Errorf("%s is too large for an initramfs", name))
		return
	}
	c.dir(path.Dir(path.Clean("/" + name)))
	c.entry(name, cpioRegular|perm, size, 0, 0)
	if c.err != nil {
		return
	}
	n, err := io.Copy(c.w, io.LimitReader(r, size))
	switch {
	case err != nil:
		c.fail(err)
	case n != size:
		c.fail(fmt.Errorf("%s became shorter while it was packed: %d of %d bytes", name, n, size))
	}
	c.pad(size)
}

// bytes adds a regular file with the given content.
func (c *cpioWriter) bytes(name string, perm uint32, content []byte) {
	c.file(name, perm, bytes.NewReader(content), int64(len(content)))
}

// close ends the archive and gives the first error.
func (c *cpioWriter) close() error {
	c.header("TRAILER!!!", 0, 0, 0, 0, 0)
	return c.err
}

func (c *cpioWriter) entry(name string, mode uint32, size int64, major, minor uint32) {
	name = path.Clean("/" + name)
	if c.written[name] {
		c.fail(fmt.Errorf("the initramfs would hold %s twice", name))
	}
	c.written[name] = true
	c.inode++
	c.header(strings.TrimPrefix(name, "/"), c.inode, mode, size, major, minor)
}

// header writes the fixed 110 bytes, the name with its NUL, and padding to 4.
func (c *cpioWriter) header(name string, inode, mode uint32, size int64, major, minor uint32) {
	if c.err != nil {
		return
	}
	const (
		magic = "070701"
		zero  = 0
		links = 1
	)
	_, err := fmt.Fprintf(c.w, "%s%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", magic,
		inode, mode, zero /* uid */, zero /* gid */, links, zero /* mtime */, size,
		zero, zero /* device it lies on */, major, minor, len(name)+1, zero /* checksum */, name)
	c.fail(err)
	const fixed = len(magic) + 13*8
	c.pad(int64(fixed + len(name) + 1))
}

func (c *cpioWriter) pad(n int64) {
	if c.err == nil {
		_, err := c.w.Write(make([]byte, -n&3))
		c.fail(err)
	}
}

func (c *cpioWriter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Where things lie in a guest.
const (
	guestDir    = "/reusecheck"
	guestConfig = guestDir + "/config.json"
	guestMods   = guestDir + "/modules"
)

// initramfs is what a guest starts from.
type initramfs struct {
	init    string // path of the program
	config  []byte
	modules []module
	files   map[string][]byte
}

// write packs the archive. The kernel opens /dev/console for the first program
// before that can make it, so the archive holds it.
func (a *initramfs) write(w io.Writer) error {
	c := newCPIO(w)
	for _, d := range []string{"/dev", "/proc", "/sys", "/tmp", guestMods} {
		c.dir(d)
	}
	c.device("/dev/console", 5, 1)
	init, err := os.Open(a.init)
	if err != nil {
		return err
	}
	defer init.Close()
	info, err := init.Stat()
	if err != nil {
		return err
	}
	c.file("/init", 0o755, init, info.Size())
	c.bytes(guestConfig, 0o644, a.config)
	for _, m := range a.modules {
		c.bytes(m.guestPath(), 0o644, m.content)
	}
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return fmt.Errorf("the guest's file %q needs an absolute path without dots", name)
		}
		c.bytes(name, 0o644, a.files[name])
	}
	if err := c.close(); err != nil {
		return fmt.Errorf("packing the guest's files: %w", err)
	}
	return nil
}

// checkInit reports why a program cannot be the first one of a guest that has
// no library and no other file.
func checkInit(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s is no Linux program and cannot be the guest's first one: %w", path, err)
		}
		return fmt.Errorf("the guest's first program cannot be read: %w", err)
	}
	defer f.Close()
	switch {
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return fmt.Errorf("%s is no program but an ELF file of type %v", path, f.Type)
	case f.Machine != elf.EM_X86_64:
		return fmt.Errorf("%s is built for %v, but the guest is an x86-64 machine: build it with GOARCH=amd64", path, f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is dynamically linked, and a guest has no libraries: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}
