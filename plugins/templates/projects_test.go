package templates_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"holdfast/adapters/process"
	"holdfast/internal/languages"
	"holdfast/plugins/conformance"
	"holdfast/plugins/templates"
	"holdfast/ports"
)

func project(t *testing.T, o templates.Options) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files, err := templates.Render(o)
	if err == nil {
		err = templates.Write(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheProjectsKeepTheContract(t *testing.T) {
	for _, lang := range []string{templates.Node, templates.Python} {
		t.Run(lang, func(t *testing.T) {
			dir := project(t, templates.Options{Name: "tape", Lang: lang})
			var tool languages.Tool
			script := "plugin.py"
			if lang == templates.Node {
				tool, script = languages.Node(t), "plugin.js"
			} else {
				tool = languages.Python(t)
			}
			languages.Install(t, dir)
			conformance.Run(t, conformance.Subject{
				Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
					p, err := process.New(process.Spec{Name: "tape", Kind: "tape", Path: tool.Command, Args: []string{filepath.Join(dir, script)}, Config: c})
					if err != nil {
						return nil, err
					}
					p.Start()
					if err := p.Await(ctx); err != nil {
						_ = p.Close()
						return nil, err
					}
					return p, nil
				},
				Kill: func(b ports.Backend) { b.(*process.Process).Kill(); _ = b.Close() },
			})
		})
	}
}
