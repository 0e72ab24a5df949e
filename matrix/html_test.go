package matrix_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/matrix"
	"github.com/reusecheck/reusecheck/model"
)

// evil is a text that a page must show as it stands.
const evil = `</script><img src="http://example.org/x" onerror=alert(1)>`

// pageOf is the page of a small matrix, whose kernel and command are evil.
func pageOf(t *testing.T, rows string, kernels ...string) string {
	t.Helper()
	kinds, err := matrix.Parse(rows)
	if err != nil {
		t.Fatal(err)
	}
	var ks []matrix.Kernel
	for _, name := range kernels {
		p := model.MustParse(name)
		ks = append(ks, matrix.Kernel{Name: name + evil, Stack: p.New(), Answers: reusecheck.KernelSet{}})
	}
	m, err := matrix.Fill(t.Context(), kinds, ks, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Command = "checker matrix " + evil
	var b bytes.Buffer
	if err := m.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const pageRows = "tcp6 ::ffff:0.0.0.0; tcp6 ::ffff:127.0.0.1 listen; tcp4 127.0.0.2 reuseport"

func TestThePageNeedsNothingButItselfAndShowsEveryTextAsItStands(t *testing.T) {
	page := pageOf(t, pageRows, "6.1")
	for _, bad := range []string{"<img", "<link", "<iframe", "<script src", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	for _, want := range []string{
		`default-src 'none'`, `<meta name="viewport" content="width=device-width, initial-scale=1">`, "prefers-color-scheme: dark",
		"<title>Who may share a port on 6.1", "checker matrix &lt;/script&gt;",
		`class="listen marked" data-row="1" data-col="2" aria-label="row 1, column 2: bind ok (none), the oracle says EADDRINUSE`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if n := strings.Count(page, "<button"); n != 10 { // a cell each, and one to close
		t.Errorf("%d buttons", n)
	}
}

var inBrowser = flag.Bool("browser", false, "also show pages in a browser, which takes its time")

// browser is a browser that shows a page without a window.
func browser(t *testing.T) string {
	t.Helper()
	if !*inBrowser {
		t.Skip("a browser is slow to start: give -browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, "no browser: install chromium")
	return ""
}

// shown opens a page in a browser and gives the document as it is then.
func shown(t *testing.T, page, fragment string) string {
	t.Helper()
	path := browser(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--virtual-time-budget=2000", "--dump-dom", "file://"+file+fragment)
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	return string(out)
}

var panelBody = regexp.MustCompile(`(?s)<dialog id="panel"([^>]*)>.*?<h2 id="panel-title">(.*?)</h2>.*?<div class="body" id="panel-body">(.*?)</div>\s*</dialog>`)

// panel is the open cell's title and text, "" when none is open.
func panel(t *testing.T, dom string) (title, text string) {
	t.Helper()
	p := panelBody.FindStringSubmatch(dom)
	if p == nil {
		t.Fatalf("the document has no panel:\n%.2000s", dom)
	}
	if !strings.Contains(p[1], "open") {
		return "", ""
	}
	return p[2], html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(p[3], " "))
}

func TestAFragmentOpensItsCellInABrowser(t *testing.T) {
	page := pageOf(t, pageRows, "6.1", "6.18")
	dom := shown(t, page, "#cell=1,2")
	title, text := panel(t, dom)
	if title != "Row 1, column 2" {
		t.Errorf("the title is %q", title)
	}
	for _, want := range []string{
		"tcp6 ::ffff:0.0.0.0", "On 6.1" + evil, "On 6.18" + evil,
		"socket b tcp6 => ok\nbind b [::ffff:127.0.0.1]:40000 => ok oracle EADDRINUSE\nlisten b => ok oracle EADDRINUSE",
		"The bind is granted: no owner that was looked at conflicts. A look at every owner gives EADDRINUSE: this is a divergence.",
		"The bind is refused with EADDRINUSE after a look at the owners", "what decides is a: " + reusecheck.RefuseNotShared.String(),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the panel does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(dom, "<img") {
		t.Error("a text became markup")
	}
}

func TestCellsOpenByMouseAndKeyboardAndCloseInABrowser(t *testing.T) {
	script := `<pre id="log"></pre><script>
addEventListener("load", () => {
  const log = t => document.getElementById("log").textContent += t + "|";
  const state = () => (document.getElementById("panel").open ? document.getElementById("panel-title").textContent : "closed") + " " + location.hash;
  const at = (r, c) => document.querySelector("[data-row='" + r + "'][data-col='" + c + "']");
  const key = k => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true}));
  const focused = () => document.activeElement.dataset.row + "," + document.activeElement.dataset.col;
  log(state());
  at(2, 3).click(); log(state());
  document.getElementById("close").click();
  setTimeout(() => {
    log(state() + " " + focused());
    key("ArrowLeft"); key("ArrowDown"); log(focused());
    key("Home"); key("ArrowLeft"); log(focused());
    key("End"); log(focused() + " " + document.querySelectorAll(".grid button[tabindex='0']").length);
    document.activeElement.click(); log(state());
    location.hash = "#cell=1,1";
    setTimeout(() => log(state()), 50);
  }, 50);
});
</script>`
	page := strings.Replace(pageOf(t, pageRows, "6.18"), "</body>", script+"</body>", 1)
	dom := shown(t, page, "#cell=9,9")
	got := regexp.MustCompile(`<pre id="log">(.*?)</pre>`).FindStringSubmatch(dom)
	want := "closed #cell=9,9|Row 2, column 3 #cell=2,3|closed  2,3|3,2|3,1|3,3 1|Row 3, column 3 #cell=3,3|Row 1, column 1 #cell=1,1|"
	if got == nil || got[1] != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestThePageFitsAPhoneInABrowser(t *testing.T) {
	page := strings.ReplaceAll(pageOf(t, matrix.Default, "6.18"), evil, "")
	probe := `<script>addEventListener("load", () => {
  const s = document.querySelector(".scroll"), first = document.querySelector("tbody th"), head = document.querySelector("thead th + th");
  s.scrollTo(200, 300);
  const box = s.getBoundingClientRect(), f = document.querySelectorAll("tbody th")[12].getBoundingClientRect(), h = head.getBoundingClientRect();
  const b = document.querySelector("[data-row='13'][data-col='9']").getBoundingClientRect();
  parent.postMessage([document.documentElement.scrollWidth <= innerWidth, s.scrollWidth > s.clientWidth, Math.abs(f.left - box.left) < 3,
    Math.abs(h.top - box.top) < 3, b.width >= 40 && b.height >= 40, parseFloat(getComputedStyle(first).fontSize) >= 12].join(), "*");
});</script>`
	inner := strings.Replace(page, "</body>", probe+"</body>", 1)
	outer := fmt.Sprintf(`<!DOCTYPE html><pre id="log"></pre><script>addEventListener("message", e => document.getElementById("log").textContent = e.data);</script>
<iframe style="width:390px;height:844px;border:0" srcdoc="%s"></iframe>`, html.EscapeString(inner))
	dom := shown(t, outer, "")
	got := regexp.MustCompile(`<pre id="log">(.*?)</pre>`).FindStringSubmatch(dom)
	if got == nil || got[1] != "true,true,true,true,true,true" {
		t.Errorf("page as wide as the screen, table scrolls, first column stays, head stays, cells for a finger, letters to read: %v", got)
	}
}
