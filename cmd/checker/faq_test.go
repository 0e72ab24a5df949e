package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

var updateFAQ = flag.Bool("update-faq", false, "write what the commands of docs/faq.md print into it")

const (
	faqFile    = "docs/faq.md"
	faqCommand = "    $ checker "
)

// faqBlock is an indented block of the FAQ: lines from, to (not included). A
// command begins a block of its own.
type faqBlock struct{ from, to int }

func faqBlocks(lines []string) (bs []faqBlock) {
	inside := func(i int) bool { return i < len(lines) && strings.HasPrefix(lines[i], "    ") }
	command := func(i int) bool { return inside(i) && strings.HasPrefix(lines[i], faqCommand) }
	for i := 0; i < len(lines); i++ {
		if !inside(i) {
			continue
		}
		b := faqBlock{from: i}
		for i++; inside(i) && !command(i) || i < len(lines) && lines[i] == "" && inside(i+1) && !command(i+1); i++ {
		}
		b.to = i
		bs = append(bs, b)
		i--
	}
	return bs
}

var faqTrace = regexp.MustCompile(`\]\(\.\./(corpus/[^)]+\.trace)\)`)

// readFAQ gives the FAQ's lines, in the repository's root.
func readFAQ(t *testing.T) []string {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile(faqFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

func TestEveryOutputInTheFAQIsWhatItsCommandPrints(t *testing.T) {
	lines := readFAQ(t)
	ran := 0
	var out []string
	done := 0
	for _, b := range faqBlocks(lines) {
		if !strings.HasPrefix(lines[b.from], faqCommand) {
			continue
		}
		ran++
		var got, errs bytes.Buffer
		args := commandLine(strings.TrimPrefix(lines[b.from], faqCommand))
		if code := run(context.Background(), args, streams{strings.NewReader(""), &got, &errs}); code != exitNothing {
			t.Errorf("%s:%d: exit code %d: %s", faqFile, b.from+1, code, &errs)
		}
		var want []string
		for line := range strings.Lines(strings.TrimRight(got.String(), "\n")) {
			line = strings.TrimRight(line, "\n")
			if line != "" {
				line = "    " + line
			}
			want = append(want, line)
		}
		if d := cmp.Diff(want, lines[b.from+1:b.to]); d != "" && !*updateFAQ {
			t.Errorf("%s:%d: -printed +quoted (go test ./cmd/checker -run FAQ -update-faq mends it):\n%s", faqFile, b.from+1, d)
		}
		out = append(append(out, lines[done:b.from+1]...), want...)
		done = b.to
	}
	if ran < 14 {
		t.Errorf("only %d commands are there", ran)
	}
	if *updateFAQ {
		if err := os.WriteFile(faqFile, []byte(strings.Join(append(out, lines[done:]...), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheREADMEQuotesAnExplanationAsItIsPrinted(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	found := false
	for _, b := range faqBlocks(lines) {
		if !strings.HasPrefix(lines[b.from], faqCommand+"explain ") {
			continue
		}
		found = true
		var got bytes.Buffer
		run(context.Background(), commandLine(strings.TrimPrefix(lines[b.from], faqCommand)), streams{strings.NewReader(""), &got, io.Discard})
		var quoted strings.Builder
		for _, line := range lines[b.from+1 : b.to] {
			if line != "    [...]" {
				quoted.WriteString(strings.TrimPrefix(line, "    ") + "\n")
			}
		}
		if !strings.HasPrefix(got.String(), quoted.String()) {
			t.Errorf("README.md:%d: -printed +quoted:\n%s", b.from+1, cmp.Diff(got.String(), quoted.String()))
		}
	}
	if !found {
		t.Error("the README quotes none")
	}
}

// commandLine splits a command into words; double quotes keep blanks.
func commandLine(s string) (words []string) {
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

func TestEveryTraceInTheFAQIsItsFileAndHoldsOnEveryKernelThatItNames(t *testing.T) {
	lines := readFAQ(t)
	linked := map[string]bool{}
	for i, line := range lines {
		for _, m := range faqTrace.FindAllStringSubmatch(line, -1) {
			linked[m[1]] = true
			tr, err := reusecheck.ParseFile(m[1])
			if err != nil {
				t.Errorf("%s:%d: %v", faqFile, i+1, err)
				continue
			}
			holdsEverywhere(t, tr)
		}
	}
	for _, b := range faqBlocks(lines) {
		if strings.HasPrefix(lines[b.from], faqCommand) {
			continue
		}
		m := faqTrace.FindAllStringSubmatch(lines[max(0, b.from-2)], -1)
		if len(m) != 1 {
			t.Errorf("%s:%d: the line before a trace links the one file that it is of", faqFile, b.from+1)
			continue
		}
		text, err := os.ReadFile(m[0][1])
		if err != nil {
			t.Fatal(err)
		}
		_, steps, _ := strings.Cut(string(text), "\n\n")
		var want []string
		for line := range strings.Lines(steps) {
			want = append(want, "    "+strings.TrimRight(line, "\n"))
		}
		if d := cmp.Diff(want, lines[b.from:b.to]); d != "" {
			t.Errorf("%s:%d: -%s +quoted:\n%s", faqFile, b.from+1, m[0][1], d)
		}
	}
	files, err := filepath.Glob("corpus/tcp/demand/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		if !linked[filepath.ToSlash(f)] {
			t.Errorf("%s answers no question of %s", f, faqFile)
		}
	}
}

// holdsEverywhere replays a trace on the modelled kernels that it names.
func holdsEverywhere(t *testing.T, tr *reusecheck.Trace) {
	t.Helper()
	kernels := model.NamedOf(tr.Config.System, tr.Kernels)
	if len(kernels) == 0 {
		t.Errorf("%s names no modelled kernel", tr.File)
	}
	for _, k := range kernels {
		r := newReplayReport(streams{nil, io.Discard, io.Discard}, &replayFlags{quiet: true})
		err := replay(context.Background(), r, tr, runner{k.String(), k.Stack})
		if err != nil || r.mismatches > 0 || r.skipped > 0 || r.steps != len(tr.Steps) {
			t.Errorf("%s on %s: %d of %d steps, %d not as stated: %v", tr.File, k, r.steps, len(tr.Steps), r.mismatches, err)
		}
	}
	if _, err := spec.SystemOf(tr); err != nil {
		t.Error(err)
	}
}

var (
	pageLink = regexp.MustCompile(`\]\(([^()#]*)(?:#([^()]*))?\)`)
	noSlug   = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors are the names of a page's headings, as GitHub makes them: without
// punctuation, and with a hyphen for every blank, the last one too.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			names[strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")] = true
		}
	}
	return names
}

func TestEveryLinkOfThePagesLeadsToAFileAndAHeading(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	pages, _ := filepath.Glob("docs/*.md")
	links := 0
	for _, page := range append(pages, "README.md", "bench/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
			file, heading := m[1], m[2]
			if strings.Contains(file, "://") {
				continue
			}
			links++
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if heading == "" {
				continue
			}
			target, err := os.ReadFile(to)
			if err != nil || !anchors(string(target))[heading] {
				t.Errorf("%s: %s has no heading #%s", page, to, heading)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links are there", links)
	}
}
