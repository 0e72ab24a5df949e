package model_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

// exitSays runs a trace on a kernel and gives what its first exit came to, the
// last bind's answer if it comes later, and the kinds of faults there are in the end.
func exitSays(t *testing.T, kernel string, tr *rc.Trace) string {
	t.Helper()
	w := model.MustParse(kernel).NewTimeWait()
	if err := w.Reset(tr.Config); err != nil {
		t.Fatal(err)
	}
	says := ""
	port := rc.Answer{}
	for i := range tr.Steps {
		st := &tr.Steps[i]
		r := mustDo(t, w, st.Op)
		switch {
		case !st.Want.Matches(r.Answer):
			t.Fatalf("%s => %s on %s", st.Text(tr.Name), r.Text(tr.Name), kernel)
		case st.Op.Verb == rc.VExit:
			says = fmt.Sprintf("walks=%d left=%d visited=%d", r.Walks, r.Left, r.Visited)
		case st.Op.Verb == rc.VBind && says != "":
			port = r.Answer
		case r.Kind == rc.Failed && st.Want.Kind == rc.Unstated:
			t.Fatalf("%s => %s on %s", st.Op.Text(tr.Name), r.Text(tr.Name), kernel)
		}
	}
	if port.Kind != rc.Unstated {
		says += " port=" + port.Text(tr.Name)
	}
	var faults rc.Faults
	if err := w.Check(); err != nil && !errors.As(err, &faults) {
		t.Fatalf("%s: %v", kernel, err)
	}
	var kinds []string
	for _, f := range faults {
		kinds = append(kinds, f.Kind)
	}
	if kinds != nil {
		slices.Sort(kinds)
		says += " faults: " + strings.Join(kinds, "; ")
	}
	return says
}

func TestWhatAnExitComesToOnEachKernel(t *testing.T) {
	files, err := filepath.Glob("testdata/timewait/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".trace"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := rc.Parse(file, text)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				said, ok := strings.CutPrefix(line, "#= ")
				if !ok {
					continue
				}
				kernel, want, _ := strings.Cut(strings.TrimSpace(said), ": ")
				if front, kinds, ok := strings.Cut(want, "faults: "); ok {
					list := strings.Split(kinds, "; ")
					slices.Sort(list)
					want = front + "faults: " + strings.Join(list, "; ")
				}
				if got := exitSays(t, kernel, tr); got != want {
					t.Errorf("%s:\n got %s\nwant %s", kernel, got, want)
				}
			}
		})
	}
}

// counted is a namespace with so many TIME_WAIT sockets.
type counted struct{ four, six int }

// leaves writes the steps of namespaces that leave TIME_WAIT sockets, and gives
// the steps and the names.
func leaves(batch []counted, shift int) (steps string, names []string) {
	var b strings.Builder
	for n, c := range batch {
		name := fmt.Sprintf("n%d-%d", shift, n)
		names = append(names, name)
		fmt.Fprintf(&b, "netns %s\n", name)
		for family, wants := range map[string]int{"tcp4": c.four, "tcp6": c.six} {
			at, from := "127.0.0.1", "127.0.0.1"
			if family == "tcp6" {
				at, from = "[::1]", "[::1]"
			}
			fmt.Fprintf(&b, "socket l%s%s %s netns=%s\nbind l%[1]s%[2]s %[5]s:40000\nlisten l%[1]s%[2]s\n", name, family, family, name, at)
			for i := range wants {
				fmt.Fprintf(&b, "socket c%s%s-%d %s netns=%s\nbind c%[1]s%[2]s-%[3]d %[6]s:%[7]d\nconnect c%[1]s%[2]s-%[3]d %[8]s:40000\ntimewait c%[1]s%[2]s-%[3]d\n",
					name, family, i, family, name, from, 41000+i, at)
			}
		}
	}
	return b.String(), names
}

// formula is what one batch walks, by the number of TIME_WAIT sockets of its
// namespaces, in the order of [model.Eras].
func formula(era int, batch []counted, own bool) (walks int32) {
	some := func(has bool) int32 {
		if has {
			return 1
		}
		return 0
	}
	any46, any4 := false, false
	for _, c := range batch {
		any46, any4 = any46 || c.four+c.six > 0, any4 || c.four > 0
	}
	if !own {
		return []int32{2, some(any46) + some(any4), some(any46) + some(any4), some(any46) + some(any4), 2, 1, 1}[era]
	}
	for _, c := range batch {
		walks += []int32{0, 0, some(c.four+c.six > 0) + some(c.four > 0), 2, 2, 1, 1}[era]
	}
	return walks
}

func TestTheWalksOfABatchAreTheFormulaOfItsKernel(t *testing.T) {
	shapes := []counted{{0, 0}, {1, 0}, {0, 1}, {2, 3}}
	var batches [][]counted
	for _, a := range shapes {
		batches = append(batches, []counted{a})
		for _, b := range shapes {
			batches = append(batches, []counted{a, b}, []counted{a, b, {0, 0}})
		}
	}
	for e, era := range model.Eras() {
		for _, own := range []bool{false, true} {
			if own && e < 2 {
				continue // no tables of their own
			}
			header := "system timewait\n"
			if own {
				header += "sysctl net.ipv4.tcp_child_ehash_entries 64\n"
			}
			for _, batch := range batches {
				steps, names := leaves(batch, 0)
				tr := rc.MustParse(header + "\n" + steps + "exit " + strings.Join(names, ",") + "\n")
				w := model.MustParse(era.Kernel).NewTimeWait()
				if err := w.Reset(tr.Config); err != nil {
					t.Fatal(err)
				}
				var r rc.Result
				for i := range tr.Steps {
					r = mustDo(t, w, tr.Steps[i].Op)
				}
				if want := formula(e, batch, own); r.Walks != want || r.Left != 0 {
					t.Errorf("%s, %v, own tables %t: %s, want %d walks and none left", era.Name, batch, own, r.Answer, want)
				}
				if err := w.Check(); err != nil {
					t.Errorf("%s, %v: %v", era.Name, batch, err)
				}
			}
		}
	}
}

func TestTheWalksOfAMixedBatchAreThoseOfItsTwoKindsTogether(t *testing.T) {
	for e, era := range model.Eras() {
		if e < 2 {
			continue // no tables of their own
		}
		for _, batch := range [][]counted{{{0, 0}, {0, 0}}, {{1, 0}, {0, 0}}, {{0, 1}, {1, 0}}, {{2, 1}, {0, 0}, {0, 1}}, {{0, 0}, {1, 1}, {0, 0}, {1, 0}}} {
			for mask := range 1 << len(batch) {
				var kinds [2][]counted // those that share, those with their own
				steps, names := leaves(batch, 0)
				for i, name := range names {
					own := mask >> i & 1
					kinds[own] = append(kinds[own], batch[i])
					steps = strings.Replace(steps, "netns "+name+"\n", "netns "+name+" table="+[]string{"shared", "own"}[own]+"\n", 1)
				}
				want := formula(e, kinds[1], true)
				if len(kinds[0]) > 0 {
					want += formula(e, kinds[0], false)
				}
				for _, header := range []string{"", "sysctl net.ipv4.tcp_child_ehash_entries 16\n"} {
					tr := rc.MustParse("system timewait\n" + header + "\n" + steps + "exit " + strings.Join(names, ",") + "\n")
					w := model.MustParse(era.Kernel).NewTimeWait()
					if err := w.Reset(tr.Config); err != nil {
						t.Fatal(err)
					}
					var r rc.Result
					for i := range tr.Steps {
						r = mustDo(t, w, tr.Steps[i].Op)
					}
					if r.Walks != want || r.Left != 0 {
						t.Errorf("%s, %v, own %b: %s, want %d walks and none left", era.Name, batch, mask, r.Answer, want)
					}
				}
			}
		}
	}
}

func TestAnExitLeavesTheOtherNamespacesAlone(t *testing.T) {
	stay, stayNames := leaves([]counted{{1, 1}}, 1)
	for _, era := range model.Eras() {
		tr := rc.MustParse("system timewait\n\n" + stay + "netns x\nsocket s tcp4 netns=x\nbind s 127.0.0.1:40000\nexit x\n")
		w := model.MustParse(era.Kernel).NewTimeWait()
		var before []rc.Socket
		for i := range tr.Steps {
			if tr.Steps[i].Op.Verb == rc.VExit {
				w.Sockets(func(s *rc.Socket) bool { before = append(before, *s); return true })
				before = slices.DeleteFunc(before, func(s rc.Socket) bool { return tr.Name(s.Net) == "x" })
			}
			mustDo(t, w, tr.Steps[i].Op)
		}
		var after []rc.Socket
		w.Sockets(func(s *rc.Socket) bool { after = append(after, *s); return true })
		if d := cmp.Diff(before, after, cmp.Comparer(func(a, b rc.Socket) bool { return a == b })); d != "" || len(after) != 4 {
			t.Errorf("%s: %d sockets of %v (-before +after):\n%s", era.Name, len(after), stayNames, d)
		}
	}
}

func TestATableOfItsOwnNeedsAKernelThatHasThem(t *testing.T) {
	for value, ok := range map[string]bool{"0": true, "1": true, "16777216": true, "16777217": false, "-1": false, "many": false} {
		cfg := rc.Config{System: rc.TimeWaitExit, Sysctl: []rc.Sysctl{{Name: "net.ipv4.tcp_child_ehash_entries", Value: value}}}
		if err := model.MustParse("6.18").NewTimeWait().Reset(cfg); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
		lacks := new(rc.Unsupported)
		if err := model.MustParse("5.15").NewTimeWait().Reset(cfg); ok && value != "0" && !errors.As(err, &lacks) {
			t.Errorf("%s on 5.15: %v", value, err)
		}
	}
}

func TestStepsOutsideTheModelOrAfterTheEnd(t *testing.T) {
	w := model.MustParse("6.18").NewTimeWait()
	in := func(op rc.Op, net rc.ID) rc.Op { op.HasNet, op.Net = true, net; return op }
	mustDo(t, w, rc.NewNetns(0))
	mustDo(t, w, in(rc.NewSocket(1, rc.TCP4, 0), 0))
	mustDo(t, w, rc.NewSocket(2, rc.TCP4, 0))
	lacks := new(rc.Unsupported)
	for _, op := range []rc.Op{rc.NewSocket(3, rc.UDP4, 0), {Verb: rc.VSend}} {
		if _, err := w.Do(op); !errors.As(err, &lacks) {
			t.Errorf("%s: %v", op.Verb, err)
		}
	}
	if r := mustDo(t, w, rc.Exit(0, 0)); r.Answer != rc.Fail(rc.EBADF) {
		t.Errorf("a namespace named twice: %s", r.Answer)
	}
	if r := mustDo(t, w, rc.Exit(1)); r.Answer != rc.Fail(rc.EBADF) {
		t.Errorf("the exit of a socket: %s", r.Answer)
	}
	mustDo(t, w, rc.Exit(0))
	for _, op := range []rc.Op{rc.Exit(0), rc.Close(1), in(rc.NewSocket(3, rc.TCP4, 0), 0), rc.Close(9), rc.Exit(9)} {
		if r := mustDo(t, w, op); r.Answer != rc.Fail(rc.EBADF) {
			t.Errorf("%s: %s", op, r.Answer)
		}
	}
	if r := mustDo(t, w, rc.Close(2)); r.Answer != rc.Success {
		t.Errorf("a socket of the trace's own namespace: %s", r.Answer)
	}
}
