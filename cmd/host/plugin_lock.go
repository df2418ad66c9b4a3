package main

import (
	"fmt"
	"maps"
	"slices"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/internal/pins"
)

// pluginLock is `holdfast plugin lock`.
type pluginLock struct {
	Check bool `help:"Change nothing; say what differs from the lock, and exit with 1 when something does."`
}

func (pluginLock) Help() string {
	return "Writes the SHA-256 of every file that the configuration's plugins are started from, executables and files among their args, to plugins.lock beside the configuration file (in the working directory without one), in the form of sha256sum: `sha256sum -c plugins.lock` checks it, too. With `production = true` only such files are started. What an interpreted plugin imports by itself is not in it. Look at the files before you lock them."
}

func (c pluginLock) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	file := lockFile(cfg)
	now, err := sumsOf(cfg)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	then, err := pins.Read(file)
	if err != nil && c.Check {
		return err
	}
	different := differences(then, now)
	for _, line := range different {
		fmt.Fprintln(in.stdout, clean(line))
	}
	switch {
	case c.Check && len(different) > 0:
		return exitcode.With(exitcode.Failed, fmt.Errorf("%s from %s; look at the files, then `holdfast plugin lock`", counted(int64(len(different)), "difference"), file))
	case c.Check:
		fmt.Fprintf(in.stdout, "ok: %s as %s says\n", counted(int64(len(now)), "file"), file)
		return nil
	}
	if err := now.Write(file); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	fmt.Fprintf(in.stdout, "locked %s in %s\n", counted(int64(len(now)), "file"), file)
	return nil
}

// sumsOf reads the files of every plugin that the configuration uses.
func sumsOf(cfg *config.Config) (pins.Pins, error) {
	all := pins.Pins{}
	for _, b := range cfg.Backends {
		spec := process.Spec{Path: b.Plugin, Args: b.Args}
		files, err := spec.Files()
		if err != nil {
			return nil, cfg.Err(cfg.Refusal(b, err))
		}
		for _, path := range files {
			if all[path], err = process.Sum(path); err != nil {
				return nil, cfg.Err(cfg.Refusal(b, err))
			}
		}
	}
	return all, nil
}

// differences tells what became of the files since they were locked, a line each.
func differences(then, now pins.Pins) (lines []string) {
	paths := maps.Clone(now)
	maps.Copy(paths, then)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, locked := then[path]
		is, used := now[path]
		switch {
		case !locked:
			lines = append(lines, "new      "+path)
		case !used:
			lines = append(lines, "unused   "+path)
		case was != is:
			lines = append(lines, "changed  "+path)
		}
	}
	return lines
}
