package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

func TestAKernelsHeaderNamesGenerationsAndProfiles(t *testing.T) {
	for header, want := range map[string][]string{
		"all":                      {"4.9", "5.4", "5.15", "6.1", "6.12", "6.18"},
		"4.11-5.14":                {"5.4"},
		"-6.1":                     {"4.9", "5.4", "5.15", "6.1"},
		"6.1.0-6.1.4":              nil, // what the line was, not what is modelled of it
		"6.18,6.18+first-bind-fix": {"6.18", "6.18+first-bind-fix"},
		"6.18+no-such-change":      nil,
		"6.8-6.17":                 {"6.12"},
	} {
		k, err := reusecheck.ParseKernels(header)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range model.Named(k) {
			got = append(got, p.String())
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", header, d)
		}
	}
}

func TestAKernelsHeaderWithAnUnknownNameIsAnError(t *testing.T) {
	for header, known := range map[string]bool{
		"all": true, "2.6-": true, "6.1,6.18+first-bind-fix,6.18-range-one-pass": true,
		"6.18+no-such-change": false, "6.1,6.18-first-bind-fx": false, "6.6+first-bind-fix": false,
	} {
		k, err := reusecheck.ParseKernels(header)
		if err != nil {
			t.Fatal(err)
		}
		if err := model.CheckNames(k); (err == nil) != known {
			t.Errorf("%s: error %v, known %t", header, err, known)
		}
	}
}

func TestARunningKernelIsModelledByTheLastGenerationBeforeIt(t *testing.T) {
	for release, want := range map[string]string{
		"6.18.44": "6.18", "6.17.9": "6.12", "6.12.117+deb12-cloud-amd64": "6.12", "6.1.0-49-cloud-amd64": "6.1",
		"7.2.0-rc1": "6.18", "5.10.0": "5.4", "3.10.0": "4.9",
	} {
		if got := model.ForRelease(release).String(); got != want {
			t.Errorf("%s is modelled by %s, not %s", release, got, want)
		}
	}
}
