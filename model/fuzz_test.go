package model_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// choices makes a generator's choices from a fuzzer's bytes, and 0 when they
// are used up.
type choices struct{ data []byte }

func (c *choices) Intn(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

// script is an input with which a history goes on for a while after it is copied.
func script(which int) []byte {
	var data []byte
	for i := range 240 {
		data = append(data, byte(i*i*7+i*which*13)^byte(i>>2))
	}
	return data
}

// both plays a step on a stack and on its copy, once there is one, which has to
// answer like the original.
func both(t *testing.T, s, twin rc.Stack, op rc.Op) (rc.Result, error) {
	t.Helper()
	r, err := s.Do(op)
	if twin == nil {
		return r, err
	}
	r2, err2 := twin.Do(op)
	if d := cmp.Diff(r, r2, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b rc.Cache) bool { return a == b })); d != "" || (err == nil) != (err2 == nil) {
		t.Fatalf("%s: a copy answers otherwise, errors %v and %v (-original +copy):\n%s", op, err, err2, d)
	}
	return r, err
}

// FuzzTCP runs a history on every generation and on a few profiles with bugs
// put back: nothing panics, the structure holds after each step, and a copy
// taken half way answers like the original.
func FuzzTCP(f *testing.F) {
	profiles := []string{"4.9", "5.4", "5.15", "6.1", "6.12", "6.18", "6.18+first-bind-fix+exact-strict-match", "6.1-timewait-address-buckets"}
	f.Add([]byte{}, uint8(0))
	for which := range profiles {
		f.Add(script(which), uint8(which))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		profile := profiles[int(which)%len(profiles)]
		buggy := strings.Contains(profile, "-timewait") // its structure is what is wrong with it
		s := model.MustParse(profile).New()
		c := &choices{data}
		g := spec.TCP.NewGenerator(spec.TCPWorld())
		if err := s.Reset(g.Start(c)); err != nil {
			t.Fatal(err)
		}
		var twin rc.Stack
		var live []rc.Socket
		for i := 0; i < 64 && len(c.data) > 0; i++ {
			if i == 8 {
				twin = s.Clone()
			}
			live = live[:0]
			s.Sockets(func(x *rc.Socket) bool { live = append(live, *x); return true })
			op := g.Next(c, live)
			if _, err := both(t, s, twin, op); err != nil {
				return // one of the corners that the model leaves out
			}
			if err := s.Check(); err != nil && !buggy {
				t.Fatalf("after %s: %v", op, err)
			}
		}
	})
}
