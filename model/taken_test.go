package model_test

import (
	"strings"
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// two listeners of one reuseport group, of which b asked for processor 1.
const twoInAGroup = `
socket a tcp4 reuseport
socket b tcp4 reuseport cpu=1
bind a 127.0.0.1:40000
bind b 127.0.0.1:40000
listen a
listen b
`

func TestAGroupChoosesByTheProcessorWhereTheKernelHasTheFix(t *testing.T) {
	for _, tt := range []struct{ kernels, step, seen, want string }{
		{"4.9 5.4 5.15 6.1-group-incoming-cpu", "inherit a c 127.0.0.1 cpu=1", "", "ok"},
		{"4.9 5.4 5.15 6.1-group-incoming-cpu", "inherit a c 127.0.0.1 cpu=1", "b", "ok"}, // the hash gives a its turn
		{"4.9-reuseport-groups 6.1 6.12 6.18", "inherit a c 127.0.0.1 cpu=1", "", "b"},
		{"4.9-reuseport-groups 6.1 6.12 6.18", "inherit a c 127.0.0.1 cpu=1", "ok", "b"},
		{"6.1 6.12 6.18", "inherit b c 127.0.0.1 cpu=1", "a", "ok"},
		{"6.1 6.12 6.18", "inherit a c 127.0.0.1 cpu=0", "", "ok"},
		{"6.1 6.12 6.18", "inherit b c 127.0.0.1 cpu=0", "", "ok"},
		// Nobody says where it arrives: as it was seen, else where nobody wants it.
		{"6.1 6.12 6.18", "inherit a c 127.0.0.1", "", "ok"},
		{"6.1 6.12 6.18", "inherit a c 127.0.0.1", "b", "b"},
		{"6.1 6.12 6.18", "inherit b c 127.0.0.1", "a", "ok"},
		{"6.1-group-incoming-cpu", "inherit a c 127.0.0.1", "b", "ok"},
		// What is set counts as what was given.
		{"6.1 6.12 6.18", "set b cpu=none\ninherit a c 127.0.0.1 cpu=1", "", "ok"},
		{"6.1 6.12 6.18", "set a cpu=0\ninherit b c 127.0.0.1 cpu=0", "", "a"},
		{"6.1 6.12 6.18", "set a cpu=1\ninherit a c 127.0.0.1 cpu=1", "", "ok"},
	} {
		for _, kernel := range strings.Fields(tt.kernels) {
			result := ""
			if tt.seen != "" {
				result = " => " + tt.seen
			}
			tr, err := rc.Parse("", []byte(twoInAGroup+tt.step+result+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			s, got := model.MustParse(kernel).New(), rc.Result{}
			for _, st := range tr.Steps {
				if got, err = s.DoAs(st.Op, st.Want); err != nil {
					t.Fatal(err)
				}
			}
			if text := got.Text(tr.Name); text != tt.want {
				t.Errorf("%s: %q, seen %q, is answered %s, want %s", kernel, tt.step, tt.seen, text, tt.want)
			}
		}
	}
}

// A packet overwrites what a socket asked for; on kernels where it may listen
// afterwards it may be on any processor.
func TestASocketThatHeardAnAnswerMayBeWantedByAnyProcessor(t *testing.T) {
	tr := rc.MustParse(`
socket l tcp4
socket a tcp4 reuseport cpu=0
socket b tcp4 reuseport cpu=1
bind l 127.0.0.1:40001 => ok
listen l => ok
bind a 127.0.0.1:40000 => ok
bind b 127.0.0.1:40000 => ok
connect a 127.0.0.1:40001 => ok
disconnect a => ok
listen a => ok
listen b => ok
inherit b c 127.0.0.1 cpu=1 => a
inherit b d 127.0.0.1 cpu=1 => ok
inherit a j 127.0.0.1 cpu=1 => b
inherit a k 127.0.0.1 cpu=1 => ok
inherit b e 127.0.0.1 cpu=0 => ok
inherit a f 127.0.0.1 cpu=0 => ok
set a cpu=0 => ok
inherit b g 127.0.0.1 cpu=1 => ok
inherit b h 127.0.0.1 cpu=0 => a
inherit b i 127.0.0.1 cpu=1 => ok
`)
	s := model.MustParse("6.1").New()
	for _, st := range tr.Steps {
		got, err := s.DoAs(st.Op, st.Want)
		if err != nil {
			t.Fatal(err)
		}
		if st.Want.Kind != rc.Unstated && got.Answer != st.Want {
			t.Errorf("%s is answered %s, want %s", st.Op.Text(tr.Name), got.Text(tr.Name), st.Want.Text(tr.Name))
		}
	}
}

func TestOutsideOfAGroupTheProcessorCountsAsMuchAsTheDevice(t *testing.T) {
	tr := rc.MustParse(`
socket a tcp4 reuseport dev=lo
socket b tcp4 reuseport cpu=1
bind a 127.0.0.1:40000
bind b 127.0.0.1:40000
listen a
listen b
set a reuseport=off
set b reuseport=off
inherit a c 127.0.0.1 cpu=1 => b
inherit a d 127.0.0.1 cpu=0 => ok
`)
	s := model.MustParse("6.18").New()
	for _, st := range tr.Steps {
		if got := mustDo(t, s, st.Op); st.Want.Kind != rc.Unstated && got.Answer != st.Want {
			t.Errorf("%s is answered %s, want %s", st.Op.Text(tr.Name), got.Text(tr.Name), st.Want.Text(tr.Name))
		}
	}
}
