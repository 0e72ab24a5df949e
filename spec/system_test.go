package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reusecheck/reusecheck"
)

// ofOneSystem are the files that are about one system and say so: what a system
// is, the engine for packed states, and the commands that measure or prove one.
var ofOneSystem = map[string]bool{
	"spec/tcp.go": true, "spec/generate.go": true,
	"spec/udp.go": true, "spec/udpgenerate.go": true,
	"spec/timewait.go": true, "spec/timewaitgenerate.go": true,
	"explore/search.go":    true,
	"checker/benchbind.go": true,
	"checker/benchudp.go":  true,
	"checker/prove.go":     true,
	"checker/verdicts.go":  true,

	"checker/benchtimewait.go": true,
}

// TestNoEngineAsksWhichSystemItRuns reads the engines and the command line: what a
// system is, they ask its value.
func TestNoEngineAsksWhichSystemItRuns(t *testing.T) {
	read := 0
	for _, dir := range []string{".", "../explore", "../shrink", "../cmd/checker"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			abs, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			short := filepath.Base(filepath.Dir(abs)) + "/" + filepath.Base(name)
			if strings.HasSuffix(name, "_test.go") || ofOneSystem[short] {
				continue
			}
			read++
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range systemsNamed(f) {
				t.Errorf("%s asks for %s", set.Position(n.Pos()), n.Name)
			}
		}
	}
	if read < 60 {
		t.Errorf("%d files were read", read)
	}
}

// systemsNamed are the places at which a file names one system, or asks a family.
func systemsNamed(f *ast.File) (at []*ast.Ident) {
	inside := f.Name.Name == "spec"
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			if id, ok := n.(*ast.Ident); ok && inside && (id.Name == "TCP" || id.Name == "UDP" || id.Name == "TimeWait") {
				at = append(at, id)
			}
			return true
		}
		if s.Sel.Name == "IsUDP" {
			at = append(at, s.Sel)
		}
		of, _ := s.X.(*ast.Ident)
		switch {
		case of == nil:
			return true
		case of.Name == "spec" && (s.Sel.Name == "TCP" || s.Sel.Name == "UDP" || s.Sel.Name == "TimeWait"),
			(of.Name == "reusecheck" || of.Name == "rc") && (s.Sel.Name == "TCP" || s.Sel.Name == "UDP" || s.Sel.Name == "TimeWaitExit"):
			at = append(at, s.Sel)
		}
		return false // what is selected is of another package
	})
	return at
}

func TestAFamilyBelongsToTheSystemOfItsSockets(t *testing.T) {
	for f, want := range map[reusecheck.Family]*System{
		reusecheck.TCP4: TCP, reusecheck.TCP6: TCP, reusecheck.UDP4: UDP, reusecheck.UDP6: UDP,
	} {
		if got := OfFamily(f); got != want {
			t.Errorf("%s is of %s", f, got.Name)
		}
	}
}
