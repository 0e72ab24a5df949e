package live

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// guestModules are the modules that a guest uses, where they are not built in:
// the devices of `dev=`, and the netlink interface that ends a TIME_WAIT socket.
// Each is given with where a kernel tree keeps it.
var guestModules = []string{
	"drivers/net/veth.ko",
	"net/ipv4/inet_diag.ko",
	"net/ipv4/tcp_diag.ko",
	"net/ipv4/udp_diag.ko",
}

// module is a kernel module on its way into a guest.
type module struct {
	file    string // base name: veth.ko.xz
	content []byte
}

func (m module) guestPath() string { return guestMods + "/" + m.file }

// compressed reports whether the kernel has to unpack the module itself.
func compressedModule(file string) bool { return path.Ext(file) != ".ko" }

// moduleName is the module's name without directory and extensions.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return name
}

// moduleEndings are the compressions that distributions use.
var moduleEndings = []string{"", ".xz", ".zst", ".gz"}

// findModules gives the modules of guestModules with those that they depend
// on, in the order in which they are to be loaded. One that dir does not have
// is left out: it may be built in, and the guest finds out. An empty dir has none.
func findModules(dir string) ([]module, error) {
	if dir == "" {
		return nil, nil
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("the directory of the kernel's modules: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory of kernel modules", dir)
	}
	deps, err := moduleDeps(dir)
	if err != nil {
		return nil, err
	}
	var files []string // relative to dir, dependencies first
	for _, m := range guestModules {
		for _, f := range deps.order(dir, m) {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
	}
	var out []module
	for _, f := range files {
		m, err := readModule(filepath.Join(dir, filepath.FromSlash(f)))
		if err != nil {
			return nil, fmt.Errorf("kernel module: %w", err)
		}
		out = append(out, m)
	}
	return out, nil
}

// dependencies are modules.dep: for each module by name, its file and those of
// all that it depends on, outermost first.
type dependencies map[string][]string

// moduleDeps reads modules.dep, which depmod writes. A package that was only
// unpacked has none.
func moduleDeps(dir string) (dependencies, error) {
	f, err := os.Open(filepath.Join(dir, "modules.dep"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	deps := dependencies{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if file, rest, ok := strings.Cut(lines.Text(), ":"); ok {
			deps[moduleName(file)] = append([]string{file}, strings.Fields(rest)...)
		}
	}
	return deps, lines.Err()
}

// order gives the files to load for the module that a kernel tree keeps at
// place, relative to dir, the module last; none if dir does not have it.
// Without modules.dep it is the module alone: guestModules is in an order that
// has their own dependencies first.
func (d dependencies) order(dir, place string) []string {
	if files := d[moduleName(place)]; files != nil {
		files = slices.Clone(files)
		slices.Reverse(files)
		return files
	}
	for _, sub := range []string{"kernel", "."} { // installed, or a build tree
		for _, ending := range moduleEndings {
			f := path.Join(sub, place+ending)
			if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f))); err == nil {
				return []string{f}
			}
		}
	}
	return nil
}

// readModule reads a module. What Go can unpack is unpacked here, so that only
// .xz and .zst need a kernel that unpacks modules itself.
func readModule(file string) (module, error) {
	f, err := os.Open(file)
	if err != nil {
		return module{}, err
	}
	defer f.Close()
	m := module{file: filepath.Base(file)}
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		m.file = strings.TrimSuffix(m.file, ".gz")
		if r, err = gzip.NewReader(f); err != nil {
			return module{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	m.content, err = io.ReadAll(r)
	if err != nil {
		return module{}, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// modulesOf is the directory of the modules that belong to an image: the one
// given, else where packages put it, else none.
func modulesOf(image, given, release string) string {
	if given != "" {
		// A root of an unpacked package is understood too.
		if in := modulesBelow(given, release); in != "" {
			return in
		}
		return given
	}
	if abs, err := filepath.Abs(image); err == nil && filepath.Base(filepath.Dir(abs)) == "boot" {
		// /boot/vmlinuz-X has /lib/modules/X, also below another root.
		if in := modulesBelow(filepath.Join(filepath.Dir(abs), ".."), release); in != "" {
			return in
		}
	}
	return modulesBelow("/", release)
}

// modulesBelow is the release's directory of modules in a root, "" if none.
func modulesBelow(root, release string) string {
	for _, lib := range []string{"lib/modules", "usr/lib/modules"} {
		in := filepath.Join(root, lib, release)
		if info, err := os.Stat(in); err == nil && info.IsDir() {
			return in
		}
	}
	return ""
}
