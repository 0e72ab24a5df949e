package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The test program is a guest's first program too. This is an init function
// because it must come before every test, and has the process for itself.
func init() { GuestMain(testGuest) }

// testGuest is what runs in a guest that a test boots.
func testGuest(args []string, out io.Writer) int {
	say := json.NewEncoder(out)
	switch args[0] {
	case "scenarios":
		o, err := NewObserver()
		if err != nil {
			say.Encode(map[string]string{"error": err.Error()})
			return 1
		}
		defer o.Close()
		say.Encode(map[string]bool{"pair": o.HasPair()})
		for i := range scenarios {
			s, err := scenarios[i].run(o)
			if err != nil {
				say.Encode(map[string]string{"error": err.Error()})
				return 1
			}
			say.Encode(s)
		}
	case "machine": // what the host gave, and what the guest has
		b, err := os.ReadFile("/given/file")
		var rlimit unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_NOFILE, &rlimit)
		loaded, _ := os.ReadFile("/proc/modules")
		var modules []string
		for line := range strings.Lines(string(loaded)) {
			modules = append(modules, strings.Fields(line)[0])
		}
		say.Encode(map[string]any{"args": args, "file": string(b), "error": fmt.Sprint(err),
			"descriptors": rlimit.Cur, "modules": modules})
		io.WriteString(out, "this is no object\n{\"neither\": is this}\n{\"last\":true}") // without an end
		return 7
	case "flood":
		os.WriteFile("/dev/kmsg", []byte("<4>a message of the kernel between the lines\n"), 0)
		for i := range 5000 {
			say.Encode(map[string]any{"i": i, "text": strings.Repeat("x", 200)})
			if i%100 == 0 {
				os.WriteFile("/dev/kmsg", []byte("<4>a message of the kernel between the lines\n"), 0)
			}
		}
	case "complain":
		os.WriteFile("/dev/kmsg", []byte("<4>WARNING: CPU: 0 PID: 1 at nowhere\n"), 0)
	case "panic":
		panic(errors.New("a test's panic"))
	case "crash":
		done := make(chan bool)
		go func() { panic("a test's crash") }()
		<-done
	case "hang":
		for {
			unix.Pause()
		}
	}
	return 0
}
