package templates

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast/ports"
)

// A Go project is built with the holdfast module in a folder of this machine: it has no public home. What that module requires, the
// project requires too, in the same versions and with the same checksums, so that it builds at once and without a network.

const moduleName = "holdfast"

func goModule(o Options) ([]File, error) {
	const field = "source"
	if o.Source == "" {
		return nil, ports.InField(ports.Invalid, field, "is missing; name the folder of the holdfast module, which a Go plugin is built with")
	}
	source, err := filepath.Abs(o.Source)
	if err != nil {
		return nil, ports.InField(ports.Invalid, field, "%v", err)
	}
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return nil, ports.InField(ports.Invalid, field, "is not the folder of the holdfast module: %v", err)
	}
	name, version, requires := readModule(text)
	if name != moduleName {
		return nil, ports.InField(ports.Invalid, field, "%s holds the module %q, not %q", source, name, moduleName)
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return nil, ports.InField(ports.Invalid, field, "is not whole: %v", err)
	}
	var mod bytes.Buffer
	fmt.Fprintf(&mod, "module holdfast-backend-%s\n\ngo %s\n\nrequire %s v0.0.0\n\nreplace %s => %s\n\nrequire (\n", o.Name, version, moduleName, moduleName, quoted(source))
	for _, r := range requires {
		fmt.Fprintf(&mod, "\t%s // indirect\n", r)
	}
	mod.WriteString(")\n")
	return []File{{"go.mod", 0o644, mod.Bytes()}, {"go.sum", 0o644, sums}}, nil
}

// readModule reads the little that a go.mod written by `go mod tidy` has: its name, the version of Go and "path version" of each
// requirement.
func readModule(text []byte) (name, version string, requires []string) {
	inside := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "module":
			name = words[1]
		case len(words) == 2 && words[0] == "go":
			version = words[1]
		case len(words) == 2 && words[0] == "require" && words[1] == "(":
			inside = true
		case len(words) == 1 && words[0] == ")":
			inside = false
		case len(words) == 3 && words[0] == "require":
			requires = append(requires, words[1]+" "+words[2])
		case len(words) == 2 && inside:
			requires = append(requires, words[0]+" "+words[1])
		}
	}
	return name, version, requires
}

// quoted is a path as go.mod takes it: a word, or a string where it has a space or a quote.
func quoted(p string) string {
	if strings.ContainsAny(p, " \t\"'`()[]{},;") || strings.Contains(p, "//") {
		return fmt.Sprintf("%q", p)
	}
	return p
}
