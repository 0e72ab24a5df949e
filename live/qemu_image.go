package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// KernelVersion names a kernel build.
type KernelVersion struct {
	// Release is what `uname -r` prints: 6.1.0-57-cloud-amd64.
	Release string
	// Version is the upstream version with its patch level, 6.1.192. It is the
	// beginning of Release, save for distributions that keep an interface
	// name there and put the version into the build text (Debian).
	Version string
	// Build is the rest of the build text, what `uname -v` prints.
	Build string
}

func (k KernelVersion) String() string {
	if k.Version == "" || strings.HasPrefix(k.Release, k.Version) {
		return k.Release
	}
	return k.Version + " (" + k.Release + ")"
}

// AtLeast reports whether k is major.minor or later.
func (k KernelVersion) AtLeast(major, minor int) bool {
	a, rest, _ := strings.Cut(k.Version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x > major || x == major && y >= minor
}

var (
	leadingVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+(\.[0-9]+)?`)
	// "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-01-01)"
	debianVersion = regexp.MustCompile(`\bDebian ([0-9]+\.[0-9]+\.[0-9]+)`)
)

// ParseKernelVersion makes a KernelVersion of the two texts that uname(2)
// calls release and version.
func ParseKernelVersion(release, build string) KernelVersion {
	k := KernelVersion{Release: release, Build: build, Version: leadingVersion.FindString(release)}
	if m := debianVersion.FindStringSubmatch(build); m != nil {
		k.Version = m[1]
	}
	return k
}

// The setup header of a bzImage: the kernel's x86 boot protocol, version 2.00
// and later (Documentation/arch/x86/boot.rst).
const (
	setupSectorsAt  = 0x1f1 // sectors of real-mode code behind the first; 0 means 4
	protectedSizeAt = 0x1f4 // the rest, in units of 16 bytes
	bootFlagAt      = 0x1fe // 0xaa55
	headerMagicAt   = 0x202 // "HdrS"
	protocolAt      = 0x206
	versionTextAt   = 0x20e // offset of the build text, less 0x200
	setupHeaderEnd  = 0x210
	versionTextBase = 0x200
	maxVersionText  = 1024
)

// ImageVersion reads which kernel a bzImage (the packaged vmlinuz) holds,
// without booting it.
func ImageVersion(path string) (KernelVersion, error) {
	f, err := os.Open(path)
	if err != nil {
		return KernelVersion{}, fmt.Errorf("the kernel image cannot be read: %w", err)
	}
	defer f.Close()
	k, err := imageVersion(f)
	if err == nil {
		err = whole(f)
	}
	if err != nil {
		return KernelVersion{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// whole says how much a bzImage lacks of what its header announces: one that is
// cut off, such as a download that broke, hangs or dies without a word.
func whole(f *os.File) error {
	var header [setupHeaderEnd]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	setup := int64(header[setupSectorsAt])
	if setup == 0 {
		setup = 4
	}
	want := (setup+1)*512 + int64(binary.LittleEndian.Uint32(header[protectedSizeAt:]))*16
	if info.Mode().IsRegular() && info.Size() < want {
		return fmt.Errorf("the kernel image is cut off: it has %d bytes of the %d that its header announces; get it anew", info.Size(), want)
	}
	return nil
}

func imageVersion(image io.ReaderAt) (KernelVersion, error) {
	text, err := readVersionText(image)
	if err != nil {
		return KernelVersion{}, err
	}
	release, build, _ := strings.Cut(text, " ")
	// Between the release and the build stands (user@host).
	if i := strings.Index(build, ") "); strings.HasPrefix(build, "(") && i >= 0 {
		build = build[i+2:]
	}
	return ParseKernelVersion(release, build), nil
}

// readVersionText is the build text of a bzImage's header.
func readVersionText(r io.ReaderAt) (string, error) {
	var header [setupHeaderEnd]byte
	n, err := r.ReadAt(header[:], 0)
	switch {
	case bytes.HasPrefix(header[:n], []byte("\x7fELF")):
		return "", errors.New("this is an uncompressed kernel or another ELF file; give the bzImage (arch/x86/boot/bzImage, /boot/vmlinuz-*)")
	case err != nil && err != io.EOF:
		return "", err
	case n < len(header),
		binary.LittleEndian.Uint16(header[bootFlagAt:]) != 0xaa55,
		string(header[headerMagicAt:headerMagicAt+4]) != "HdrS":
		return "", errors.New("this is no x86 kernel image: it has no bzImage header")
	}
	at := binary.LittleEndian.Uint16(header[versionTextAt:])
	if binary.LittleEndian.Uint16(header[protocolAt:]) < 0x0200 || at == 0 {
		return "", errors.New("the kernel image does not say its version")
	}
	var text [maxVersionText]byte
	n, err = r.ReadAt(text[:], int64(at)+versionTextBase)
	if err != nil && err != io.EOF {
		return "", err
	}
	end := bytes.IndexByte(text[:n], 0)
	if end < 0 || !leadingVersion.Match(text[:end]) {
		return "", errors.New("the kernel image's version text is damaged")
	}
	return string(text[:end]), nil
}
