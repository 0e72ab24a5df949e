package repro_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck/repro"
)

// packetdrillVar names the tool, which no distribution packages: built from its
// source, it shows that the scripts are parsed and do what they say.
const packetdrillVar = "REUSECHECK_PACKETDRILL"

// generateWhereItCan gives nil for a trace that the format has no words for.
func generateWhereItCan(t *testing.T, file, format string) []byte {
	t.Helper()
	src, err := repro.Generate(read(t, file), format, repro.Info{})
	var no *repro.Inexpressible
	if err != nil && !errors.As(err, &no) {
		t.Fatal(err)
	}
	return src
}

func TestAPacketdrillScriptIsRunByTheTool(t *testing.T) {
	tool := os.Getenv(packetdrillVar)
	if tool == "" {
		t.Skip("set " + packetdrillVar + " to packetdrill's executable")
	}
	needRoot(t)
	ran := 0
	for _, tr := range traces(t) {
		src := generateWhereItCan(t, tr.File, "packetdrill")
		if src == nil || !tr.Kernels.Includes("", release(t)) {
			continue
		}
		ran++
		t.Run(base(tr), func(t *testing.T) {
			out, status := run(t, 30*time.Second, "unshare", "-n", tool, save(t, "p.pkt", src))
			if (status != 0) != tr.Diverges() || tr.Diverges() && !strings.Contains(out, "Expected result -1 but got 0") {
				t.Errorf("exit status %d of\n%s%s", status, src, out)
			}
		})
	}
	if ran < 4 {
		t.Errorf("%d scripts only", ran)
	}
}

// syzVar names a program around syzkaller's package prog that reads a program,
// parses it strictly, and ends with 0 when what it prints of it has as many
// calls and is understood in the same way again.
const syzVar = "REUSECHECK_SYZ_PARSE"

func TestASyzProgramIsParsedByTheFuzzersOwnParser(t *testing.T) {
	tool := os.Getenv(syzVar)
	if tool == "" {
		t.Skip("set " + syzVar + " to a parser of syz programs")
	}
	parsed := 0
	for _, tr := range traces(t) {
		src := generateWhereItCan(t, tr.File, "syz")
		if src == nil {
			continue
		}
		parsed++
		cmd := exec.Command(tool)
		cmd.Stdin = strings.NewReader(string(src))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", base(tr), err, src, out)
		}
	}
	if parsed < 10 {
		t.Errorf("%d programs only", parsed)
	}
}
