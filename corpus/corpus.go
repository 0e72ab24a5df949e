// Package corpus is the project's traces, by system and then by origin:
//
//   - tcp/selftests, what the kernel's own selftests do and expect;
//   - tcp/kunit, the first-bind cases and conflict guards of the report that
//     this project began with;
//   - tcp/history, the mistakes of past kernels, wrong and right;
//   - tcp/cases, divergences seen on running kernels;
//   - tcp/findings, what this project's own searches found;
//   - tcp/demand, what people ask about address reuse;
//   - udp/seeds, the scenarios of the series that brought the 4-tuple hash;
//   - udp/history, the mistakes of past and present kernels;
//   - timewait/seeds, the scenarios of the series that left out needless walks;
//   - timewait/history, the mistakes of past kernels.
//
// A new trace is a new file: nothing else has to be changed. It is replayed by
// this package's tests on every modelled kernel that its kernels header names.
package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	"github.com/reusecheck/reusecheck"
)

//go:embed tcp udp timewait
var files embed.FS

// FS is the traces as files, SYSTEM/ORIGIN/.../NAME.trace.
func FS() fs.FS { return files }

// All parses every trace, in the order of the paths; File is the path in [FS].
func All() ([]*reusecheck.Trace, error) { return Under(".") }

// Under parses the traces below one folder of [FS], such as "tcp/history".
func Under(dir string) ([]*reusecheck.Trace, error) {
	var ts []*reusecheck.Trace
	err := fs.WalkDir(files, path.Clean(dir), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".trace" {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		t, err := reusecheck.Parse(name, text)
		if err != nil {
			return err
		}
		ts = append(ts, t)
		return nil
	})
	if err == nil && len(ts) == 0 {
		err = fmt.Errorf("corpus: no trace below %s", dir)
	}
	return ts, err
}
