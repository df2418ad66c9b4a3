package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
)

// pluginCommand is `holdfast plugin`: everything about plugins that needs no running host.
type pluginCommand struct {
	List    pluginList    `cmd:"" help:"List the plugins that are there, and what is wrong with them."`
	Explain pluginExplain `cmd:"" help:"Tell what a plugin is, what it can do and how it is configured."`
	Check   pluginCheck   `cmd:"" help:"Hold a plugin against the whole contract."`
	New     pluginNew     `cmd:"" help:"Begin a plugin of your own."`
	Lock    pluginLock    `cmd:"" help:"Pin the files of the plugins that the configuration uses."`
	Proto   pluginProto   `cmd:"" help:"Print the contract of plugins, backend.proto, for any language."`
}

// chosen is a plugin as somebody names it on the command line.
type chosen struct {
	Plugin string   `arg:"" name:"kind|path" help:"The kind of a plugin, or the path of its executable. A program in PATH will do, too: node."`
	Args   []string `arg:"" optional:"" help:"What the executable is started with, such as plugin.js. Put -- before arguments that begin with a dash."`
}

// before is how the executables of plugins begin in plugin_dir.
const before = "holdfast-backend-"

var kindForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// find gives what is meant: a path; or a kind, of a file in plugin_dir or of a backend in the configuration; or else a
// program in PATH.
func (c chosen) find(cfg *config.Config) (process.Spec, error) {
	spec := process.Spec{Path: c.Plugin, Args: c.Args}
	if strings.Contains(c.Plugin, "/") {
		return guarded(cfg, spec)
	}
	if kindForm.MatchString(c.Plugin) {
		spec.Kind, spec.Path = c.Plugin, filepath.Join(cfg.PluginDir, before+c.Plugin)
		if _, err := os.Stat(spec.Path); err == nil {
			return guarded(cfg, spec)
		}
		i := slices.IndexFunc(cfg.Backends, func(b *config.Backend) bool { return b.Kind == c.Plugin && b.Plugin != spec.Path })
		if i >= 0 && len(c.Args) == 0 {
			return specOf(cfg, cfg.Backends[i])
		}
	}
	if _, err := exec.LookPath(c.Plugin); err == nil {
		return guarded(cfg, process.Spec{Path: c.Plugin, Args: c.Args})
	}
	return process.Spec{}, exitcode.With(exitcode.Usage, c.unknown(cfg))
}

func (c chosen) unknown(cfg *config.Config) error {
	known, err := kindsIn(cfg.PluginDir)
	for _, b := range cfg.Backends {
		known = append(known, b.Kind)
	}
	slices.Sort(known)
	there := "there is none in plugin_dir"
	if known = slices.Compact(known); len(known) > 0 {
		there = "there is " + strings.Join(known, ", ")
	}
	if err != nil {
		there += "; plugin_dir cannot be read"
	}
	hint := ""
	if info, err := os.Stat(c.Plugin); err == nil && info.Mode().IsRegular() {
		hint = fmt.Sprintf("; for the file in this folder write ./%s", c.Plugin)
	}
	return fmt.Errorf("no plugin of the kind %q: %s (plugin_dir is %s)%s", c.Plugin, there, cfg.PluginDir, hint)
}

// kindsIn lists the kinds whose plugins are in a folder. One that is not there has none.
func kindsIn(dir string) (kinds []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		kind, isPlugin := strings.CutPrefix(e.Name(), before)
		if isPlugin && kindForm.MatchString(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// commandLine is a plugin as somebody would start it.
func commandLine(spec *process.Spec) string {
	return strings.Join(append([]string{spec.Path}, spec.Args...), " ")
}
