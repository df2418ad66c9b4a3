package main

import (
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/pins"
	"holdfast/ports"
)

// What is started for a backend, and what its files must be in production.

// specOf is what is started for a backend block.
func specOf(cfg *config.Config, b *config.Backend) (process.Spec, error) {
	return guarded(cfg, process.Spec{Kind: b.Kind, Path: b.Plugin, Args: b.Args, Memory: b.Memory})
}

// guarded adds what a configuration for production asks of every plugin. Without production any file is started, but for one
// that everybody may write to.
func guarded(cfg *config.Config, spec process.Spec) (process.Spec, error) {
	if !cfg.Production {
		return spec, nil
	}
	file, err := lockFile(cfg)
	if err != nil {
		return spec, err
	}
	all, err := pins.Read(file)
	if err != nil {
		return spec, err
	}
	spec.Strict, spec.Checksums = true, map[string]string{}
	for _, path := range startedFrom(&spec) {
		if sum, pinned := all[path]; pinned {
			spec.Checksums[path] = sum
		}
	}
	return spec, nil
}

// startedFrom gives the paths that a plugin's files have or would have: its executable and whatever its arguments may name.
func startedFrom(spec *process.Spec) []string {
	path := spec.Path
	if !strings.Contains(path, "/") {
		if found, err := exec.LookPath(path); err == nil {
			path = found
		}
	}
	var all []string
	for _, name := range append([]string{path}, spec.Args...) {
		if full, err := filepath.Abs(name); err == nil {
			all = append(all, full)
		}
	}
	return all
}

// lockFile is where the pins of a configuration stand. A running host keeps a file of that name in its data directory for
// itself, and empties it.
func lockFile(cfg *config.Config) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(cfg.File)) // of "" too: the working directory
	if err != nil {
		return "", err
	}
	if data, err := filepath.Abs(cfg.Data); err == nil && data == dir {
		return "", ports.Errorf(ports.Invalid, "", "the data directory %s is the folder of the configuration, where %s would be the lock of the running host; set data to a folder of its own", cfg.Data, pins.Name)
	}
	return filepath.Join(dir, pins.Name), nil
}
