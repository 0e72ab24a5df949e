package model_test

import (
	"testing"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
)

func TestAConnectionThatWasRefusedHadAPortAndDidNotMeetItself(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"the other port was picked", "ports 40000-40001\nsocket a tcp4\nconnect a 127.0.0.1:40000 => ECONNREFUSED\n"},
		{"the only port that is left is one that most searches miss", "ports 40000-40004\n" +
			"socket a tcp4\nsocket b tcp4\nsocket c tcp4\nsocket d tcp4\nsocket e tcp4\n" +
			"bind b 127.0.0.1:40000\nbind c 127.0.0.1:40001\nbind d 127.0.0.1:40002\nbind e 127.0.0.1:40003\n" +
			"connect a 127.0.0.1:9 => ECONNREFUSED\n"},
	} {
		tr, err := rc.Parse("", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.Parse("6.18")
		if err != nil {
			t.Fatal(err)
		}
		s := p.New()
		if err := s.Reset(tr.Config); err != nil {
			t.Fatal(err)
		}
		for i, st := range tr.Steps {
			r, err := s.DoAs(st.Op, st.Want)
			if err != nil {
				t.Fatal(err)
			}
			if i == len(tr.Steps)-1 && r.Answer != st.Want {
				t.Errorf("%s: %s is answered %s", c.name, st.Op.Text(tr.Name), r.Answer)
			}
		}
	}
}
