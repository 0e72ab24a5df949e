package live

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The golden archive: one directory, one device, two files, the end.
const goldenCPIO = `
070701 00000001 000041ed 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000004 00000000 dev\x00\x00\x00
070701 00000002 00002180 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000005 00000001 0000000c 00000000 dev/console\x00\x00\x00
070701 00000003 000081ed 00000000 00000000 00000001 00000000 00000005 00000000 00000000 00000000 00000000 00000005 00000000 init\x00\x00 hello\x00\x00\x00
070701 00000004 000081a4 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000006 00000000 empty\x00
070701 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 0000000b 00000000 TRAILER!!!\x00\x00\x00\x00
`

func TestAnArchiveIsWrittenByteForByte(t *testing.T) {
	var got bytes.Buffer
	c := newCPIO(&got)
	c.device("/dev/console", 5, 1)
	c.bytes("/init", 0o755, []byte("hello"))
	c.bytes("/empty", 0o644, nil)
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(" ", "", "\n", "", `\x00`, "\x00").Replace(goldenCPIO)
	if got.String() != want {
		t.Errorf("the archive is\n%swant\n%s", hex.Dump(got.Bytes()), hex.Dump([]byte(want)))
	}
}

func TestTheCpioProgramReadsTheArchive(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("cpio is not installed")
	}
	var archive bytes.Buffer
	a := initramfs{init: writeFile(t, "init", "the program"), config: []byte("{}"),
		modules: []module{{file: "veth.ko", content: []byte("odd")}},
		files:   map[string][]byte{"/a/b/c": []byte("x"), "/a/b/d": nil}}
	if err := a.write(&archive); err != nil {
		t.Fatal(err)
	}
	list := exec.Command("cpio", "-t", "--quiet")
	list.Stdin = &archive
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "dev proc sys tmp reusecheck reusecheck/modules dev/console init reusecheck/config.json reusecheck/modules/veth.ko a a/b a/b/c a/b/d"
	if got := strings.Join(strings.Fields(string(out)), " "); got != want {
		t.Errorf("cpio lists\n%s\nwant\n%s", got, want)
	}
}

func TestAnArchiveRefusesWhatItCannotHold(t *testing.T) {
	init := writeFile(t, "init", "the program")
	for _, c := range []struct {
		name, want string
		files      map[string][]byte
	}{
		{"a relative path", "absolute path", map[string][]byte{"a": nil}},
		{"a path with dots", "absolute path", map[string][]byte{"/a/../init": nil}},
		{"the program's own place", "twice", map[string][]byte{"/init": nil}},
		{"a file that is a directory too", "twice", map[string][]byte{"/tmp": nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := initramfs{init: init, files: c.files}
			if err := a.write(io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	c := newCPIO(io.Discard)
	c.file("/short", 0o644, strings.NewReader("abc"), 4)
	if err := c.close(); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a file that shrank: %v", err)
	}
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeELF is an ELF program of one segment of the given type, and nothing else.
func fakeELF(machine elf.Machine, kind elf.Type, segment elf.ProgType) string {
	var b bytes.Buffer
	h := elf.Header64{Type: uint16(kind), Machine: uint16(machine), Version: 1,
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(segment)})
	return b.String()
}

func TestOnlyAStaticProgramOfTheMachineStartsAGuest(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"a static program", fakeELF(elf.EM_X86_64, elf.ET_EXEC, elf.PT_LOAD), ""},
		{"a static program of any address", fakeELF(elf.EM_X86_64, elf.ET_DYN, elf.PT_DYNAMIC), ""},
		{"a dynamic program", fakeELF(elf.EM_X86_64, elf.ET_EXEC, elf.PT_INTERP), "CGO_ENABLED=0"},
		{"another machine's", fakeELF(elf.EM_AARCH64, elf.ET_EXEC, elf.PT_LOAD), "GOARCH=amd64"},
		{"a relocatable file", fakeELF(elf.EM_X86_64, elf.ET_REL, elf.PT_LOAD), "no program"},
		{"a script", "#!/bin/sh\necho this is no program at all, but it is long enough\n", "no Linux program"},
		{"an empty file", "", "no Linux program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkInit(writeFile(t, "init", c.content))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if err := checkInit(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// moduleDir makes a directory of modules; a name that ends in / is a directory.
func moduleDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestModulesComeInTheOrderInWhichTheyLoad(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"with modules.dep, dependencies first", map[string]string{
			"modules.dep": "kernel/net/ipv4/tcp_diag.ko: kernel/net/ipv4/inet_diag.ko kernel/lib/base.ko\n" +
				"kernel/net/ipv4/inet_diag.ko: kernel/lib/base.ko\nkernel/lib/base.ko:\nkernel/drivers/net/veth.ko:\n",
			"kernel/net/ipv4/tcp_diag.ko": "tcp", "kernel/net/ipv4/inet_diag.ko": "inet",
			"kernel/lib/base.ko": "base", "kernel/drivers/net/veth.ko": "veth",
		}, "veth.ko=veth base.ko=base inet_diag.ko=inet tcp_diag.ko=tcp"},
		{"of a package that was only unpacked", map[string]string{
			"kernel/net/ipv4/tcp_diag.ko.xz": "tcp", "kernel/net/ipv4/inet_diag.ko.xz": "inet",
			"kernel/net/ipv4/udp_diag.ko.xz": "udp", "kernel/drivers/net/veth.ko.xz": "veth",
		}, "veth.ko.xz=veth inet_diag.ko.xz=inet tcp_diag.ko.xz=tcp udp_diag.ko.xz=udp"},
		{"of a build tree", map[string]string{"drivers/net/veth.ko": "veth"}, "veth.ko=veth"},
		{"unpacked here where Go can", map[string]string{"kernel/drivers/net/veth.ko.gz": gzipped("veth")}, "veth.ko=veth"},
		{"left to the kernel otherwise", map[string]string{"kernel/drivers/net/veth.ko.zst": "zst"}, "veth.ko.zst=zst"},
		{"none where all are built in", map[string]string{"modules.dep": "", "modules.builtin": "kernel/drivers/net/veth.ko\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			mods, err := findModules(moduleDir(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range mods {
				got = append(got, m.file+"="+string(m.content))
			}
			if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestModulesThatCannotBeReadAreAnError(t *testing.T) {
	file := writeFile(t, "file", "")
	for _, c := range []struct{ name, dir, want string }{
		{"no directory", file, "no directory"},
		{"nothing there", file + "/none", "modules"},
		{"a damaged one", moduleDir(t, map[string]string{"kernel/drivers/net/veth.ko.gz": "no gzip at all"}), "veth.ko.gz"},
		{"one that modules.dep promises", moduleDir(t, map[string]string{"modules.dep": "kernel/veth.ko:\n"}), "veth.ko"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if mods, err := findModules(c.dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", mods, err, c.want)
			}
		})
	}
}

func TestModulesAreFoundBesideTheirImage(t *testing.T) {
	root := moduleDir(t, map[string]string{
		"boot/vmlinuz-6.1.0-9": "", "lib/modules/6.1.0-9/modules.dep": "",
		"boot/vmlinuz-6.2.0-9": "", "usr/lib/modules/6.2.0-9/modules.dep": "",
		"elsewhere/bzImage": "",
	})
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, c := range []struct{ name, image, given, release, want string }{
		{"beside /boot", at("boot/vmlinuz-6.1.0-9"), "", "6.1.0-9", at("lib/modules/6.1.0-9")},
		{"beside /boot, in /usr", at("boot/vmlinuz-6.2.0-9"), "", "6.2.0-9", at("usr/lib/modules/6.2.0-9")},
		{"nowhere", at("elsewhere/bzImage"), "", "6.1.0-9-of-nobody", ""},
		{"where one says", at("elsewhere/bzImage"), at("lib/modules/6.1.0-9"), "other", at("lib/modules/6.1.0-9")},
		{"below the root that one gives", at("elsewhere/bzImage"), root, "6.1.0-9", at("lib/modules/6.1.0-9")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := modulesOf(c.image, c.given, c.release); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
