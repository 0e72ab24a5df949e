package live

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"golang.org/x/sys/unix"
)

var soakTraces = flag.Int("soak", 1500, "random traces that the soak test runs")

func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// soak runs random traces of ten steps and gives the mix of verbs and answers,
// and how many traces ended in what cannot be done.
func soak(t testing.TB, s *Stack, seed uint64, traces int) (mix map[reusecheck.Verb][2]int, ended int) {
	t.Helper()
	mix = map[reusecheck.Verb][2]int{}
	w := &walk{rand: rand.New(rand.NewPCG(seed, 0)), uids: true}
	for i := range traces {
		need(t, s.Reset(w.start()))
		var steps strings.Builder
		for range 10 {
			op := w.op()
			fmt.Fprintln(&steps, op.Text(reusecheck.ID.String))
			got, err := s.Do(op)
			if u := new(reusecheck.Unsupported); errors.As(err, &u) {
				ended++
				break
			}
			if err != nil {
				t.Fatalf("trace %d of seed %d: %v\n%s", i, seed, err, &steps)
			}
			n := mix[op.Verb]
			n[0]++
			if got.Kind == reusecheck.OK {
				n[1]++
			}
			mix[op.Verb] = n
			w.took(op, got.Answer)
		}
	}
	return mix, ended
}

func TestRandomTracesLeaveNothingBehind(t *testing.T) {
	s := open(t, Options{})
	soak(t, s, 1, 100) // everything that is made once is there now
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fds, goroutines, namespaces := descriptors(t), runtime.NumGoroutine(), s.Namespaces()
	mix, ended := soak(t, s, 2, *soakTraces)
	need(t, s.Reset(reusecheck.Config{}))
	runtime.GC()
	runtime.ReadMemStats(&after)
	for v, n := range mix {
		t.Logf("%-10s %6d steps, %6d ok", v, n[0], n[1])
		if n[1] == 0 {
			t.Errorf("no %s succeeded", v)
		}
	}
	t.Logf("%d traces ended early, %d namespaces, %d descriptors, %d goroutines, %d KiB of heap", ended, s.Namespaces(), descriptors(t), runtime.NumGoroutine(), after.HeapAlloc>>10)
	if n := descriptors(t); n > fds {
		t.Errorf("%d descriptors are open, %d were before", n, fds)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d were before", n, goroutines)
	}
	if n := s.Namespaces() - namespaces; n > ended {
		t.Errorf("%d namespaces were made, %d traces needed another", n, ended)
	}
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
	r, ok := s.engine.(*runner)
	if !ok {
		return // a namespace of another process, which is asked what it counts there
	}
	if n, err := r.ns.diag.count(); err != nil || n != 0 {
		t.Errorf("sock_diag counts %d sockets in the namespace (%v), want 0", n, err)
	}
}

func BenchmarkTenStepTraces(b *testing.B) {
	s := open(b, Options{})
	b.ResetTimer()
	before := processorTime(b)
	soak(b, s, uint64(b.N), b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "traces/s")
	// What it would be on a machine that does nothing else.
	b.ReportMetric(float64(b.N)/(processorTime(b)-before).Seconds(), "traces/cpu-s")
}

// processorTime is what the process has used, in the kernel too.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
