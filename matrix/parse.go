package matrix

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck"
)

// MaxKinds is how many kinds a matrix may have: their pairs are its square.
const MaxKinds = 64

// maxText bounds a list of rows, in bytes.
const maxText = 1 << 16

// usage is what a kind looks like.
const usage = `a kind such as "tcp6 :: v6only reuseport uid=1001 dev=d1 listen", or the name of a set`

// rowsFile is what messages call the text of [Parse].
const rowsFile = "--rows"

// Parse reads a list of kinds, separated by semicolons or ends of lines:
//
//	FAMILY ADDR [v6only] [reuseaddr] [reuseport] [uid=N] [dev=DEV] [listen]
//
// FAMILY is tcp4, tcp6, udp4 or udp6, ADDR an address of the family without
// brackets, DEV lo, d1 or d2. A name of one of [Sets] stands for its kinds. A
// kind that was there before is left out. The error is a [*reusecheck.ParseError].
func Parse(text string) ([]Kind, error) {
	p := parser{rowsFile, text}
	if len(text) > maxText {
		return nil, p.errorAt(maxText, fmt.Sprintf("the list is longer than %d bytes", maxText), "")
	}
	var kinds []Kind
	for from := 0; from <= len(text); {
		to := len(text)
		if i := strings.IndexAny(text[from:], ";\n"); i >= 0 {
			to = from + i
		}
		words := p.words(from, to)
		if len(words) > 0 {
			more, err := p.item(words)
			if err != nil {
				return nil, err
			}
			for _, k := range more {
				if err := p.add(&kinds, k, words[0].at); err != nil {
					return nil, err
				}
			}
		}
		from = to + 1
	}
	if len(kinds) == 0 {
		return nil, p.errorAt(0, "there is no kind", usage)
	}
	return kinds, nil
}

type parser struct{ file, text string }

type word struct {
	text string
	at   int // byte offset
}

// words cuts a part of the text at blanks.
func (p *parser) words(from, to int) []word {
	var ws []word
	start := -1
	for i, r := range p.text[from:to] {
		switch blank := r == ' ' || r == '\t' || r == '\r'; {
		case !blank && start < 0:
			start = i
		case blank && start >= 0:
			ws = append(ws, word{p.text[from+start : from+i], from + start})
			start = -1
		}
	}
	if start >= 0 {
		ws = append(ws, word{p.text[from+start : to], from + start})
	}
	return ws
}

func (p *parser) errorAt(at int, msg, expected string, near ...string) error {
	return reusecheck.ErrorAt(p.file, p.text, at, msg, expected, near...)
}

// item is a kind, or the kinds of a set.
func (p *parser) item(words []word) ([]Kind, error) {
	if s := setNamed(words[0].text); s != nil {
		if len(words) > 1 {
			return nil, p.errorAt(words[1].at, fmt.Sprintf("%q stands behind the set %s", words[1].text, s.Name), "a semicolon after the name of a set")
		}
		return s.Kinds, nil
	}
	k, err := p.kind(words)
	if err != nil {
		return nil, err
	}
	return []Kind{k}, nil
}

func (p *parser) add(kinds *[]Kind, k Kind, at int) error {
	switch {
	case slices.Contains(*kinds, k):
		return nil
	case len(*kinds) == MaxKinds:
		return p.errorAt(at, fmt.Sprintf("there are more than %d kinds", MaxKinds), "fewer rows")
	case len(*kinds) > 0 && (*kinds)[0].Family.IsUDP() != k.Family.IsUDP():
		return p.errorAt(at, fmt.Sprintf("%s stands beside %s: the ports of TCP and UDP have nothing to do with each other", k.Family, (*kinds)[0].Family),
			"kinds of TCP, or kinds of UDP")
	}
	*kinds = append(*kinds, k)
	return nil
}

var families = []reusecheck.Family{reusecheck.TCP4, reusecheck.TCP6, reusecheck.UDP4, reusecheck.UDP6}

// options are those that decide who may share a named port.
const options = reusecheck.V6Only | reusecheck.ReuseAddr | reusecheck.ReusePort

func (p *parser) kind(words []word) (Kind, error) {
	var k Kind
	var names []string
	for _, f := range families {
		names = append(names, f.String())
		if f.String() == words[0].text {
			k.Family = f
		}
	}
	if k.Family == 0 {
		for i := range sets {
			names = append(names, sets[i].Name)
		}
		return k, p.errorAt(words[0].at, fmt.Sprintf("unknown family or set %q", words[0].text),
			"one of "+strings.Join(names, ", "), reusecheck.Nearest(words[0].text, names))
	}
	if len(words) == 1 {
		return k, p.errorAt(words[0].at+len(words[0].text), "the address is missing", usage)
	}
	if err := p.address(&k, words[1]); err != nil {
		return k, err
	}
	var given []string
	for _, w := range words[2:] {
		key, _, _ := strings.Cut(w.text, "=")
		if slices.Contains(given, key) {
			return k, p.errorAt(w.at, key+" is given twice", "")
		}
		given = append(given, key)
		if err := p.attribute(&k, w); err != nil {
			return k, err
		}
	}
	return k, nil
}

func (p *parser) address(k *Kind, w word) error {
	expected := "an address such as 0.0.0.0 or 127.0.0.1"
	if k.Family.Is6() {
		expected = "an address such as ::, ::1 or ::ffff:127.0.0.1, without brackets"
	}
	a, err := netip.ParseAddr(w.text)
	switch {
	case err != nil:
		return p.errorAt(w.at, fmt.Sprintf("%q is not an address", w.text), expected)
	case a.Zone() != "":
		return p.errorAt(w.at, fmt.Sprintf("the address %q has a zone", w.text), "an address without a zone; a device is given with dev=")
	case a.Is4() == k.Family.Is6():
		return p.errorAt(w.at, fmt.Sprintf("%s is not an address of %s", w.text, k.Family), expected)
	}
	k.Addr = a
	return nil
}

var devices = []reusecheck.Dev{reusecheck.DevLo, reusecheck.Dev1, reusecheck.Dev2}

func (p *parser) attribute(k *Kind, w word) error {
	words := []string{"listen", "uid", "dev"}
	for _, o := range reusecheck.OptNames {
		if options&o.Opt == 0 {
			continue
		}
		if o.Name == w.text {
			k.Opts |= o.Opt
			return nil
		}
		words = append(words, o.Name)
	}
	key, value, _ := strings.Cut(w.text, "=")
	at := w.at + len(w.text) - len(value)
	switch {
	case w.text == "listen":
		if k.Family.IsUDP() {
			return p.errorAt(w.at, "a UDP socket does not listen", "")
		}
		k.Listen = true
		return nil
	case key == "uid":
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != value {
			return p.errorAt(at, fmt.Sprintf("%q is not a uid", value), "uid=N, a number without leading zeros")
		}
		k.UID = uint32(n)
		return nil
	case key == "dev":
		var names []string
		for _, d := range devices {
			if d.String() == value {
				k.Dev = d
				return nil
			}
			names = append(names, d.String())
		}
		return p.errorAt(at, fmt.Sprintf("unknown device %q", value), "dev=lo, dev=d1 or dev=d2", reusecheck.Nearest(value, names))
	}
	return p.errorAt(w.at, fmt.Sprintf("unknown word %q", w.text),
		"v6only, reuseaddr, reuseport, uid=N, dev=DEV or listen", reusecheck.Nearest(key, words))
}
