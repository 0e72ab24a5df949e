package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

func modelled(t testing.TB, system reusecheck.System, name string) Kernel {
	t.Helper()
	p, err := model.ParseOf(system, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Stack(system)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := reusecheck.ParseKernels(name)
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{name, answers, s}
}

func fill(t testing.TB, rows string, kernels ...string) *Matrix {
	t.Helper()
	kinds, err := Parse(rows)
	if err != nil {
		t.Fatal(err)
	}
	system := reusecheck.TCP
	if kinds[0].Family.IsUDP() {
		system = reusecheck.UDP
	}
	var ks []Kernel
	for _, k := range kernels {
		ks = append(ks, modelled(t, system, k))
	}
	m, err := Fill(context.Background(), kinds, ks, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *Matrix) at(t testing.TB, row, col int) *Cell {
	t.Helper()
	for i := range m.Cells {
		if c := &m.Cells[i]; c.First == row-1 && c.Second == col-1 {
			return c
		}
	}
	t.Fatalf("there is no cell %d,%d", row, col)
	return nil
}

const four = "tcp4 127.0.0.1; tcp4 127.0.0.1 reuseaddr; tcp4 127.0.0.1 reuseport; tcp4 127.0.0.1 reuseaddr listen"

func TestACellSaysWhatTheSecondSocketMayAndHow(t *testing.T) {
	m := fill(t, four, "6.18")
	for _, c := range []struct {
		row, col int
		code     string
		said     string
	}{
		{1, 1, ".", "bind EADDRINUSE (scan)"},
		{2, 2, "Ls", "bind ok (scan), listen ok (scan)"},
		{3, 3, "Lf", "bind ok (fast), listen ok (fast)"},
		{4, 2, ".", "bind EADDRINUSE (scan)"}, // a listener is not passed by reuseaddr
	} {
		o := m.at(t, c.row, c.col).Outcomes[0]
		if o.Code() != c.code || o.Summary() != c.said {
			t.Errorf("%d,%d: %s, %s; want %s, %s", c.row, c.col, o.Code(), o.Summary(), c.code, c.said)
		}
	}
	if d := cmp.Diff([]int{0, 1, 2}, m.Columns); d != "" {
		t.Errorf("the kind that listens has a column of its own: %s", d)
	}
	refused := m.at(t, 4, 2).Outcomes[0].Bind
	want := "The bind is refused with EADDRINUSE after a look at the owners (1 visited); what decides is a: " + reusecheck.RefuseListening.String() + "."
	if refused.Owner != "a" || refused.Words != want {
		t.Errorf("decided by %q: %s", refused.Owner, refused.Words)
	}
}

func TestACellsTraceIsAnsweredAsItStates(t *testing.T) {
	for _, rows := range []string{Default, "udp"} {
		m := fill(t, rows, "6.1")
		stack := modelled(t, m.System, "6.1").Stack
		for _, c := range m.Cells {
			tr, err := reusecheck.Parse("cell", []byte(c.Outcomes[0].Trace))
			if err != nil {
				t.Fatal(err)
			}
			if err := stack.Reset(tr.Config); err != nil {
				t.Fatal(err)
			}
			for i, s := range tr.Steps {
				got, err := stack.Do(s.Op)
				if err != nil || got.Answer != s.Want {
					t.Fatalf("row %d, column %d, step %d: %v %v, stated %v", c.First+1, c.Second+1, i+1, got.Answer, err, s.Want)
				}
			}
			if tr.Diverges() != c.Outcomes[0].Diverges() {
				t.Errorf("row %d, column %d: the trace and the cell are of two minds on divergence", c.First+1, c.Second+1)
			}
		}
	}
}

func TestTheMappedWildcardOf61IsMarkedAsADivergence(t *testing.T) {
	m := fill(t, Default, "6.1")
	var got []string
	for _, c := range m.Divergences() {
		got = append(got, m.Kinds[c.First].String()+" | "+m.Kinds[c.Second].String()+" | "+m.code(c))
	}
	want := []string{
		"tcp6 ::ffff:0.0.0.0 | tcp6 ::ffff:127.0.0.1 | L-*",
		"tcp6 ::ffff:0.0.0.0 | tcp6 ::ffff:127.0.0.1 reuseport | L-*",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTheFirstBindFixTurnsScansIntoLooksAtTheCacheAndChangesNoAnswer(t *testing.T) {
	m := fill(t, Default, "6.18", "6.18+first-bind-fix")
	if n := len(m.Differences()); n == 0 || m.at(t, 2, 2).Differ == "" || m.at(t, 3, 3).Differ != "" {
		t.Errorf("%d differences; 2,2: %q; 3,3: %q", n, m.at(t, 2, 2).Differ, m.at(t, 3, 3).Differ)
	}
	for _, c := range m.Cells {
		was, is := c.Outcomes[0], c.Outcomes[1]
		if was.Bind.Answer != is.Bind.Answer || c.Differ != "" && (was.Bind.Path == "fast" || is.Bind.Path != "fast") {
			t.Errorf("row %d, column %d: %s", c.First+1, c.Second+1, m.pattern(&c))
		}
	}
}

func TestAKindThatCannotBeAloneIsNotAskedOf(t *testing.T) {
	m := fill(t, "tcp6 ::ffff:127.0.0.1 v6only; tcp4 127.0.0.1", "6.18")
	if o := m.at(t, 1, 2).Outcomes[0]; o.Bind != nil || o.Code() != "!" || !strings.Contains(o.Alone, "EINVAL") {
		t.Errorf("%+v", o)
	}
	if o := m.at(t, 2, 1).Outcomes[0]; o.Code() != "!" || o.Bind.Answer != "EINVAL" || o.Listen != nil {
		t.Errorf("%+v", o)
	}
}

// bent is a stack that answers every bind of one socket otherwise.
type bent struct {
	reusecheck.Stack
	who  reusecheck.ID
	with func(reusecheck.Result) (reusecheck.Result, error)
}

func (b bent) Do(op reusecheck.Op) (reusecheck.Result, error) {
	r, err := b.Stack.Do(op)
	if err == nil && op.Verb == reusecheck.VBind && op.Sock == b.who {
		return b.with(r)
	}
	return r, err
}

func TestARunningKernelIsHeldToItsModelInAnswersAndCaches(t *testing.T) {
	kinds, err := Parse(four)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(r reusecheck.Result) (reusecheck.Result, error) {
		r.Answer = reusecheck.Fail(reusecheck.EADDRINUSE)
		return r, nil
	}
	for _, c := range []struct {
		name string
		who  reusecheck.ID
		with func(reusecheck.Result) (reusecheck.Result, error)
		want string // of the cell of reuseport beside reuseport
	}{
		{"nothing", reusecheck.NoID, nil, ""},
		{"an answer", secondID, refuse, "bind is answered EADDRINUSE; its model says ok"},
		{"the first socket", firstID, refuse, `of the first socket alone the kernel says "the first socket cannot be made: its bind is answered EADDRINUSE", its model ""`},
		{"a cache", secondID, func(r reusecheck.Result) (reusecheck.Result, error) {
			r.After.FastReusePort = reusecheck.FastAny
			return r, nil
		}, "after bind the cache is 0/ANY; in its model it is 0/STRICT"},
		{"a path", secondID, func(r reusecheck.Result) (reusecheck.Result, error) {
			r.Path = reusecheck.PathUnknown
			return r, nil
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			kernel := modelled(t, reusecheck.TCP, "6.18")
			kernel.Stack = bent{kernel.Stack, c.who, c.with}
			m, err := Fill(context.Background(), kinds, []Kernel{kernel, modelled(t, reusecheck.TCP, "6.18")}, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			cell := m.at(t, 3, 3)
			if cell.Disagree != c.want {
				t.Errorf("%q, want %q", cell.Disagree, c.want)
			}
			if marked := strings.HasSuffix(m.code(cell), markDisagree); marked != (c.want != "") {
				t.Errorf("the code is %s", m.code(cell))
			}
			if c.want == "" && (len(m.Disagreements()) > 0 || m.code(cell) == "L") {
				t.Errorf("%d disagreements, code %s", len(m.Disagreements()), m.code(cell))
			}
		})
	}
}

func TestWhatAKernelCannotDoIsSkippedInItsCells(t *testing.T) {
	kinds, err := Parse(four)
	if err != nil {
		t.Fatal(err)
	}
	kernel := modelled(t, reusecheck.TCP, "6.18")
	kernel.Stack = bent{kernel.Stack, secondID, func(reusecheck.Result) (reusecheck.Result, error) {
		return reusecheck.Result{}, &reusecheck.Unsupported{What: "binds", Why: "of no reason"}
	}}
	m, err := Fill(context.Background(), kinds, []Kernel{kernel, modelled(t, reusecheck.TCP, "6.18")}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := m.at(t, 3, 3)
	if len(m.Skipped()) != len(m.Cells) || m.code(c) != "?" || !strings.Contains(c.Outcomes[0].Summary(), "binds cannot be tested here: of no reason") || c.Disagree != "" {
		t.Errorf("%d skipped, %s: %+v", len(m.Skipped()), m.code(c), c)
	}
}

func TestNoLineOfAGridIsWiderThanATerminal(t *testing.T) {
	for _, kernels := range [][]string{{"6.1"}, {"6.1", "6.12", "6.18"}} {
		lists := []string{users(45)} // wider than a terminal, so that it goes in blocks
		for _, set := range Sets() {
			lists = append(lists, set.Name)
		}
		for _, rows := range lists {
			var b bytes.Buffer
			if err := fill(t, rows, kernels...).WriteText(&b); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := len(strings.TrimSuffix(line, "\n")); n > textWidth {
					t.Errorf("%.20s on %v: %d columns: %s", rows, kernels, n, line)
				}
			}
			if n, blocks := strings.Count(b.String(), "\n45 tcp4"), 2; rows == lists[0] && n != blocks {
				t.Errorf("row 45 is in %d blocks of columns", n)
			}
		}
	}
}

func TestTextAndMarkdownAreAsWritten(t *testing.T) {
	for file, write := range map[string]func(*Matrix, *bytes.Buffer) error{
		"small.txt": func(m *Matrix, b *bytes.Buffer) error { return m.WriteText(b) },
		"small.md":  func(m *Matrix, b *bytes.Buffer) error { return m.WriteMarkdown(b) },
		"differ.txt": func(m *Matrix, b *bytes.Buffer) error {
			return fill(t, four, "6.18", "6.18+first-bind-fix").WriteText(b)
		},
		"diverge.txt": func(m *Matrix, b *bytes.Buffer) error {
			return fill(t, "tcp6 ::ffff:0.0.0.0; tcp6 ::ffff:127.0.0.1", "6.1").WriteText(b)
		},
	} {
		m := fill(t, four, "6.18")
		m.Command = "checker matrix"
		var b bytes.Buffer
		if err := write(m, &b); err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile("testdata/"+file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s: %s", file, d)
		}
	}
}

func TestAMatrixComesThroughJSONWholeAndInParts(t *testing.T) {
	m := fill(t, four, "6.1", "6.18")
	m.Command = "checker matrix <&>"
	var whole, parts bytes.Buffer
	if err := m.WriteJSON(&whole); err != nil {
		t.Fatal(err)
	}
	var got Matrix
	if err := json.Unmarshal(whole.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	ignore := []cmp.Option{cmpopts.IgnoreUnexported(Asked{}), cmp.Comparer(func(a, b Kind) bool { return a == b })}
	if d := cmp.Diff(m, &got, ignore...); d != "" {
		t.Error(d)
	}
	if err := m.WriteParts(&parts); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(parts.String()), "\n")
	var a Assembly
	for i, line := range lines {
		if i == len(lines)-1 {
			if _, err := a.Matrix(); err == nil || !strings.Contains(err.Error(), "11 cells where its kinds make 12") {
				t.Errorf("a matrix without its last cell: %v", err)
			}
		}
		if err := a.Add([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := a.Matrix()
	if d := cmp.Diff(m, again, ignore...); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	for _, wrong := range [][]string{{}, lines[1:], {lines[0], lines[0]}, {lines[0], "{"}, append([]string{lines[0], lines[2]}, lines[2:]...)} {
		a, err := Assembly{}, error(nil)
		for _, line := range wrong {
			if err == nil {
				err = a.Add([]byte(line))
			}
		}
		if err == nil {
			_, err = a.Matrix()
		}
		if err == nil {
			t.Errorf("%d lines that are not the parts are a matrix", len(wrong))
		}
	}
}

func TestADivergenceOfARunningKernelIsToldOnceAndNotItsModels(t *testing.T) {
	kinds, err := Parse("tcp6 ::ffff:0.0.0.0; tcp6 ::ffff:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel, model string
		want          []string
	}{
		{"6.1", "6.1", []string{"diverges on 6.1: "}},
		{"6.1", "6.18", []string{"not as its model: ", "diverges on 6.1: "}},
		{"6.18", "6.1", []string{"not as its model: "}},
	} {
		m, err := Fill(context.Background(), kinds, []Kernel{modelled(t, reusecheck.TCP, c.kernel), modelled(t, reusecheck.TCP, c.model)}, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		told := m.view().told()
		if len(told) != len(c.want) {
			t.Errorf("%s held to %s: %d are told, want %d", c.kernel, c.model, len(told), len(c.want))
			continue
		}
		for i, x := range told {
			if !strings.HasPrefix(x.why, c.want[i]) || !strings.HasPrefix(x.trace, "kernels  "+c.kernel+"\n") {
				t.Errorf("%s held to %s: %s\n%s", c.kernel, c.model, x.why, x.trace)
			}
		}
	}
}
