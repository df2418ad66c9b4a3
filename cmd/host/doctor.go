package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/internal/config"
	"holdfast/internal/exitcode"
)

// doctorCommand is `holdfast doctor`: it looks at everything that has to be right, and says what to do about what is not.
type doctorCommand struct{}

func (doctorCommand) Help() string {
	return "The exit code is 1 when something fails; a warning is no failure."
}

// The verdicts of a finding.
const (
	fine  = "ok"
	warns = "warn"
	fails = "fail"
)

// checkup collects findings.
type checkup struct {
	in     *invocation
	failed int
}

func (c *checkup) foundf(verdict, what, format string, args ...any) {
	if verdict == fails {
		c.failed++
	}
	fmt.Fprintf(c.in.stdout, "%-5s %-18s %s\n", verdict, what, clean(fmt.Sprintf(format, args...)))
}

func (doctorCommand) Run(in *invocation) error {
	c := checkup{in: in}
	cfg, err := in.load(nil)
	if err != nil {
		c.mistake("config", err)
	} else {
		c.config(cfg)
		c.data(cfg)
		c.lock(cfg)
		c.plugins(cfg)
	}
	if err == nil || in.Server != "" {
		c.host(cfg)
	}
	if c.failed > 0 {
		return exitcode.With(exitcode.Failed, fmt.Errorf("%s failed", counted(int64(c.failed), "check")))
	}
	return nil
}

func (c *checkup) config(cfg *config.Config) {
	if cfg.File == "" {
		c.foundf(fine, "config", "the defaults, without a file")
		return
	}
	c.foundf(fine, "config", "%s", cfg.File)
}

// data looks at the data directory and the room on its disk.
func (c *checkup) data(cfg *config.Config) {
	dir := cfg.Data
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			c.foundf(fails, "data", "%s is no directory; set data to one", dir)
			return
		}
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(dir) == dir {
			c.foundf(fails, "data", "%v", err)
			return
		}
		dir = filepath.Dir(dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		c.foundf(fails, "data", "%s cannot be written to by user %d (%v); give it to the user that runs holdfast", dir, os.Getuid(), err)
		return
	}
	if dir != filepath.Clean(cfg.Data) {
		c.foundf(fine, "data", "%s will be made when the host starts", cfg.Data)
	} else {
		c.foundf(fine, "data", "%s can be written to", cfg.Data)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		c.foundf(warns, "disk", "%s does not tell its free space: %v", dir, err)
		return
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // its type differs between systems
	switch reserve := cfg.Journal.Reserve; {
	case free < reserve:
		c.foundf(fails, "disk", "%s free, less than the reserve of %s: writes are answered full; free some space or prune", sizeText(free), sizeText(reserve))
	case free < 4*reserve:
		c.foundf(warns, "disk", "%s free; below %s writes are answered full", sizeText(free), sizeText(reserve))
	default:
		c.foundf(fine, "disk", "%s free", sizeText(free))
	}
}

// mistake tells of a mistake in the configuration in one line.
func (c *checkup) mistake(what string, err error) {
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if second, _, more := strings.Cut(rest, "\n"); more {
		first += ": " + second
	}
	c.foundf(fails, what, "%s (see `holdfast config check`)", first)
}
