package imports

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "holdfast/"

// rule says what the packages at a place of the tree may import of this module. The first rule that fits a package holds;
// in patterns "*" is one folder, and a pattern also covers what is below it.
type rule struct {
	importer string
	allowed  []string
	why      string
}

var rules = []rule{
	{"ports", []string{"ports"}, "ports is the vocabulary and imports only the standard library"},
	{"core", []string{"core", "ports"}, "core holds the rules and reaches the world only through ports"},
	{"adapters/wire", []string{"adapters/wire", "ports", "plugins/proto"}, "wire translates between ports and the protocol"},
	{"adapters/process", []string{"adapters/process", "ports", "adapters/wire"}, "process is a driven adapter that speaks the wire"},
	{"adapters/httpapi", []string{"adapters/httpapi", "core", "ports"}, "httpapi is a driving adapter"},
	{"adapters/mesh", []string{"adapters/mesh", "core", "ports"}, "mesh is a driving and a driven adapter"},
	{"adapters/sqlite", []string{"adapters/sqlite", "adapters/line", "adapters/tables", "ports"}, "a store that decides on tables shares the line in front of its writer and what stands in its columns with the others"},
	{"adapters/postgres", []string{"adapters/postgres", "adapters/line", "adapters/tables", "ports"}, "a store that decides on tables shares the line in front of its writer and what stands in its columns with the others"},
	{"adapters/*", []string{"adapters/SELF", "ports"}, "a driven adapter knows only ports"},
	{"plugins/proto", []string{"plugins/proto"}, "the protocol stands for itself"},
	{"plugins/sdk", []string{"plugins/sdk", "ports", "adapters/wire", "plugins/proto", "internal/heap"}, "the SDK is what authors outside of this module get"},
	{"plugins/conformance", []string{"plugins/conformance", "ports"}, "the suite knows only ports"},
	{"plugins/templates/*", []string{"plugins/sdk", "ports"}, "a template is a project of somebody outside of this module"},
	{"plugins/templates", []string{"plugins/templates", "plugins/proto", "ports"}, "what renders projects knows the contract that it puts into them"},
	{"plugins/*", []string{"plugins/SELF", "plugins/sdk", "adapters/*"}, "a plugin is one adapter and the SDK"},
	{"internal/hostile", []string{"internal/hostile", "ports", "adapters/wire", "adapters/sqlite", "plugins/proto", "plugins/sdk"}, "the hostile plugin is a plugin, whatever it does"},
	{"internal", []string{"internal", "ports"}, "internal serves cmd and tests, and knows at most ports"},
	{"cmd", []string{"cmd/SELF", "core", "ports", "adapters", "plugins", "internal"}, "cmd wires everything, but nobody imports cmd"},
}

// testsMayAlso is what test files may import beyond their package's rule: real parts, the suite and the test kit.
var testsMayAlso = []string{"ports", "core", "adapters", "plugins", "internal"}

func TestPackagesImportOnlyWhatTheLayoutAllows(t *testing.T) {
	t.Parallel()
	files := sources(t, filepath.Join("..", ".."))
	if len(files) < 20 {
		t.Fatalf("only %d files were found", len(files))
	}
	for _, f := range files {
		for _, complaint := range f.check() {
			t.Error(complaint)
		}
	}
}

// The rule must be able to fail.
func TestForbiddenImportsAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, imported string
		allowed        bool
	}{
		{"ports/backend.go", "encoding/json", true},
		{"ports/backend.go", "github.com/google/uuid", false},
		{"ports/backend.go", "holdfast/core", false},
		{"ports/backend_test.go", "github.com/google/go-cmp/cmp", true},
		{"core/door.go", "holdfast/ports", true},
		{"core/door.go", "holdfast/adapters/journal", false},
		{"core/door.go", "holdfast/internal/config", false},
		{"core/door_test.go", "holdfast/adapters/journal", true},
		{"core/door.go", "os/exec", false},
		{"core/door.go", "database/sql", false},
		{"adapters/wire/row.go", "holdfast/plugins/proto/backendv1", true},
		{"adapters/sqlite/commit.go", "holdfast/ports", true},
		{"adapters/sqlite/commit.go", "holdfast/adapters/sqlite/ddl", true},
		{"adapters/sqlite/commit.go", "holdfast/adapters/tables", true},
		{"adapters/beacon/read.go", "holdfast/adapters/tables", false},
		{"adapters/tables/layout.go", "holdfast/adapters/sqlite", false},
		{"adapters/sqlite/commit.go", "holdfast/adapters/journal", false},
		{"adapters/sqlite/commit.go", "holdfast/adapters/wire", false},
		{"adapters/process/launch.go", "holdfast/adapters/wire", true},
		{"adapters/httpapi/api.go", "holdfast/core", true},
		{"adapters/httpapi/api.go", "holdfast/adapters/process", false},
		{"plugins/sdk/serve.go", "holdfast/adapters/wire", true},
		{"plugins/sdk/serve.go", "holdfast/adapters/process", false},
		{"plugins/sqlite/main.go", "holdfast/adapters/sqlite", true},
		{"plugins/sqlite/main.go", "holdfast/core", false},
		{"plugins/conformance/put.go", "holdfast/ports", true},
		{"plugins/conformance/put.go", "holdfast/adapters/wire", false},
		{"internal/config/load.go", "holdfast/core", false},
		{"cmd/host/serve.go", "holdfast/adapters/httpapi", true},
		{"cmd/host/serve.go", "holdfast/cmd/other", false},
		{"core/door_test.go", "holdfast/cmd/host", false},
		{"elsewhere/x.go", "holdfast/ports", false},
	} {
		got := source{file: c.file, imports: []string{c.imported}}.check()
		if (len(got) == 0) != c.allowed {
			t.Errorf("%s importing %s: %v, want allowed = %v", c.file, c.imported, got, c.allowed)
		}
	}
	two := source{file: "plugins/sqlite/main.go", imports: []string{"holdfast/adapters/sqlite", "holdfast/adapters/postgres"}}
	if len(two.check()) == 0 {
		t.Error("a plugin with two adapters passed")
	}
}

// source is one Go file with what it imports.
type source struct {
	file    string // below the module, with slashes
	imports []string
}

// check gives one sentence for each import that breaks the rule.
func (s source) check() (complaints []string) {
	dir := path.Dir(s.file)
	isTest := strings.HasSuffix(s.file, "_test.go")
	i := slices.IndexFunc(rules, func(r rule) bool { return within(dir, r.importer) })
	if i < 0 {
		return []string{fmt.Sprintf("%s: no rule says what %s may import; give it one in this test", s.file, dir)}
	}
	allowed := slices.Clone(rules[i].allowed)
	for j, pattern := range allowed {
		allowed[j] = strings.Replace(pattern, "SELF", element(dir, 1), 1)
	}
	if isTest {
		allowed = append(allowed, testsMayAlso...)
	}
	var adapters []string
	for _, imported := range s.imports {
		inner, ours := strings.CutPrefix(imported, module)
		fault := ""
		switch {
		case ours && !slices.ContainsFunc(allowed, func(pattern string) bool { return within(inner, pattern) }):
			fault = rules[i].why
		case ours && within(inner, "adapters/*") && !slices.Contains(adapters, element(inner, 1)):
			adapters = append(adapters, element(inner, 1))
		case !ours && !isTest && within(dir, "ports") && strings.Contains(element(imported, 0), "."):
			fault = rules[i].why
		case !ours && !isTest && within(dir, "core") && slices.Contains(outside, imported):
			fault = "core does no I/O; a port stands between"
		}
		if fault != "" {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", s.file, imported, fault))
		}
	}
	if rules[i].importer == "plugins/*" && !isTest && len(adapters) > 1 {
		complaints = append(complaints, fmt.Sprintf("%s imports the adapters %v: %s", s.file, adapters, rules[i].why))
	}
	return complaints
}

// outside is the I/O of the standard library, which core leaves to adapters. The names of HTTP's status codes are no I/O.
var outside = []string{"os", "os/exec", "net", "database/sql", "syscall"}

// within says whether a folder is the one of a pattern or below it.
func within(dir, pattern string) bool {
	parts, wanted := strings.Split(dir, "/"), strings.Split(pattern, "/")
	if len(parts) < len(wanted) {
		return false
	}
	for i, want := range wanted {
		if want != "*" && want != parts[i] {
			return false
		}
	}
	return true
}

func element(name string, i int) string {
	parts := strings.Split(name, "/")
	if i >= len(parts) {
		return ""
	}
	return parts[i]
}

// sources reads the imports of every Go file of the module, whatever its build tags.
func sources(t *testing.T, root string) (all []source) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if d.IsDir() {
			if below != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || below == "plugins/templates" || isModule(name) && below != ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(below, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{file: below}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isModule says whether a folder is a module of its own, whose imports are its own affair.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
