package live

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeImage is a bzImage with the given build text in its two sectors, and 64
// bytes behind them for its code.
func fakeImage(text string) []byte {
	const at = 0x40 // as in a real one, the text begins behind the header
	const code = 64
	b := make([]byte, 2*512+code)
	b[setupSectorsAt] = 1
	binary.LittleEndian.PutUint32(b[protectedSizeAt:], code/16)
	binary.LittleEndian.PutUint16(b[bootFlagAt:], 0xaa55)
	copy(b[headerMagicAt:], "HdrS")
	binary.LittleEndian.PutUint16(b[protocolAt:], 0x020f)
	binary.LittleEndian.PutUint16(b[versionTextAt:], at)
	copy(b[at+0x200:], text)
	return b
}

const debian61 = "6.1.0-57-cloud-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-07-01)"

func TestAnImageSaysItsVersion(t *testing.T) {
	for _, c := range []struct {
		text string
		want KernelVersion
	}{
		{debian61, KernelVersion{"6.1.0-57-cloud-amd64", "6.1.192", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-07-01)"}},
		{"6.18.44 (me@here) #2 SMP", KernelVersion{"6.18.44", "6.18.44", "#2 SMP"}},
		{"6.19.0-rc3+ (me@here) #1 SMP", KernelVersion{"6.19.0-rc3+", "6.19.0", "#1 SMP"}},
		{"7.0", KernelVersion{"7.0", "7.0", ""}},
	} {
		t.Run(c.text, func(t *testing.T) {
			got, err := ImageVersion(writeFile(t, "vmlinuz", string(fakeImage(c.text))))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	k := ParseKernelVersion("6.12.117+deb12-cloud-amd64", "")
	for _, c := range []struct {
		major, minor int
		want         bool
	}{{6, 12, true}, {6, 8, true}, {5, 19, true}, {6, 13, false}, {7, 0, false}} {
		if k.AtLeast(c.major, c.minor) != c.want {
			t.Errorf("%v at least %d.%d: want %v", k, c.major, c.minor, c.want)
		}
	}
}

func TestWhatIsNoImageIsAnError(t *testing.T) {
	noVersion := fakeImage("x")
	binary.LittleEndian.PutUint16(noVersion[versionTextAt:], 0)
	cut := fakeImage(debian61)
	for _, c := range []struct{ name, content, want string }{
		{"an empty file", "", "no x86 kernel image"},
		{"a text", strings.Repeat("this is no kernel\n", 100), "no x86 kernel image"},
		{"an ELF vmlinux", "\x7fELF" + strings.Repeat("\x00", 1000), "bzImage"},
		{"one without version", string(noVersion), "does not say its version"},
		{"a damaged version", string(fakeImage("not a version")), "damaged"},
		{"one that is cut off in its version", string(cut[:0x250]), "damaged"},
		{"one that is cut off by a byte", string(cut[:len(cut)-1]), "cut off: it has 1087 bytes of the 1088"},
		{"one of four sectors, as old ones say it", string(cut[:setupSectorsAt]) + "\x00" + string(cut[setupSectorsAt+1:]), "bytes of the 2624"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ImageVersion(writeFile(t, "vmlinuz", c.content))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
	if _, err := ImageVersion(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an image that is not there: %v", err)
	}
}

func FuzzImageVersion(f *testing.F) {
	f.Add(fakeImage(debian61))
	f.Add([]byte("\x7fELF"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, image []byte) {
		if k, err := imageVersion(bytes.NewReader(image)); err == nil && k.Version == "" {
			t.Errorf("an image without a version is none: %+v", k)
		}
	})
}
