package matrix

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON prints the matrix as one object on one line.
func (m *Matrix) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(m)
}

// WriteParts prints the matrix as one object a line, none of them long: itself
// without its cells, then each cell. [Assembly] puts it together again, where
// only short lines can be sent.
func (m *Matrix) WriteParts(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	head := *m
	head.Cells = nil
	if err := e.Encode(&head); err != nil {
		return err
	}
	for i := range m.Cells {
		if err := e.Encode(struct {
			Cell *Cell `json:"cell"`
		}{&m.Cells[i]}); err != nil {
			return err
		}
	}
	return nil
}

// Assembly puts a matrix together from the parts that WriteParts printed.
type Assembly struct{ m *Matrix }

// Add takes the next part.
func (a *Assembly) Add(part []byte) error {
	var v struct {
		Cell *Cell `json:"cell"`
		Matrix
	}
	if err := json.Unmarshal(part, &v); err != nil {
		return fmt.Errorf("a part of a matrix cannot be read: %w", err)
	}
	switch {
	case v.Cell == nil && a.m == nil:
		a.m = &v.Matrix
		return nil
	case v.Cell == nil || a.m == nil:
		return fmt.Errorf("the parts of a matrix are out of order: %.80s", part)
	}
	a.m.Cells = append(a.m.Cells, *v.Cell)
	return nil
}

// Matrix is the whole, when it is complete.
func (a *Assembly) Matrix() (*Matrix, error) {
	if a.m == nil {
		return nil, fmt.Errorf("no matrix came")
	}
	if err := a.m.verify(); err != nil {
		return nil, err
	}
	return a.m, nil
}

// verify finds what makes a matrix that was read impossible to print.
func (m *Matrix) verify() error {
	if got, want := len(m.Cells), len(m.Kinds)*len(m.Columns); got != want || want == 0 {
		return fmt.Errorf("the matrix has %d cells where its kinds make %d", got, want)
	}
	for _, c := range m.Columns {
		if c < 0 || c >= len(m.Kinds) {
			return fmt.Errorf("the matrix has a column of kind %d, but %d kinds", c+1, len(m.Kinds))
		}
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		first, second := i/len(m.Columns), m.Columns[i%len(m.Columns)]
		if c.First != first || c.Second != second || len(c.Outcomes) != len(m.Kernels) || len(c.Outcomes) == 0 {
			return fmt.Errorf("cell %d of the matrix is not that of row %d and column %d on every kernel", i+1, first+1, second+1)
		}
	}
	return nil
}
