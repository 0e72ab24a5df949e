package spec_test

import (
	"context"
	"testing"

	"github.com/reusecheck/reusecheck/spec"
)

func TestAModelledKernelConformsToItselfAndNotToAnother(t *testing.T) {
	for _, tt := range []struct {
		sys     *spec.System
		kernels []string
		another string // than each of them
	}{
		{spec.TCP, []string{"4.9", "5.4", "6.1", "6.18"}, "6.18+first-bind-fix"},
		{spec.UDP, []string{"4.19", "5.4", "6.12", "6.18"}, "6.18-udp-wildcard-bind"},
		{spec.TimeWait, []string{"5.15", "6.18", "6.18+tw-one-family"}, "6.18-tw-one-pass"},
	} {
		for _, k := range tt.kernels {
			sys, err := spec.Conformance(tt.sys, stackOf(tt.sys, k))
			if err != nil {
				t.Fatal(err)
			}
			for _, on := range []string{k, tt.another} {
				differs := 0
				s := spec.Search{System: sys, Stack: stackOf(tt.sys, on), Seed: 5, Checks: 400, Steps: 30, Workers: 1}
				if _, err := s.Run(context.Background(), func(f spec.Failure) bool {
					if differs++; on == k {
						t.Errorf("%s of %s differs from itself:\n%s", tt.sys.Name, k, f.Trace)
					}
					return false
				}); err != nil {
					t.Fatal(err)
				}
				if on != k && differs == 0 {
					t.Errorf("%s of %s is not told from that of %s", tt.sys.Name, on, k)
				}
			}
		}
	}
}
