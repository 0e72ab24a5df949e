package reusecheck

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the outputs of the text-driven tests")

// textCases runs f on every input of the files that match: a comment that names
// the case, input, ----, output, and ==== between cases.
func textCases(t *testing.T, pattern string, f func(input string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range strings.Split(string(text), "====\n") {
			input, want, ok := strings.Cut(c, "----\n")
			if !ok {
				t.Fatalf("%s: a case without ----:\n%s", file, c)
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(input, "# "), "\n")
			got := f(input)
			out = append(out, input+"----\n"+got)
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(want, got); diff != "" && !*update {
					t.Errorf("%s (-want +got):\n%s\n%s", file, diff, got)
				}
			})
		}
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(out, "====\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAParseErrorNamesPlaceLineExpectationAndNearestWord(t *testing.T) {
	textCases(t, "testdata/errors/*.txt", func(input string) string {
		trace, err := Parse("x.trace", []byte(input))
		if err == nil {
			return "no error:\n" + trace.String()
		}
		return err.Error() + "\n"
	})
}

func TestATextIsPrintedInCanonicalSpelling(t *testing.T) {
	textCases(t, "testdata/canonical/*.txt", func(input string) string {
		trace, err := Parse("x.trace", []byte(input))
		if err != nil {
			return err.Error() + "\n"
		}
		return trace.String()
	})
}

func TestACanonicalTextIsPrintedAsItStands(t *testing.T) {
	files, _ := filepath.Glob("testdata/canonical/*.trace")
	if len(files) < 3 {
		t.Fatal("the files of the three systems are missing")
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := ParseFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), trace.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if err := trace.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if trace.File != file {
			t.Errorf("File is %q, not %q", trace.File, file)
		}
	}
}

func TestParseErrorsOfBytesThatAreNoText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       ParseError
	}{
		{"NUL", "title a\nsocket a\x00 tcp4\n", ParseError{Line: 2, Column: 9, Text: "socket a\uFFFD tcp4", Msg: "control character U+0000"}},
		{"NUL in a comment", "# \x00", ParseError{Line: 1, Column: 3, Text: "# \uFFFD", Msg: "control character U+0000"}},
		{"escape in a title", "title \x1b[31m", ParseError{Line: 1, Column: 7, Text: "title \uFFFD[31m", Msg: "control character U+001B"}},
		{"lone carriage return", "title a\rtitle b", ParseError{Line: 1, Column: 8, Text: "title a\uFFFDtitle b", Msg: "control character U+000D"}},
		{"broken UTF-8 after umlauts", "title \u00e4\u00f6\xff\xff", ParseError{Line: 1, Column: 9, Text: "title \u00e4\u00f6\uFFFD\uFFFD", Msg: "the byte 0xFF is not UTF-8"}},
		{"UTF-16", "\xff\xfet\x00", ParseError{Line: 1, Column: 1, Text: "\uFFFD\uFFFDt\uFFFD", Msg: "the byte 0xFF is not UTF-8"}},
		{"a second byte order mark", "\uFEFF\uFEFFtitle a", ParseError{Line: 1, Column: 1, Text: "\uFFFDtitle a", Msg: "character U+FEFF outside ASCII"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			var got *ParseError
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			c.want.File, c.want.Expected = "f", got.Expected
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLineEndsAndByteOrderMarkAreNoPartOfATrace(t *testing.T) {
	want := MustParse("title a \uFFFD\n\nsocket a tcp4\nlisten a => EINVAL\n")
	for name, text := range map[string]string{
		"CRLF":                "title a \uFFFD\r\n\r\nsocket a tcp4\r\nlisten a => EINVAL\r\n",
		"byte order mark":     "\uFEFFtitle a \uFFFD\n\nsocket a tcp4\nlisten a => EINVAL\n",
		"no newline at end":   "title a \uFFFD\n\nsocket a tcp4\nlisten a => EINVAL",
		"carriage return end": "title a \uFFFD\n\nsocket a tcp4\nlisten a => EINVAL\r",
	} {
		got, err := Parse("", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, traceOptions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.Steps[1].Line != 4 {
			t.Errorf("%s: the second step stands in line %d, not 4", name, got.Steps[1].Line)
		}
	}
}

func TestLimitsAreKeptAndNamed(t *testing.T) {
	sockets := func(n int) string {
		var b strings.Builder
		for id := range ID(n) {
			b.WriteString("socket " + id.String() + " tcp4\n")
		}
		return b.String()
	}
	long := strings.Repeat("#\n", DefaultLimits.Bytes/2)
	for _, c := range []struct {
		name, text string
		limits     Limits
		want       string
	}{
		{"1,000 sockets", sockets(1000), DefaultLimits, ""},
		{"1,001 sockets", sockets(1001), DefaultLimits, "f:1001:8: too many sockets: more than 1000"},
		{"the thousand and first is a child", sockets(1000) + "inherit a child 127.0.0.1", Limits{}, "f:1001:11: too many sockets: more than 1000"},
		{"namespaces are not sockets", "system timewait\nnetns n\n" + sockets(2), Limits{Sockets: 2}, ""},
		{"two are too many", sockets(2), Limits{Sockets: 1}, "f:2:8: too many sockets: more than 1"},
		{"1 MiB", long, DefaultLimits, ""},
		{"1 MiB and a byte", long + "#", DefaultLimits, "f:524289:1: the trace is too long: more than 1048576 bytes"},
		{"a long line", "#\u00e4\u00e4", Limits{Bytes: 3}, "f:1:3: the trace is too long: more than 3 bytes"},
	} {
		_, err := ParseWithin("f", []byte(c.text), c.limits)
		switch {
		case c.want == "" && err == nil:
		case err == nil || c.want == "" || !strings.HasPrefix(err.Error(), c.want):
			t.Errorf("%s: error %v, not %q", c.name, err, c.want)
		}
	}
}

func TestAnErrorIsShortHoweverLongTheWordIs(t *testing.T) {
	const short = 1000 // characters, what is expected included
	word := strings.Repeat("x", 500_000)
	for _, text := range []string{
		word, "socket a " + word, "socket a tcp4 " + word, "socket a tcp4\nbind a " + word, "socket a tcp4\nbind a 127.0.0.1:1 => " + word,
		"kernels " + word, "system " + word, "socket " + word + " tcp4\nsocket " + word + " tcp4", "socket a tcp4\nclose " + word,
		"socket a tcp4\nset a uid=" + word, "socket a tcp4\nlisten a oracle " + word, "ports " + word,
	} {
		_, err := Parse("f", []byte(text))
		if err == nil {
			t.Errorf("%.60s is accepted", text)
		} else if n := len(err.Error()); n > short || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%.60s: an error of %d characters: %.200s", text, n, err)
		}
	}
}

func TestParseFileTellsAFileThatIsNotThereFromABadTrace(t *testing.T) {
	if _, err := ParseFile(filepath.Join(t.TempDir(), "none.trace")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	file := filepath.Join(t.TempDir(), "long.trace")
	if err := os.WriteFile(file, make([]byte, DefaultLimits.Bytes+10), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ParseFile(file)
	var pe *ParseError
	if !errors.As(err, &pe) || !strings.Contains(pe.Msg, "too long") || pe.File != file {
		t.Errorf("error %v", err)
	}
}

func TestIDsCountTheDefinitions(t *testing.T) {
	trace := MustParse("socket x tcp4\ninherit x y 127.0.0.1\nsocket z tcp4\nclose y\n")
	if diff := cmp.Diff([]string{"x", "y", "z"}, trace.Names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []Op{NewSocket(0, TCP4, 0), Inherit(0, 1, trace.Steps[1].Op.Addr), NewSocket(2, TCP4, 0), Close(1)}
	for i, s := range trace.Steps {
		if diff := cmp.Diff(want[i], s.Op, traceOptions); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestTheNearestWordIsSuggestedOnlyWhenItIsNear(t *testing.T) {
	words := []string{"bind", "listen", "connect", "set", "ok", "on", "off"}
	for word, want := range map[string]string{
		"bnid": "bind", "bid": "bind", "BIND": "bind", "binds": "bind", "sett": "set", "liten": "listen", "conect": "connect", "lsiten": "listen",
		"xyzzy": "", "a": "", "": "", "bind": "", "ok": "on", "of": "off", "OK": "ok", "binding-much-longer": "",
		strings.Repeat("b", 1000): "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, not %q", word, got, want)
		}
	}
}

func TestMustParsePanicsWithTheErrorOfATextWithoutFile(t *testing.T) {
	defer func() {
		err, _ := recover().(error)
		if want := "trace:1:1: unknown header or step"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("panic %v, not %q", err, want)
		}
	}()
	MustParse("x")
}
