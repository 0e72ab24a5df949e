package explore

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/reusecheck/reusecheck/model"
)

// line is a row of the table of verdicts as it stands there.
type line struct {
	kernel, property string
	proved           bool
	assume           string
	owners           int // that a proof tracks
	caches, pairs    int
	why              []reason
	on               []string // "number: kernel" of the histories that are confirmed
}

// reason is why an assumption is needed, or why there is no proof.
type reason struct {
	without    string
	number     int // of its history
	open       bool
	neverFirst bool
}

const (
	notProved = "**not proved**, whatever is assumed"
	byTwo     = " (two owners)"
	openMark  = "no proof and no history, "
	lateMark  = " (never first)"
)

func (l *line) String() string {
	assume := notProved
	if l.proved {
		assume = l.assume
		if l.owners == 2 {
			assume += byTwo
		}
	}
	var why []string
	for _, r := range l.why {
		cite := cited(r.number)
		if r.open {
			cite = openMark + cite
		}
		if r.without != "" {
			cite = r.without + ": " + cite
		}
		if r.neverFirst {
			cite += lateMark
		}
		why = append(why, cite)
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %s | %s |", l.kernel, l.property, assume, l.caches, l.pairs,
		strings.Join(why, "; "), strings.Join(l.on, "; "))
}

func cited(n int) string { return fmt.Sprintf("[%d](#%d)", n, n) }

var number = regexp.MustCompile(`\[(\d+)\]`)

// parseLine reads what String writes; ok is false for another line.
func parseLine(s string) (l line, ok bool) {
	f := strings.Split(s, " | ")
	if len(f) != 7 || !strings.HasPrefix(s, "| ") {
		return l, false
	}
	l.kernel, l.property = strings.TrimPrefix(f[0], "| "), f[1]
	if _, err := fmt.Sscan(f[3], &l.caches); err != nil {
		return l, false // the head
	}
	if _, err := fmt.Sscan(f[4], &l.pairs); err != nil {
		return l, false
	}
	if l.proved = f[2] != notProved; l.proved {
		l.owners = 1
		if l.assume = f[2]; strings.HasSuffix(f[2], byTwo) {
			l.assume, l.owners = strings.TrimSuffix(f[2], byTwo), 2
		}
	}
	for _, w := range strings.Split(f[5], "; ") {
		m := number.FindStringSubmatch(w)
		if m == nil {
			continue
		}
		r := reason{open: strings.Contains(w, openMark), neverFirst: strings.Contains(w, lateMark)}
		r.number, _ = strconv.Atoi(m[1]) // it is made of digits
		if before, _, found := strings.Cut(w, ": "); found {
			r.without = before
		}
		l.why = append(l.why, r)
	}
	if on := strings.TrimSuffix(f[6], " |"); on != "" {
		l.on = strings.Split(on, "; ")
	}
	return l, true
}

// summary answers in words what the lines of the table say: of the newest
// generation among them, whether it is sound with its repairs and which is the
// smallest that will do, and of all of them what is not settled.
func summary(lines []line) string {
	var b strings.Builder
	s := summarizer{lines}
	if g := s.newest(); g != "" {
		s.asked(&b, fmt.Sprintf("Is %s sound as it was released?", g), g)
		s.asked(&b, "With the first-bind fix?", g+"+first-bind-fix")
		s.asked(&b, "With exact-strict-match too?", g+"+first-bind-fix+exact-strict-match")
		s.asked(&b, "With stand-in-strict-match instead?", g+"+first-bind-fix+stand-in-strict-match")
		s.smallest(&b, g)
	}
	s.settled(&b)
	s.late(&b)
	s.tracked(&b)
	s.confirmed(&b)
	return b.String()
}

type summarizer struct{ lines []line }

// newest is the last generation that has a row.
func (s summarizer) newest() (name string) {
	for _, g := range model.Generations() {
		if s.line(g.Name, "sound") != nil {
			name = g.Name
		}
	}
	return name
}

func (s summarizer) line(kernel, property string) *line {
	for i := range s.lines {
		if l := &s.lines[i]; l.kernel == kernel && l.property == property {
			return l
		}
	}
	return nil
}

// asked answers whether a kernel is sound, with what breaks it otherwise.
func (s summarizer) asked(b *strings.Builder, question, kernel string) {
	l := s.line(kernel, "sound")
	if l == nil {
		return
	}
	fmt.Fprintf(b, "- **%s** %s\n", question, l.answer())
}

func (l *line) answer() string {
	switch {
	case !l.proved && len(l.why) > 0 && l.why[0].open:
		return "Not proved, whatever is assumed, and no history shows that it is not."
	case !l.proved:
		return "No, whatever is assumed: " + l.causes() + "."
	case l.assume == Assumption(0).String():
		return "Yes, with nothing assumed."
	}
	return "Only assuming " + l.assume + ". Without: " + l.causes() + "."
}

// causes are the histories of a row, with what each is about.
func (l *line) causes() string {
	var c []string
	for _, r := range l.why {
		s := cited(r.number)
		if r.without != "" {
			s = r.without + " " + s
		}
		if r.open {
			s += " (open)"
		}
		c = append(c, s)
	}
	return strings.Join(c, ", ")
}

// repair is a kernel of a generation on which all properties are proved.
type repair struct {
	kernel string
	parts  int
	needs  Assumption // for all of them together
	lines  []*line
}

func (s summarizer) repairs(generation string) (rs []repair) {
	for i := range s.lines {
		k := s.lines[i].kernel
		if k != generation && !strings.HasPrefix(k, generation+"+") || s.lines[i].property != Provable[0].Name {
			continue
		}
		r := repair{kernel: k, parts: strings.Count(k, "+")}
		for _, p := range Provable {
			l := s.line(k, p.Name)
			if l == nil || !l.proved {
				break
			}
			a, err := parseAssumed(l.assume)
			if err != nil {
				break
			}
			r.needs |= a
			r.lines = append(r.lines, l)
		}
		if len(r.lines) == len(Provable) {
			rs = append(rs, r)
		}
	}
	return rs
}

func parseAssumed(s string) (Assumption, error) {
	if s == Assumption(0).String() {
		return 0, nil
	}
	return ParseAssumptions(strings.Split(s, ","))
}

// smallest names the repairs under which everything is proved and whose assumptions
// no other undercuts; of those with the same, the ones of fewest parts.
func (s summarizer) smallest(b *strings.Builder, generation string) {
	fmt.Fprintf(b, "- **The smallest repair of %s that is sound, complete and precise?** ", generation)
	rs := s.repairs(generation)
	var best []repair
	for _, r := range rs {
		if !slices.ContainsFunc(rs, func(o repair) bool {
			return o.needs&^r.needs == 0 && (o.needs != r.needs || o.parts < r.parts)
		}) {
			best = append(best, r)
		}
	}
	if len(best) == 0 {
		fmt.Fprintf(b, "None of those in the table: on no kernel are all three proved.\n")
		return
	}
	slices.SortStableFunc(best, func(x, y repair) int {
		return cmp.Or(bits.OnesCount32(uint32(x.needs))-bits.OnesCount32(uint32(y.needs)), x.parts-y.parts)
	})
	var names []string
	for _, r := range best {
		var each []string
		for _, l := range r.lines {
			each = append(each, l.property+" assuming "+l.assume)
		}
		names = append(names, fmt.Sprintf("`%s` (%s)", r.kernel, strings.Join(each, "; ")))
	}
	fmt.Fprintf(b, "Of %d that are proved to be all three, no other does with less than %s.\n", len(rs), strings.Join(names, ", and "))
}

// settled lists what has neither a proof nor a history.
func (s summarizer) settled(b *strings.Builder) {
	var open []string
	for i := range s.lines {
		l := &s.lines[i]
		for _, r := range l.why {
			if !r.open {
				continue
			}
			what := l.property + " of " + l.kernel
			if r.without != "" {
				what += " without " + r.without
			}
			open = append(open, what+" "+cited(r.number))
		}
	}
	if len(open) == 0 {
		fmt.Fprintf(b, "- **Not settled:** nothing. Each assumption of each of the %d rows is needed, by a history.\n", len(s.lines))
		return
	}
	fmt.Fprintf(b, "- **Not settled:** %s: no proof, and no history in the worlds that were searched.\n", strings.Join(open, ", "))
}

// late lists what fails behind another fault only.
func (s summarizer) late(b *strings.Builder) {
	var late []string
	for i := range s.lines {
		l := &s.lines[i]
		for _, r := range l.why {
			if r.neverFirst {
				late = append(late, fmt.Sprintf("%s of %s without %s %s", l.property, l.kernel, r.without, cited(r.number)))
			}
		}
	}
	if len(late) > 0 {
		fmt.Fprintf(b, "- **Never the first to fail:** %s. A grant by the scan is wrong before; this is proved for any number of sockets.\n", strings.Join(late, ", "))
	}
}

func (s summarizer) tracked(b *strings.Builder) {
	var two []string
	proofs := 0
	for i := range s.lines {
		l := &s.lines[i]
		if l.proved {
			proofs++
		}
		if l.owners == 2 {
			two = append(two, l.property+" of "+l.kernel)
		}
	}
	if len(two) == 0 {
		fmt.Fprintf(b, "- **How many owners does a proof track?** One, in each of the %d.\n", proofs)
		return
	}
	fmt.Fprintf(b, "- **How many owners does a proof track?** Two for %s; one in each other of the %d.\n", strings.Join(two, ", "), proofs)
}

func (s summarizer) confirmed(b *strings.Builder) {
	all, on, where := map[int]bool{}, map[int]bool{}, map[string]bool{}
	for i := range s.lines {
		for _, r := range s.lines[i].why {
			if !r.open {
				all[r.number] = true
			}
		}
		for _, c := range s.lines[i].on {
			var n int
			if _, err := fmt.Sscanf(c, "%d:", &n); err != nil {
				continue
			}
			_, kernel, _ := strings.Cut(c, ": ")
			on[n], where[kernel] = true, true
		}
	}
	if len(on) == 0 {
		fmt.Fprintf(b, "- **Seen on a running kernel?** None of the %d histories was held to one.\n", len(all))
		return
	}
	var kernels []string
	for k := range where {
		kernels = append(kernels, k)
	}
	slices.Sort(kernels)
	fmt.Fprintf(b, "- **Seen on a running kernel?** %d of %d histories, on %s.\n", len(on), len(all), strings.Join(kernels, ", "))
}
