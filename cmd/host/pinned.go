package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/pins"
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
	file := lockFile(cfg)
	if _, err := pins.Read(file); err != nil {
		return spec, err
	}
	spec.Strict, spec.Beside = true, []string{file}
	spec.Checksums = func() (map[string]string, error) {
		if _, err := os.Lstat(file); err == nil { // who may write the lock may pin what he likes
			if err := process.CheckKeepers([]string{file}, true); err != nil {
				return nil, err
			}
		}
		all, err := pins.Read(file)
		if err != nil {
			return nil, err
		}
		sums := map[string]string{}
		for _, path := range startedFrom(&spec) {
			if sum, pinned := all[path]; pinned {
				sums[path] = sum
			}
		}
		return sums, nil
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

// lockFile is where the pins of a configuration stand: beside its file, or in the working directory without one.
func lockFile(cfg *config.Config) string {
	name := filepath.Join(filepath.Dir(cfg.File), pins.Name)
	if full, err := filepath.Abs(name); err == nil {
		return full // for people: the name says all by itself
	}
	return name
}
