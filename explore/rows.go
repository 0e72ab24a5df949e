package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rc "github.com/reusecheck/reusecheck"
	"github.com/reusecheck/reusecheck/model"
	"github.com/reusecheck/reusecheck/spec"
)

// ReadRows reads verdicts that were written as JSON. A table that is made of them
// is taken for what was proved, so that each must be one that [Rows] could give.
func ReadRows(text []byte) ([]Row, error) {
	var rows []Row
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&rows); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the verdicts")
	}
	for i := range rows {
		if err := rows[i].check(); err != nil {
			return nil, fmt.Errorf("verdict %d: %w", i+1, err)
		}
	}
	return rows, nil
}

func (r *Row) check() error {
	if _, err := model.Parse(r.Kernel); err != nil {
		return err
	}
	if !slices.ContainsFunc(Provable, func(p *spec.Property) bool { return p.Name == r.Property }) {
		return fmt.Errorf("%q is no property that is proved", r.Property)
	}
	if err := readAssumed(r.Assume); err != nil {
		return err
	}
	if !r.Proved && len(r.Why) == 0 {
		return errors.New("it is not proved, and no reason is given")
	}
	if r.Owners < 0 || r.Owners > 2 || r.Caches < 0 || r.Pairs < 0 {
		return errors.New("a number is out of its range")
	}
	for i := range r.Why {
		if err := r.Why[i].check(); err != nil {
			return fmt.Errorf("reason %d: %w", i+1, err)
		}
	}
	return nil
}

func (o *Obstacle) check() error {
	if err := readAssumed(o.Assume); err != nil {
		return err
	}
	if err := readAssumed(o.Without); err != nil {
		return err
	}
	if strings.ContainsRune(o.Pair+o.Refined+o.World, '\n') {
		return errors.New("what is told in one line has several")
	}
	if o.Trace == "" {
		return nil
	}
	_, err := rc.Parse("history", []byte(o.Trace))
	return err
}

// readAssumed reads what String of an [Assumption] writes.
func readAssumed(s string) error {
	if s == "" || s == Assumption(0).String() {
		return nil
	}
	_, err := ParseAssumptions(strings.Split(s, ","))
	return err
}
