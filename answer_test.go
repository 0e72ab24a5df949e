package reusecheck

import (
	"math"
	"net/netip"
	"strings"
	"testing"
)

func TestAnAnswerIsReadAsItIsWritten(t *testing.T) {
	names := []string{"left", "right"}
	lookup := func(s string) (ID, bool) {
		for i, n := range names {
			if n == s {
				return ID(i), true
			}
		}
		return NoID, false
	}
	for text, want := range map[string]Answer{
		"":                           {},
		"ok":                         Success,
		"ok 40001":                   Picked(40001),
		"EADDRINUSE":                 Fail(EADDRINUSE),
		"none":                       {Kind: Nobody},
		"left":                       {Kind: Received},
		"right":                      {Kind: Received, Who: 1},
		"ok walks=3 left=2147483647": {Kind: Exited, Walks: 3, Left: math.MaxInt32},
	} {
		got, err := ParseAnswer(text, lookup)
		if err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
		if s := want.Text(func(id ID) string { return names[id] }); s != text {
			t.Errorf("%+v is written %q, not %q", want, s, text)
		}
	}
	for e := range errnoNames {
		if got, err := ParseAnswer(e.String(), nil); err != nil || got != Fail(e) {
			t.Errorf("%s is read as %+v, %v", e, got, err)
		}
	}
}

func TestAWrongAnswerIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"EADRINUSE":            "did you mean EADDRINUSE?",
		"a":                    `unknown result "a"`,
		"ok 0":                 "not a port",
		"ok 70000":             "not a port",
		"ok 012":               "not a port",
		"ok ok":                `unexpected "ok"`,
		"none left":            `unexpected "left"`,
		"ok walks=1":           "left=M is missing",
		"ok walks=-1 left=0":   "not a count",
		"ok walks=? left=0":    "not a count",
		"ok walks=1 left=":     "left=M",
		"ok walks=1 left=0 ok": `unexpected "ok"`,
	} {
		if a, err := ParseAnswer(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v, %v; the error should say %s", text, a, err, want)
		}
	}
}

func TestWhatHasNoTextIsPrintedWithoutPanic(t *testing.T) {
	for want, got := range map[string]string{
		"verb(0)":                          strings.TrimSuffix(Op{}.String(), " a"),
		"verb(255)":                        strings.TrimSuffix(Op{Verb: 255}.String(), " a"),
		"set a nothing":                    Op{Verb: VSet}.String(),
		"answer(77)":                       Answer{Kind: 77}.String(),
		"Errno(7)":                         Fail(7).String(),
		"exit":                             Exit().String(),
		"exit b,a":                         Exit(1, 0).String(),
		"bind none invalid AddrPort":       Bind(NoID, netip.AddrPort{}).String(),
		"close a's other end":              Close(ID(0).OtherEnd()).String(),
		"socket a family(9) dev=device(9)": Op{Verb: VSocket, Family: 9, Dev: 9}.String(),
	} {
		if got != want {
			t.Errorf("printed %q, not %q", got, want)
		}
	}
}

func TestStepsAndOperationsArePrintedWithTheNamesGiven(t *testing.T) {
	s := Step{Op: Inherit(0, 1, netip.MustParseAddrPort("[::1]:0")), Want: Answer{Kind: Received, Who: 2}, Oracle: Fail(EBADF)}
	upper := func(id ID) string { return strings.ToUpper(id.String()) }
	if got, want := s.Text(upper), "inherit A B [::1] => C oracle EBADF"; got != want {
		t.Errorf("printed %q, not %q", got, want)
	}
	if got, want := s.Op.Text(upper), "inherit A B [::1]"; got != want {
		t.Errorf("printed %q, not %q", got, want)
	}
	if got, want := s.Op.String(), "inherit a b [::1]"; got != want {
		t.Errorf("printed %q, not %q", got, want)
	}
	if got := (Step{Op: Close(0)}).Text(nil); got != "close a" {
		t.Errorf("printed %q", got)
	}
}

func TestEveryCanonicalNameIsAName(t *testing.T) {
	seen := make(map[string]bool)
	ok := ID(26 + 14*26 + 10)
	for id := range ID(30_000) {
		name := id.String()
		if msg := badName(name); msg != "" || seen[name] {
			t.Fatalf("%d is called %s: %s", id, name, msg)
		}
		seen[name] = true
	}
	for id, want := range map[ID]string{0: "a", 25: "z", 26: "aa", 27: "ab", ok - 1: "oj", ok: "ok_", ok + 1: "ol", math.MaxInt32: "fxshrxx"} {
		if got := id.String(); got != want {
			t.Errorf("%d is called %s, not %s", id, got, want)
		}
	}
}

func TestACountThatIsMissingAgreesWithEveryOther(t *testing.T) {
	exited := func(walks, left int32) Answer { return Answer{Kind: Exited, Walks: walks, Left: left} }
	for _, tt := range []struct {
		stated, given Answer
		want          bool
	}{
		{exited(1, 0), exited(1, 0), true},
		{exited(1, 0), exited(2, 0), false},
		{exited(1, 0), exited(Uncounted, 0), true},
		{exited(1, 0), exited(Uncounted, Uncounted), true},
		{exited(1, 0), exited(Uncounted, 1), false},
		{exited(1, 0), exited(2, Uncounted), false},
		{exited(1, 0), Fail(EBADF), false},
		{exited(Uncounted, Uncounted), Fail(EBADF), false},
		{Success, exited(Uncounted, Uncounted), false},
	} {
		if got := tt.stated.Matches(tt.given); got != tt.want {
			t.Errorf("%s matches %s: %t", tt.stated, tt.given, got)
		}
		if a, b := tt.stated.Agrees(tt.given), tt.given.Agrees(tt.stated); a != tt.want || b != tt.want {
			t.Errorf("%s agrees with %s: %t, and the other way round: %t", tt.stated, tt.given, a, b)
		}
	}
	if s := exited(Uncounted, Uncounted).String(); s != "ok walks=? left=?" {
		t.Errorf("what was not counted is written %q", s)
	}
}
