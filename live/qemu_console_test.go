package live

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// follow gives a console what a guest wrote, in pieces of at most n bytes.
func follow(text []byte, n int) (c *console, objects []string) {
	c = &console{up: func() {}, done: func() {}, options: &BootOptions{
		Object: func(b []byte) { objects = append(objects, string(b)) },
	}}
	lines := &lineSplitter{line: c.line}
	for len(text) > 0 {
		k := min(n, len(text))
		lines.Write(text[:k])
		text = text[k:]
	}
	if len(lines.pending) > 0 {
		lines.flush()
	}
	return c, objects
}

func TestAConsolesObjectsAreToldFromItsNoise(t *testing.T) {
	const text = "\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS (version 1.16)\r\n" +
		"[    0.812345] ip_local_port_range: prefer different parity for start/end values.\r\n" +
		`{"reusecheck":1,"release":"6.1.0-57-cloud-amd64","build":"Debian 6.1.192-3"}` + "\r\n" +
		`{"a":1}` + "\r\n" +
		`  {"b":{"done":true}}  ` + "\r\n" +
		"\r\n" +
		`{"c":` + "\r\n" +
		`["an array"]` + "\r\n" +
		`"a string"` + "\r\n" +
		`{"d":1}{"e":2}` + "\r\n" +
		`{"reusecheck":1,"done":true,"exit":3,"objects":2}` + "\r\n" +
		"[    2.000000] reboot: Power down\r\n"
	c, objects := follow([]byte(text), 1<<20)
	if d := cmp.Diff([]string{`{"a":1}`, `{"b":{"done":true}}`}, objects); d != "" {
		t.Errorf("objects: -want +got\n%s", d)
	}
	if c.greeting == nil || c.greeting.Release != "6.1.0-57-cloud-amd64" {
		t.Errorf("greeting: %+v", c.greeting)
	}
	if c.closing == nil || c.closing.Exit != 3 || c.closing.Objects != 2 {
		t.Errorf("closing line: %+v", c.closing)
	}
	if want := "SeaBIOS (version 1.16)"; c.log[0] != want {
		t.Errorf("the log begins with %q, want %q", c.log[0], want)
	}
	if last := c.log[len(c.log)-1]; !strings.HasSuffix(last, "Power down") {
		t.Errorf("the log ends with %q", last)
	}
}

func TestALogKeepsWhatCameBeforeAPanic(t *testing.T) {
	var text strings.Builder
	for i := range 40 {
		text.WriteString(strings.Repeat("x", i) + "\r\n")
	}
	text.WriteString("[ 1.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x200\r\n")
	for range 40 {
		text.WriteString("[ 1.0]  ? a back trace\r\n")
	}
	c, _ := follow([]byte(text.String()), 7)
	if c.panicked != ": Attempted to kill init! exitcode=0x200" {
		t.Errorf("panic: %q", c.panicked)
	}
	if len(c.log) != logLines || !strings.Contains(c.log[logLines-1], "Kernel panic") || c.log[logLines-2] != strings.Repeat("x", 39) {
		t.Errorf("log: %q", c.log)
	}
}

func TestALineWithoutEndIsBounded(t *testing.T) {
	var got []int
	s := &lineSplitter{line: func(b []byte) { got = append(got, len(b)) }}
	for range 5 {
		s.Write(bytes.Repeat([]byte("x"), maxLine/2))
	}
	s.Write([]byte("\nshort\n"))
	if d := cmp.Diff([]int{maxLine, 5}, got); d != "" {
		t.Errorf("lengths: -want +got\n%s", d)
	}
}

func FuzzConsole(f *testing.F) {
	f.Add([]byte("noise\r\n{\"a\":1}\r\n"), uint8(3))
	f.Add([]byte(`{"reusecheck":1,"done":true,"exit":1}`+"\n"+`{"reusecheck":1}`), uint8(1))
	f.Add([]byte("Kernel panic - not syncing\x1b[2J\n{}\n"), uint8(200))
	f.Add([]byte("{\"a\":\"\xff\xfe\"}\n\r\r\n{\n}\n"), uint8(2))
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		whole, objects := follow(text, len(text)+1)
		pieces, again := follow(text, int(n)+1)
		if d := cmp.Diff(objects, again); d != "" {
			t.Errorf("what arrives in pieces differs: %s", d)
		}
		if d := cmp.Diff([]any{whole.greeting, whole.closing, whole.panicked, whole.objects, whole.log},
			[]any{pieces.greeting, pieces.closing, pieces.panicked, pieces.objects, pieces.log}); d != "" {
			t.Errorf("what is made of pieces differs: %s", d)
		}
		if len(objects) != whole.objects {
			t.Errorf("%d objects were passed on, %d counted", len(objects), whole.objects)
		}
		for _, o := range objects {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(o), &fields); err != nil || strings.ContainsAny(o, "\n") {
				t.Errorf("%q is no object of one line: %v", o, err)
			}
		}
		if len(whole.log) > logLines {
			t.Errorf("%d lines are kept", len(whole.log))
		}
	})
}
