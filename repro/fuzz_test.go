package repro_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/repro"
)

// FuzzAnyTraceGivesAProgramOrARefusalThatNamesAStep holds every format to what
// Generate says of it.
func FuzzAnyTraceGivesAProgramOrARefusalThatNamesAStep(f *testing.F) {
	for _, s := range []string{
		"ports 1-65535\nsocket l tcp6 reuseport v6only uid=7 dev=d1 range=5-9 no-port transparent\nbind l [::1]:0 => ok 5\nlisten l\ninherit l c [::1] => ok\nset c dev=none\ntimewait c => ok\nexpire c\n",
		"system udp\nsocket a udp4\nconnect a 127.0.0.1:0 => ok 7\nsend 1.2.3.4:5 -> 5.6.7.8:9 dev=d2 => a\n",
		"system timewait\nnetns n\nsocket a tcp4 netns=n\nexit n => ok walks=1 left=0 oracle ok walks=0 left=0\n",
		"sysctl net.ipv4.tcp_fin_timeout 1\nsocket a tcp4\nsocket b tcp4\nbind a [::ffff:1.2.3.4]:1 => EINVAL oracle ok\nconnect b 127.0.0.1:2 => ok 3 oracle EADDRNOTAVAIL\nshutdown b\ndisconnect b\nclose b => EBADF\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := reusecheck.Parse("fuzz.trace", []byte(text))
		if err != nil {
			return
		}
		for _, format := range repro.Formats() {
			src, err := repro.Generate(tr, format.Name, repro.Info{Control: tr})
			var no *repro.Inexpressible
			switch {
			case errors.As(err, &no):
				if no.Format != format.Name || no.Step == "" || no.Why == "" || src != nil {
					t.Errorf("%s refuses with %+v", format.Name, no)
				}
			case err != nil:
				t.Errorf("%s: %v", format.Name, err)
			case len(src) == 0 || !bytes.HasSuffix(src, []byte("\n")) || format.Name != "go" && bytes.Contains(src, []byte("%!")):
				t.Errorf("%s gives %q", format.Name, src)
			case format.Name == "syz":
				checkResources(t, string(src))
			}
		}
	})
}

var resource = regexp.MustCompile(`\br[0-9]+\b`)

// checkResources follows the resources of a syz program: each is made once, by
// the call that it is assigned from, before any call takes it, and none after
// its close.
func checkResources(t *testing.T, src string) {
	t.Helper()
	made, closed := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(src) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		uses := resource.FindAllString(line, -1)
		if def, _, ok := strings.Cut(line, " = "); ok {
			if made[def] || len(uses) == 0 || uses[0] != def {
				t.Errorf("%s is made twice in\n%s", def, src)
			}
			uses = uses[1:]
			made[def] = true
		}
		for _, r := range uses {
			if !made[r] || closed[r] {
				t.Errorf("%q uses %s, which is not there, in\n%s", line, r, src)
			}
			closed[r] = strings.HasPrefix(line, "close(")
		}
	}
}

func TestTheResourcesOfASyzProgramAreMadeBeforeTheyAreUsed(t *testing.T) {
	for _, tr := range traces(t) {
		if src := generateWhereItCan(t, tr.File, "syz"); src != nil {
			checkResources(t, string(src))
		}
	}
}
