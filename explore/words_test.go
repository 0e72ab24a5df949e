package explore

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/spec"
)

func TestAnAmountOfMemoryIsAWholeNumberWithAUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "7B": 7, "2K": 2 << 10, "2KiB": 2 << 10, "3M": 3 << 20, "3MiB": 3 << 20, "4G": 4 << 30, "16GiB": 16 << 30,
		"8589934591G": math.MaxInt64 >> 30 << 30, "9223372036854775807": math.MaxInt64,
	} {
		if n, err := ParseSize(text); err != nil || n != want {
			t.Errorf("%q is %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "+4G", "4 G", "4G junk", "G", "4GB", "4iB", "4KM", "0.5G", "1e9", "8589934592G", "99999999999G", "9223372036854775808", "٤G"} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q is taken for %d bytes", text, n)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"4G", "512M", "16GiB", "2KiB", "7B", "99999999999G", "lots", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if (err == nil) != (n > 0) {
			t.Fatalf("%q: %d, %v", text, n, err)
		}
		if err != nil && !strings.Contains(err.Error(), "is no amount of memory") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func TestAnAddressOfAWorldHasNoZone(t *testing.T) {
	if _, err := ParseWorld("tcp6 addr=fe80::1%lo"); err == nil || !strings.Contains(err.Error(), "has a zone") {
		t.Error(err)
	}
}

// FuzzParseWorld gives arbitrary words: what is a world has steps that a trace can
// say, and reads the same again.
func FuzzParseWorld(f *testing.F) {
	for _, n := range named {
		f.Add(n.name)
		f.Add(n.words)
	}
	for _, text := range []string{
		"mixed uid=2 dev=2", "v4 set-opt", "udp4 addr=127.0.0.1 crowd group=127", "tcp4 nets=4 mixed-tables", "tcp6 mapped cpu=2 ports=8 auto",
		"v4 uid=0", "v4 addr=", "tcp6 addr=fe80::1%lo", "addr=::ffff:127.0.0.1", "v5", "group=200 group=200 udp4", "=1", "udp udp6 tcp4",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := ParseWorld(text)
		if err != nil {
			if w != nil || err.Error() == "" {
				t.Fatalf("%q: a world and %v", text, err)
			}
			return
		}
		if again, err := ParseWorld(strings.Join(strings.Fields(text), "  ")); err != nil || !reflect.DeepEqual(w, again) {
			t.Errorf("%q is another world when it is read again: %v", text, err)
		}
		for _, sys := range spec.Systems {
			if Fits(sys, w) == nil && len(w.Families)+len(w.Addrs)+len(w.CPUs) < 12 {
				sayable(t, text, sys, w)
			}
		}
	})
}

// sayable checks that a trace has words for the first steps of a world's menu, and
// reads them as they are.
func sayable(t *testing.T, text string, sys *spec.System, w *spec.World) {
	tr := &rc.Trace{Config: walkConfig(sys, w)}
	for _, op := range w.Base {
		spec.Append(tr, op, nil)
	}
	if len(w.Base) > 0 {
		if err := parses(tr); err != nil {
			t.Fatalf("%q: what is there to begin with: %v\n%s", text, err, tr)
		}
	}
	fresh := newMenu(sys, w).fresh
	for i := range fresh[:min(len(fresh), 40)] {
		create, op := fresh[i].at(0)
		if op.Verb == rc.VInherit {
			continue // its child has no name yet
		}
		one := &rc.Trace{Config: walkConfig(sys, w)}
		spec.Append(one, create, nil)
		spec.Append(one, op, nil)
		if err := parses(one); err != nil {
			t.Fatalf("%q: %v\n%s", text, err, one)
		}
	}
}

func parses(tr *rc.Trace) error {
	again, err := rc.Parse("world", []byte(tr.String()))
	if err == nil && again.String() != tr.String() {
		err = &SelfError{"a trace reads as another", again.String()}
	}
	return err
}

// FuzzParseAssumptions gives arbitrary words: assumptions print as words that
// read as the same ones.
func FuzzParseAssumptions(f *testing.F) {
	names, _ := Assumptions()
	f.Add(strings.Join(names, ","))
	for _, n := range names {
		f.Add(n)
	}
	f.Add("no-set,no-redirect,no-shutdown")
	f.Add("no-sets")
	f.Add("no-")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, ",")
		a, err := ParseAssumptions(words)
		if err != nil {
			if a != 0 || !strings.Contains(err.Error(), "there is no assumption") {
				t.Errorf("%q: %s and %v", text, a, err)
			}
			return
		}
		again, err := ParseAssumptions(strings.Split(a.String(), ","))
		if err != nil || again != a {
			t.Errorf("%q prints as %s, which is %s, %v", text, a, again, err)
		}
		for _, n := range words {
			if !slices.Contains(names, n) {
				t.Errorf("%q is none of the assumptions that are listed", n)
			}
		}
	})
}
