package live

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// maxLine is the longest line of a console that is looked at; more of it is
// dropped.
const maxLine = 1 << 20

// lineSplitter is an io.Writer that calls line with every whole line written
// to it, without its end. The bytes are only lent.
type lineSplitter struct {
	line    func([]byte)
	pending []byte
}

func (s *lineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			s.keep(p)
			return n, nil
		}
		s.keep(p[:i])
		s.flush()
		p = p[i+1:]
	}
}

func (s *lineSplitter) keep(p []byte) {
	s.pending = append(s.pending, p[:min(len(p), maxLine-len(s.pending))]...)
}

// flush ends the line at hand.
func (s *lineSplitter) flush() {
	s.line(bytes.Trim(s.pending, "\r"))
	s.pending = s.pending[:0]
}

// jsonObject is the JSON object that a console line consists of, if it does:
// kernel messages, firmware and damaged lines are not.
func jsonObject(line []byte) ([]byte, bool) {
	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' || !json.Valid(line) {
		return nil, false
	}
	return line, true
}

// logLines is how many lines of a console an error shows.
const logLines = 15

// console follows a guest's console.
type console struct {
	options  *BootOptions
	up, done func() // called at the greeting, at the closing line

	greeting *guestGreeting
	closing  *guestClosing
	panicked string // what the kernel said of its panic
	objects  int
	log      []string // the last lines, as text
}

// panicMark begins the line in which a kernel says why it panics; a back trace
// follows, which would push what came before out of the last lines.
const panicMark = "Kernel panic - not syncing"

// line takes one line of the console.
func (c *console) line(line []byte) {
	if c.options.Console != nil {
		c.options.Console(line)
	}
	object, ok := jsonObject(line)
	if ok && c.own(object) {
		return
	}
	if c.panicked == "" {
		c.remember(line)
	}
	switch {
	case ok:
		c.objects++
		if c.options.Object != nil {
			c.options.Object(slices.Clone(object))
		}
	case c.panicked == "":
		if i := bytes.Index(line, []byte(panicMark)); i >= 0 {
			c.panicked = plain(line[i+len(panicMark):])
		}
	}
}

// own takes the lines that the guest says of itself.
func (c *console) own(object []byte) bool {
	var kind struct {
		Protocol *int `json:"reusecheck"`
		Done     bool `json:"done"`
	}
	if json.Unmarshal(object, &kind) != nil || kind.Protocol == nil {
		return false
	}
	if kind.Done {
		var closing guestClosing
		if json.Unmarshal(object, &closing) == nil && c.closing == nil {
			c.closing = &closing
			c.done()
		}
		return true
	}
	var greeting guestGreeting
	if json.Unmarshal(object, &greeting) == nil && c.greeting == nil {
		c.greeting = &greeting
		c.up()
	}
	return true
}

// controls are the terminal escapes with which firmware clears a screen.
var controls = regexp.MustCompile("\x1b(\\[[0-9;?=]*[A-Za-z]|c)|[\x00-\x08\x0b-\x1f\x7f]")

// plain is a console line as text for a person, cut at a sensible width.
func plain(line []byte) string {
	const wide = 300
	text := strings.TrimSpace(string(controls.ReplaceAll(line[:min(len(line), 4*wide)], nil)))
	if len(text) > wide {
		text = text[:wide] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}

// remember keeps the line among the last ones, if there is anything to see.
func (c *console) remember(line []byte) {
	text := plain(line)
	if text == "" {
		return
	}
	if len(c.log) == logLines {
		c.log = c.log[:copy(c.log, c.log[1:])]
	}
	c.log = append(c.log, text)
}
