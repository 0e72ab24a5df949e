package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one change of one condition: the bytes from..to of a file replaced.
type mutant struct {
	file     string
	line     int
	function string
	source   []byte
	from, to int
	with     string
}

func (m mutant) text() []byte {
	return slices.Concat(m.source[:m.from], []byte(m.with), m.source[m.to:])
}

func (m mutant) what() string {
	was := strings.Join(strings.Fields(string(m.source[m.from:m.to])), " ")
	return strings.ReplaceAll(was+" -> "+m.with, "|", `\|`)
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.file, m.line, m.function, m.what())
}

// find lists every change of a condition in the functions with those names.
func find(dir string, names *regexp.Regexp) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var ms []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || !names.MatchString(fn.Name.Name) {
				continue
			}
			s := &seeker{fset: fset, m: mutant{file: file, source: source, function: fn.Name.Name}}
			ast.Inspect(fn.Body, s.visit)
			ms = append(ms, s.found...)
		}
	}
	return ms, nil
}

type seeker struct {
	fset  *token.FileSet
	m     mutant
	found []mutant
	seen  map[ast.Expr]bool
}

// visit looks for the places where a condition can stand.
func (s *seeker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		s.condition(n.Cond, "")
	case *ast.ForStmt:
		if n.Cond != nil {
			s.condition(n.Cond, "")
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				list, without := c.(*ast.CaseClause).List, ""
				if len(list) > 1 {
					without = "false" // one of several is as good as gone
				}
				for _, e := range list {
					s.condition(e, without)
				}
			}
		}
	case *ast.BinaryExpr:
		if isCondition(n.Op) {
			s.condition(n, "")
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.condition(n, "")
		}
	}
	return true
}

func isCondition(op token.Token) bool {
	_, compares := turned[op]
	return compares || op == token.LAND || op == token.LOR
}

// turned gives each comparison's opposite and, for an order, its other edge.
var turned = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LSS: {">=", "<="}, token.GEQ: {"<", ">"},
	token.GTR: {"<=", ">="}, token.LEQ: {">", "<"},
}

// condition changes a condition, or each part of one. without is what a part
// has to be so that it is not there: true beside an &&, false beside an ||.
func (s *seeker) condition(e ast.Expr, without string) {
	if s.seen[e] {
		return
	}
	if s.seen == nil {
		s.seen = map[ast.Expr]bool{}
	}
	s.seen[e] = true
	switch x := e.(type) {
	case *ast.ParenExpr:
		s.condition(x.X, without)
		return
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND:
			s.condition(x.X, "true")
			s.condition(x.Y, "true")
			return
		case token.LOR:
			s.condition(x.X, "false")
			s.condition(x.Y, "false")
			return
		}
		for _, op := range turned[x.Op] {
			at := s.fset.Position(x.OpPos).Offset
			s.add(x, s.offset(x.Pos()), s.offset(x.End()),
				string(s.m.source[s.offset(x.Pos()):at])+op+string(s.m.source[at+len(x.Op.String()):s.offset(x.End())]))
		}
	case *ast.UnaryExpr:
		s.seen[x.X] = true
		s.add(x, s.offset(x.Pos()), s.offset(x.End()), string(s.m.source[s.offset(x.X.Pos()):s.offset(x.X.End())]))
	default:
		if id, ok := e.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
			return
		}
		s.add(e, s.offset(e.Pos()), s.offset(e.End()), "!"+string(s.m.source[s.offset(e.Pos()):s.offset(e.End())]))
	}
	if without != "" {
		s.add(e, s.offset(e.Pos()), s.offset(e.End()), without)
	}
}

func (s *seeker) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *seeker) add(e ast.Expr, from, to int, with string) {
	m := s.m
	m.line, m.from, m.to, m.with = s.fset.Position(e.Pos()).Line, from, to, with
	s.found = append(s.found, m)
}
