package reusecheck

import (
	"strings"
	"testing"
)

func TestASetOfKernelsIncludes(t *testing.T) {
	for _, c := range []struct {
		set      string
		profile  string
		release  string
		included bool
	}{
		{"all", "6.18", "6.18.44", true},
		{"all", "6.18+first-bind-fix", "6.18.44", false}, // a profile is named or not meant
		{"all", "4.9", "", true},

		{"6.1", "6.1", "6.1.192", true},
		{"6.1", "6.1", "6.1", true},
		{"6.1", "6.12", "6.12.117", false},
		{"6.1.168", "6.1", "6.1.168", true},
		{"6.1.168", "6.1", "6.1.192", false},
		{"6.1.0", "6.1", "6.1", true}, // a component that is not there is 0

		{"6.8-", "6.18", "6.18.44", true},
		{"6.8-", "6.8", "6.8.0", true},
		{"6.8-", "6.1", "6.1.192", false},
		{"-6.7", "6.1", "6.1.192", true},
		{"-6.7", "6.8", "6.8.1", false},
		{"-6.1", "6.1", "6.1.192", true}, // as many components as the bound has
		{"-6.1.100", "6.1", "6.1.192", false},
		{"6.1.168-", "6.1", "6.1.192", true},
		{"6.1.168-", "6.1", "6.1.167", false},
		{"6.1.168-", "6.1", "", false},
		{"6.1-6.7", "6.1", "6.1.192", true},
		{"6.1-6.7", "6.7", "6.7.12", true},
		{"6.1-6.7", "6.8", "6.8", false},
		{"6.1-6.7", "5.15", "5.15.200", false},
		{"5-6", "6.18", "6.18.44", true},
		{"6.18-", "6.18-some-change", "6.18.44", false},

		{"5.4,6.8-", "6.18", "6.18.44", true},
		{"5.4,6.8-", "5.4", "5.4.290", true},
		{"5.4,6.8-", "6.1", "6.1.192", false},

		{"6.18+first-bind-fix", "6.18+first-bind-fix", "6.18.44", true},
		{"6.18+first-bind-fix", "6.18", "6.18.44", false},
		{"6.18+first-bind-fix", "6.18+first-bind-fix+more", "6.18.44", false},
		{"6.18-some-change", "6.18-some-change", "6.18.44", true},
		{"6.18-some-change", "6.18", "6.18.44", false},
		{"6.18.44+a_1.2-b", "6.18.44+a_1.2-b", "", true},
		{"6+x", "6+x", "", true},
		{"all,6.18+first-bind-fix", "6.18+first-bind-fix", "", true},
		{"all,6.18+first-bind-fix", "5.4", "", true},

		{"6.18", "6.18", "6.18.44-cloud-amd64", true},
		{"6.18", "", "6.18.44", true}, // a kernel that no profile describes
		{"6.18.44-", "", "6.18.44+", true},
		{"6.1-", "", "", false},
		{"all", "", "", true},
	} {
		k, err := ParseKernels(c.set)
		if err != nil {
			t.Errorf("%s: %v", c.set, err)
			continue
		}
		if got := k.Includes(c.profile, c.release); got != c.included {
			t.Errorf("%q includes profile %q, release %q: %v", c.set, c.profile, c.release, got)
		}
	}
}

func TestTheZeroSetOfKernelsIsAll(t *testing.T) {
	all, err := ParseKernels(" all ")
	if err != nil || all != (KernelSet{}) || !all.Equal(KernelSet{}) {
		t.Errorf("all is %#v, %v", all, err)
	}
	if s := (KernelSet{}).String(); s != "all" {
		t.Errorf("the zero set is written %q", s)
	}
}

func TestASetOfKernelsIsRefused(t *testing.T) {
	for _, s := range []string{
		"", " ", ",", "6.1,", ",6.1", "all-", "-", "--6.1", "6.1--6.7", "6.1-6.7-6.8", "6.7-6.1", "06.1", "6.01", "6.", ".6", "6..1", "v6.1",
		"6.1 6.2", "6.18+", "6.18++x", "6.18+-x", "6.18+x-", "6.18+1x", "+x", "6.18+x#", "6.18+x y", "6.18+", "6.18-6.19x", "linux", "6.70000",
		"6.1-rc1,", "6.18+x-6.19",
	} {
		if k, err := ParseKernels(s); err == nil {
			t.Errorf("%q is read as %q", s, k)
		} else if !strings.Contains(err.Error(), "6.18+first-bind-fix") {
			t.Errorf("%q: the error %q does not say what to write", s, err)
		}
	}
}

// FuzzParseKernels shows that what is read is written so that it reads the same,
// and that a set's answers depend on what is written only.
func FuzzParseKernels(f *testing.F) {
	for _, s := range []string{"all", "6.1", "6.8-", "-6.7", "6.1-6.7", "6.18+first-bind-fix", "5.4 , 6.1.168-,6.18-a+b", "6-6.1", "6.1.5-6.1"} {
		f.Add(s, "6.18", "6.18.44")
	}
	f.Fuzz(func(t *testing.T, s, profile, release string) {
		k, err := ParseKernels(s)
		if err != nil {
			return
		}
		again, err := ParseKernels(k.String())
		if err != nil || again != k {
			t.Fatalf("%q is written %q and read as %q, %v", s, k, again, err)
		}
		one := false
		for e := range strings.SplitSeq(k.String(), ",") {
			el, err := ParseKernels(e)
			if err != nil {
				t.Fatalf("%q is no set, but a part of %q: %v", e, k, err)
			}
			one = one || el.Includes(profile, release)
		}
		if k.Includes(profile, release) != one {
			t.Fatalf("%q includes (%q, %q) unlike its elements", k, profile, release)
		}
	})
}
