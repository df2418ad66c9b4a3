package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast/internal/exitcode"
	"holdfast/plugins/templates"
	"holdfast/ports"
)

// pluginNew is `holdfast plugin new`.
type pluginNew struct {
	Name   string `arg:"" help:"What it is called: the KIND of its backend blocks."`
	Dir    string `arg:"" optional:"" help:"The folder to make. Without it NAME in the working directory."`
	Lang   string `default:"go" placeholder:"LANG" help:"go, node or python; without it go."`
	Source string `placeholder:"DIR" help:"The folder of the holdfast module, which a Go plugin is built with. Without it the one that this binary was built in, if that is beside it."`
}

func (pluginNew) Help() string {
	return "Writes a small, working backend that keeps history in memory and keeps the whole contract, for you to put a store of your own in the place of its map. Nothing is overwritten."
}

func (c pluginNew) Run(in *invocation) error {
	options := templates.Options{Name: c.Name, Lang: c.Lang, Source: c.Source}
	if c.Lang == templates.Go && c.Source == "" {
		source, err := moduleBeside(os.Executable())
		if err != nil {
			return exitcode.With(exitcode.Usage, fmt.Errorf("--source is missing: a Go plugin is built with the holdfast module, and that is not beside this binary (%w); give its folder with --source", err))
		}
		options.Source = source
	}
	files, err := templates.Render(options)
	if err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	dir := c.Dir
	if dir == "" {
		dir = c.Name
	}
	if err := templates.Write(dir, files); err != nil {
		return exitcode.With(exitcode.Failed, err)
	}
	for _, f := range files {
		fmt.Fprintf(in.stdout, "wrote %s\n", clean(filepath.Join(dir, f.Path)))
	}
	fmt.Fprintf(in.stdout, "\nNext:\n\n%s", indented(nextSteps(c.Name, c.Lang, dir)))
	return nil
}

// nextSteps are the commands that lead from a new project to a certified backend.
func nextSteps(name, lang, dir string) []string {
	plugin := map[string]string{
		templates.Go: "./" + before + name, templates.Node: "./plugin.js", templates.Python: "./plugin.py",
	}[lang]
	steps := []string{"cd " + dir}
	switch lang {
	case templates.Go:
		steps = append(steps, "go test ./...", "go build")
	case templates.Node:
		steps = append(steps, "npm install")
	case templates.Python:
		steps = append(steps, "python3 -c 'import grpc, google.protobuf'   # it needs both, from your system or from pip")
	}
	return append(steps, "holdfast plugin check "+plugin, "holdfast plugin explain "+plugin+"   # prints the block for holdfast.hcl")
}

func indented(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// moduleBeside finds the module that a binary was built in: the folder above the binary's own, or that one.
func moduleBeside(binary string, err error) (string, error) {
	if err == nil {
		binary, err = filepath.EvalSymlinks(binary)
	}
	if err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Dir(filepath.Dir(binary)), filepath.Dir(binary)} {
		if isHoldfast(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
	}
	return "", ports.Errorf(ports.NotFound, "", "%s is not below it", binary)
}

func isHoldfast(file string) bool {
	text, err := os.ReadFile(file)
	first, _, _ := strings.Cut(string(text), "\n")
	return err == nil && strings.TrimSpace(first) == "module holdfast"
}
