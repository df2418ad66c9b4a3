package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
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

const doctorTimeout = 10 * time.Second

func (doctorCommand) Run(in *invocation) error {
	c := checkup{in: in}
	cfg, err := in.load(nil)
	if err != nil {
		c.mistake("config", err)
	} else {
		c.config(cfg)
		c.data(cfg)
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

// plugins asks every backend's plugin what it is. A follower's plugin that does not start fails, too: the host would serve
// without it, but the copy that somebody wanted is not made.
func (c *checkup) plugins(cfg *config.Config) {
	files := map[*config.Backend]error{}
	for _, b := range cfg.Backends {
		files[b] = pluginFault(b.Plugin)
	}
	startable := slices.DeleteFunc(slices.Clone(cfg.Backends), func(b *config.Backend) bool { return files[b] != nil })
	answers := c.in.askAll(cfg, startable, waitForAll)
	tables := map[*config.Backend][]ports.Option{}
	for _, b := range cfg.Backends {
		what, d := "plugin "+b.Name, answers[b]
		if files[b] != nil {
			c.foundf(fails, what, "%v", files[b])
			continue
		}
		if d.err != nil {
			c.foundf(fails, what, "%s does not start: %v", b.Plugin, d.err)
			continue
		}
		if _, diags := checkedOne(cfg, b, d.Description); diags.HasErrors() {
			c.mistake(what, cfg.Err(diags))
			continue
		}
		tables[b] = d.Options
		c.foundf(fine, what, "%s", strings.TrimSpace(d.Kind+" "+d.Version))
	}
	if err := cfg.Err(cfg.CheckPlaces(tables)); err != nil {
		c.mistake("places", err)
	}
}

// pluginFault says why a plugin cannot even be tried.
func pluginFault(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w; build the plugins, or set plugin_dir or plugin", err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable; chmod +x", path)
	}
	return nil
}

// mistake tells of a mistake in the configuration in one line.
func (c *checkup) mistake(what string, err error) {
	first, rest, _ := strings.Cut(err.Error(), "\n")
	if second, _, more := strings.Cut(rest, "\n"); more {
		first += ": " + second
	}
	c.foundf(fails, what, "%s (see `holdfast config check`)", first)
}

// host asks the running host, or looks whether one could listen. cfg is nil when only --server says where it is.
func (c *checkup) host(cfg *config.Config) {
	host, err := c.in.client()
	if err != nil {
		c.foundf(fails, "host", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(c.in.ctx, doctorTimeout)
	defer cancel()
	s, _, err := host.status(ctx, false)
	switch {
	case errors.Is(err, errUnreachable) && c.in.Server != "":
		c.foundf(fails, "host", "%v", err)
	case errors.Is(err, errUnreachable):
		c.port(cfg)
	case err != nil:
		c.foundf(fails, "host", "%v", err)
	case !s.Ready:
		c.foundf(fails, "host", "answers at %s, but is not ready: %s", host.base, s.Detail)
		c.status(&s)
	default:
		c.foundf(fine, "host", "answers at %s, version %s, up %s", host.base, cmp.Or(s.Version, "unknown"), s.Uptime)
		c.status(&s)
	}
}

// port says whether a host could listen.
func (c *checkup) port(cfg *config.Config) {
	l, err := new(net.ListenConfig).Listen(c.in.ctx, "tcp", cfg.Listen)
	if err != nil {
		c.foundf(fails, "listen", "no host answers at %s, and another program is there or it cannot be listened at: %v", cfg.URL(), err)
		return
	}
	_ = l.Close() // it was only a trial
	c.foundf(fine, "listen", "%s is free; no host runs there (`holdfast serve` starts one)", cfg.Listen)
}

// maxBacklog and maxAge are from where on a backlog is worth a word.
const (
	maxBacklog = 1000
	maxAge     = 10 * time.Second
)

func (c *checkup) status(s *hostStatus) {
	for i := range s.Families {
		f := &s.Families[i]
		c.family(strings.ToLower(string(f.Family)), f)
	}
	for _, b := range s.Backends {
		verdict := warns
		switch {
		case b.State == "bootstrapped":
			verdict = fine
		case b.Local || b.State == "error":
			verdict = fails
		}
		words := slices.DeleteFunc([]string{b.State, b.Detail, b.Remedy}, func(word string) bool { return word == "" })
		c.foundf(verdict, "backend "+b.Name, "%s", strings.Join(words, "; "))
	}
}

func (c *checkup) family(name string, f *core.FamilyStatus) {
	switch j := &f.Journal; {
	case j.Fault != "":
		c.foundf(fails, "journal "+name, "takes no writes: %s", j.Fault)
	case j.Full:
		c.foundf(fails, "journal "+name, "is full with %s of %s; free disk space, raise journal.limit, or see why the local store does not take the backlog", sizeText(j.Bytes), sizeText(j.Limit))
	case len(j.Damaged) > 0:
		c.foundf(warns, "journal "+name, "set damaged files aside: %s; look at the disk, then delete them", strings.Join(j.Damaged, ", "))
	default:
		c.foundf(fine, "journal "+name, "%s of %s", sizeText(j.Bytes), sizeText(j.Limit))
	}
	if age := time.Duration(f.OldestMs) * time.Millisecond; f.Backlog > maxBacklog || age > maxAge {
		c.foundf(warns, "backlog "+name, "%s, the oldest %s old; the local store does not keep up, see its backend", counted(int64(f.Backlog), "write"), ageText(age))
	} else {
		c.foundf(fine, "backlog "+name, "%s", counted(int64(f.Backlog), "write"))
	}
	if f.SetAside > 0 {
		c.foundf(warns, "set aside "+name, "%s; see `holdfast unsettled list`", counted(int64(f.SetAside), "write"))
	}
	if len(f.Lost) > 0 {
		c.foundf(warns, "lost "+name, "writes were lost, see Lost in `holdfast status --json`")
	}
}
