package explain

import (
	"fmt"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// most is how many sockets a sentence names.
const most = 4

// teller puts one step after the other into words.
type teller struct {
	t       *rc.Trace
	buckets bucketed
	once    map[string]bool // what is said once a story
	nets    map[rc.ID]rc.ID // the sockets in other namespaces

	layout []model.AddrBucket // of the step's port, before it
	looked []rc.ID

	o   *spec.Observation
	out *Step
}

func (w *teller) say(format string, args ...any) {
	w.out.Text = append(w.out.Text, fmt.Sprintf(format, args...))
}

func (w *teller) first(what string) bool {
	was := w.once[what]
	w.once[what] = true
	return !was
}

// layOut notes the address buckets of the port that a step asks for.
func (w *teller) layOut(live []rc.Socket, op rc.Op) {
	w.layout = nil
	if w.buckets != nil {
		if port := portOf(live, op); port != 0 {
			w.layout = w.buckets.AddrBuckets(port)
		}
	}
}

// portOf is the port that an operation asks for, 0 for none or an automatic one.
func portOf(live []rc.Socket, op rc.Op) uint16 {
	switch op.Verb {
	case rc.VBind:
		return op.Addr.Port()
	case rc.VListen:
		for i := range live {
			if live[i].ID == op.Sock {
				return live[i].Local.Port()
			}
		}
	}
	return 0
}

func (w *teller) names(ids []rc.ID) []string {
	var s []string
	for _, id := range ids {
		s = append(s, w.t.Name(id))
	}
	return s
}

// step tells of one step.
func (w *teller) step(i int, o *spec.Observation, found []spec.Violation) Step {
	got := &o.Got
	out := Step{
		Line: w.t.Steps[i].Line, Number: i + 1, Op: o.Op.Text(w.t.Name), Result: got.Text(w.t.Name),
		Oracle: o.Verdict.Want.Text(w.t.Name), Open: o.Verdict.Open, answer: got.Answer, oracle: o.Verdict.Want,
		Refused: got.Kind == rc.Failed, Diverges: !o.Verdict.Agrees, Path: got.Path.String(),
	}
	if got.Reason != rc.ReasonNone {
		out.Reason = got.Reason.String()
	}
	if got.Decider != rc.NoID {
		out.Decider = w.t.Name(got.Decider)
	}
	if got.HasCache {
		out.Before, out.After = cacheText(got.Before), cacheText(got.After)
	}
	for _, c := range o.Verdict.Conflicts {
		out.InTheWay = append(out.InTheWay, w.t.Name(c.Owner))
	}
	w.o, w.out = o, &out
	switch o.Op.Verb {
	case rc.VSocket:
		w.socket()
	case rc.VBind, rc.VListen:
		w.request()
	case rc.VConnect:
		w.connect()
	case rc.VInherit:
		w.inherit()
	case rc.VSend:
		w.send()
	default:
		w.change()
	}
	w.judge(found)
	return out
}

func (w *teller) socket() {
	op := &w.o.Op
	what := "an IPv4"
	switch {
	case op.Family.Is6() && op.Opts.Has(rc.V6Only):
		what = "an IPv6"
	case op.Family.Is6():
		what = "a dual-stack IPv6"
	}
	layer := "TCP"
	if op.Family.IsUDP() {
		layer = "UDP"
	}
	with := "without options"
	if op.Opts != 0 {
		with = "with " + strings.ReplaceAll(op.Opts.String(), " ", " and ")
	}
	if slices.ContainsFunc(w.t.Steps, func(s rc.Step) bool { return s.Op.UID != 0 }) {
		with += fmt.Sprintf(", of user %d", op.UID)
	}
	w.say("%s is %s %s socket %s.", w.t.Name(op.Sock), what, layer, with)
	if op.Dev != rc.NoDev {
		w.say("It is bound to the device %s.", op.Dev)
	}
	if op.CPU != rc.NoCPU {
		w.say("It wants the traffic of processor %s.", op.CPU)
	}
}
