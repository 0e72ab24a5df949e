package matrix

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// htmlPage is what the page is made of. Texts that a kernel or a person gave
// reach it through the template's escaping only.
type htmlPage struct {
	*view
	Heads  []htmlHead
	Rows   []htmlRow
	Signs  []htmlSign
	Axes   string
	Tally  string
	Panels []htmlPanel
}

type htmlHead struct {
	N    int
	Kind string
}

type htmlRow struct {
	N     int
	Kind  string
	Cells []htmlCell
}

type htmlCell struct {
	Row, Col int
	Code     string
	Class    string
	Label    string // for those who hear it
}

type htmlSign struct {
	Code, Class, Words string
}

// htmlPanel is what a cell opens to. The page's script reads it as JSON.
type htmlPanel struct {
	First    string    `json:"first"`
	Second   string    `json:"second"`
	Note     string    `json:"note,omitempty"`
	Outcomes []Outcome `json:"outcomes"`
}

// WriteHTML prints one page that needs nothing but itself.
func (m *Matrix) WriteHTML(w io.Writer) error {
	v := m.view()
	p := htmlPage{view: v, Axes: v.axes(), Tally: v.tally()}
	for _, c := range m.Columns {
		p.Heads = append(p.Heads, htmlHead{c + 1, m.Kinds[c].second().String()})
	}
	for i, k := range m.Kinds {
		row := htmlRow{N: i + 1, Kind: k.String()}
		for j, col := range m.Columns {
			at := i*len(m.Columns) + j
			c := &m.Cells[at]
			row.Cells = append(row.Cells, htmlCell{Row: i + 1, Col: col + 1, Code: v.codes[at], Class: v.class(at, c), Label: v.label(c)})
			note := c.Disagree
			if note != "" {
				note = "Not as its model: " + note
			}
			p.Panels = append(p.Panels, htmlPanel{k.String(), m.Kinds[col].second().String(), note, c.Outcomes})
		}
		p.Rows = append(p.Rows, row)
	}
	for _, s := range v.legend() {
		p.Signs = append(p.Signs, htmlSign{s.Code, v.signClass(s.Code), s.Words})
	}
	return page.Execute(w, p)
}

// The classes that the page's style sheet colours; each has a letter and a
// texture of its own too.
var classOf = map[string]string{
	codeListen: "listen", codeBind: "bind", codeRefused: "refused", codeOther: "other", codeSkipped: "skipped",
}

// patternColours is how many colours the ways to differ have before they repeat;
// it is their letters that tell them apart.
const patternColours = 5

// class is the style of a cell.
func (v *view) class(at int, c *Cell) string {
	s := "refused"
	switch o := &c.Outcomes[0]; {
	case v.Comparing() && c.Differ != "":
		s = v.signClass(strings.TrimSuffix(v.codes[at], markDiverges))
	case !v.Comparing():
		s = classOf[o.grant()]
		path := ""
		if o.Bind.Granted() {
			path = o.Bind.Path
			if v.Running && len(c.Outcomes) > 1 && c.Outcomes[1].Bind != nil {
				path = c.Outcomes[1].Bind.Path
			}
		}
		if path == "scan" {
			s += " scan"
		}
	}
	if v.diverges(c) || c.Disagree != "" {
		s += " marked"
	}
	return s
}

// signClass is the style of a code in the legend.
func (v *view) signClass(code string) string {
	switch {
	case v.Comparing() && code != same && code != markDiverges:
		at := slices.IndexFunc(v.patterns, func(p pattern) bool { return p.letter == code })
		return fmt.Sprintf("p%d", at%patternColours)
	case code == markDiverges || code == markDisagree:
		return "marked"
	case code == pathCode("scan") && !v.Comparing():
		return "path scan"
	case (code == pathCode("fast") || code == pathCode("none")) && !v.Comparing():
		return "path"
	}
	return classOf[code]
}

// label is a cell in words.
func (v *view) label(c *Cell) string {
	said := c.Outcomes[0].Summary()
	if v.Comparing() {
		if said = "the same on all: " + said; c.Differ != "" {
			said = "differs: " + c.Differ
		}
	}
	if c.Disagree != "" {
		said += "; not as its model: " + c.Disagree
	}
	return fmt.Sprintf("row %d, column %d: %s", c.First+1, c.Second+1, said)
}
