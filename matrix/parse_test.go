package matrix

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
)

func TestAnErrorOfTheRowsNamesItsColumnAndTheNearestWord(t *testing.T) {
	for _, c := range []struct {
		rows       string
		column     int
		msg        string
		suggestion string
	}{
		{"", 1, "there is no kind", ""},
		{" ; \n", 1, "there is no kind", ""},
		{"tcp4 127.0.0.1; tpc6 ::", 17, `unknown family or set "tpc6"`, "tcp6"},
		{"famlies", 1, `unknown family or set "famlies"`, "families"},
		{"tcp4", 5, "the address is missing", ""},
		{"tcp4 ::", 6, ":: is not an address of tcp4", ""},
		{"tcp6 127.0.0.1", 6, "127.0.0.1 is not an address of tcp6", ""},
		{"tcp6 [::]", 6, `"[::]" is not an address`, ""},
		{"tcp6 fe80::1%lo", 6, `the address "fe80::1%lo" has a zone`, ""},
		{"tcp4 127.0.0.1 resueaddr", 16, `unknown word "resueaddr"`, "reuseaddr"},
		{"tcp4 127.0.0.1 no-port", 16, `unknown word "no-port"`, ""},
		{"tcp4 127.0.0.1 lisen", 16, `unknown word "lisen"`, "listen"},
		{"tcp4 127.0.0.1 listen listen", 23, "listen is given twice", ""},
		{"tcp4 127.0.0.1 uid=1 uid=2", 22, "uid is given twice", ""},
		{"tcp4 127.0.0.1 uid=01", 20, `"01" is not a uid`, ""},
		{"tcp4 127.0.0.1 uid=4294967296", 20, `"4294967296" is not a uid`, ""},
		{"tcp4 127.0.0.1 dev=d3", 20, `unknown device "d3"`, "d1"},
		{"udp4 127.0.0.1 listen", 16, "a UDP socket does not listen", ""},
		{"tcp4 127.0.0.1; udp4 127.0.0.1", 17, "udp4 stands beside tcp4: the ports of TCP and UDP have nothing to do with each other", ""},
		{"users devices", 7, `"devices" stands behind the set users`, ""},
		{"families;" + users(40), 9 + 37*len("tcp4 127.0.0.1 uid=10;") + 1, "there are more than 64 kinds", ""},
		{"tcp4 é", 6, `"é" is not an address`, ""},
		{"tcp4 127.0.0.1 é x", 16, `unknown word "é"`, ""},
	} {
		_, err := Parse(c.rows)
		e := (*reusecheck.ParseError)(nil)
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.rows, err)
			continue
		}
		if e.Column != c.column || e.Msg != c.msg || e.Suggestion != c.suggestion {
			t.Errorf("%q: column %d, %q, did you mean %q; want column %d, %q, %q", c.rows, e.Column, e.Msg, e.Suggestion, c.column, c.msg, c.suggestion)
		}
	}
}

// users are the kinds of n users with two digits.
func users(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "tcp4 127.0.0.1 uid=%d;", 10+i)
	}
	return b.String()
}

func TestTheCaretStandsUnderThePlace(t *testing.T) {
	long := strings.Repeat("tcp4 127.0.0.1 reuseaddr; ", 8) + "tcp5 ::"
	for rows, want := range map[string]string{
		"tcp4\tno":               "--rows:1:6: \"no\" is not an address\n    tcp4 no\n         ^\n    expected an address such as 0.0.0.0 or 127.0.0.1",
		"users\r\n tcp4 no\nudp": "--rows:2:7: \"no\" is not an address\n     tcp4 no\n          ^\n",
		long:                     "reuseaddr; tcp5 ::\n    " + strings.Repeat(" ", 96) + "^\n",
	} {
		_, err := Parse(rows)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not contain\n%s", err, want)
		}
	}
}

func TestWordsOfAKindStandInAnyOrderAndAreOneKind(t *testing.T) {
	got, err := Parse("tcp6 :: listen dev=d1 uid=7 reuseport v6only;;tcp6\t0:0::0 v6only reuseport uid=7 dev=d1 listen\r\ntcp4 127.0.0.1 uid=0")
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, k := range got {
		s = append(s, k.String())
	}
	if d := cmp.Diff([]string{"tcp6 :: v6only reuseport uid=7 dev=d1 listen", "tcp4 127.0.0.1"}, s); d != "" {
		t.Error(d)
	}
}

func TestASetHasAPageOfKindsAndIsAListThatCanBeTyped(t *testing.T) {
	for _, set := range Sets() {
		if n := len(set.Kinds); n < 16 || n > 30 {
			t.Errorf("%s has %d kinds", set.Name, n)
		}
		got, err := Parse(set.Name)
		if err != nil || cmp.Diff(texts(set.Kinds), texts(got)) != "" {
			t.Errorf("%s: not its kinds, or one twice: %v %v", set.Name, err, texts(got))
		}
		typed, err := Parse(strings.Join(texts(set.Kinds), "; "))
		if err != nil || cmp.Diff(texts(set.Kinds), texts(typed)) != "" {
			t.Errorf("%s: typed it is not itself: %v %v", set.Name, err, texts(typed))
		}
	}
}

func texts(ks []Kind) []string {
	var s []string
	for _, k := range ks {
		s = append(s, k.String())
	}
	return s
}

// FuzzParse holds that what is read is printed so that it is read again, and
// that an error has a place in the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"default", "tcp4 127.0.0.1 reuseaddr uid=1001 listen; tcp6 :: v6only", "udp6 ::ffff:1.2.3.4 dev=lo\nudp", "tcp6 [::]", "users x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rows string) {
		ks, err := Parse(rows)
		if e := (*reusecheck.ParseError)(nil); errors.As(err, &e) {
			lines := strings.Split(rows, "\n")
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 {
				t.Errorf("%q: line %d, column %d", rows, e.Line, e.Column)
			}
			if strings.Count(e.Error(), "\n") > 3 {
				t.Errorf("%q: the error is more than its lines: %v", rows, e)
			}
			return
		}
		if err != nil || len(ks) == 0 || len(ks) > MaxKinds {
			t.Fatalf("%q: %d kinds, %v", rows, len(ks), err)
		}
		again, err := Parse(strings.Join(texts(ks), ";"))
		if d := cmp.Diff(texts(ks), texts(again)); err != nil || d != "" {
			t.Errorf("%q: %v %s", rows, err, d)
		}
	})
}
