package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/pins"
	"holdfast/ports"
)

// What the doctor looks at before anything runs: the files of the plugins, and what they say of themselves.

// lock looks at the pins. Without production they bind nobody.
func (c *checkup) lock(cfg *config.Config) {
	file := lockFile(cfg)
	_, err := pins.Read(file)
	_, absent := os.Stat(file)
	switch {
	case err != nil && cfg.Production:
		c.foundf(fails, "lock", "%v", err)
	case err != nil:
		c.foundf(warns, "lock", "%v", err)
	case errors.Is(absent, fs.ErrNotExist) && cfg.Production:
		c.foundf(fails, "lock", "%s is not there, and in production only what it has is started; look at the plugins, then `holdfast plugin lock`", file)
	case errors.Is(absent, fs.ErrNotExist):
	default:
		c.foundf(fine, "lock", "%s", file)
	}
}

// plugins asks every backend's plugin what it is. A follower's plugin that does not start fails, too: the host would serve
// without it, but the copy that somebody wanted is not made.
func (c *checkup) plugins(cfg *config.Config) {
	files := map[*config.Backend]error{}
	for _, b := range cfg.Backends {
		spec := process.Spec{Path: b.Plugin, Args: b.Args}
		_, files[b] = spec.Files()
	}
	there := slices.DeleteFunc(slices.Clone(cfg.Backends), func(b *config.Backend) bool { return files[b] != nil })
	answers := c.in.askAll(cfg, there, waitForAll)
	tables := map[*config.Backend][]ports.Option{}
	for _, b := range cfg.Backends {
		what, d := "plugin "+b.Name, answers[b]
		if files[b] != nil {
			c.foundf(fails, what, "%v", files[b])
			continue
		}
		if d.err != nil {
			c.foundf(fails, what, "does not start: %s", strings.ReplaceAll(d.err.Error(), "\n  ", " "))
			continue
		}
		if _, diags := checkedOne(cfg, b, d.Description); diags.HasErrors() {
			c.mistake(what, cfg.Err(diags))
			continue
		}
		tables[b] = d.Options
		c.foundf(fine, what, "%s", sentence(strings.TrimSpace(d.Kind+" "+d.Version), memoryText(b)))
		c.memory(what, b)
	}
	c.unfit(cfg, tables)
	if err := cfg.Err(cfg.CheckPlaces(tables)); err != nil {
		c.mistake("places", err)
	}
}

func memoryText(b *config.Backend) string {
	if b.Memory == config.NoMemoryLimit {
		return "memory without a limit"
	}
	return "memory up to " + config.FormatSize(b.Memory)
}

// memory says when a limit is none.
func (c *checkup) memory(what string, b *config.Backend) {
	switch has, known := machineMemory(); {
	case b.Memory == config.NoMemoryLimit:
		c.foundf(warns, what, "may take all memory of the machine from everybody; give its block a memory_limit")
	case known && b.Memory > has:
		c.foundf(warns, what, "may take %s, and the machine has %s; the system would kill something before the host does, so lower memory_limit", sizeText(b.Memory), sizeText(has))
	}
}

// unfit tells what would be refused in production, of the plugins that start without it. Each is started once more for that.
func (c *checkup) unfit(cfg *config.Config, tables map[*config.Backend][]ports.Option) {
	if cfg.Production {
		return
	}
	pinned := locked(cfg)
	faults := make([]error, len(cfg.Backends))
	var wg sync.WaitGroup
	for i, b := range cfg.Backends {
		spec := process.Spec{Kind: b.Kind, Path: b.Plugin, Args: b.Args, Memory: b.Memory, Strict: true}
		if _, starts := tables[b]; !starts {
			continue
		}
		if state := pinsOf(&spec, pinned); state == pinnedOthers || state == pinnedNone && len(pinned) > 0 {
			c.foundf(warns, "plugin "+b.Name, "its files are not those of the lock, which would be refused in production; see `holdfast plugin lock --check`")
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.in.ctx, describeTimeout)
			defer cancel()
			_, faults[i] = c.in.describe(ctx, spec)
		})
	}
	wg.Wait()
	for i, b := range cfg.Backends {
		if faults[i] != nil {
			c.foundf(warns, "plugin "+b.Name, "would be refused in production: %v", faults[i])
		}
	}
}
