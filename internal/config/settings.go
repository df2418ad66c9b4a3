package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is one value of the host. Its text form is the same in the environment, in a flag and, but for lists, truth
// values and numbers, in the file.
type setting struct {
	name     string // in the file; "journal.limit" stands in the block journal
	form     form
	fallback string // the default
	set      func(c *Config, text string) error
	get      func(c *Config) string
}

// form is what a value looks like in the file.
type form string

const (
	formText form = "text in quotes"
	formList form = `a list such as ["databeacon", "local"]`
	formBool form = "true or false"
	formSize form = `a size such as "64MiB" or a number of bytes`
)

// settings is every setting of the host, in the order of `config show`.
var settings = []setting{
	{"listen", formText, "127.0.0.1:8420", setListen, func(c *Config) string { return c.Listen }},
	{"data", formText, "data", setData, func(c *Config) string { return c.Data }},
	{"ack", formText, AckLocal, oneOf(func(c *Config) *string { return &c.Ack }, AckLocal, AckJournaled), func(c *Config) string { return c.Ack }},
	{"route", formList, "local", setRoute, func(c *Config) string { return strings.Join(c.Route, ",") }},
	{"plugin_dir", formText, "", setPluginDir, func(c *Config) string { return c.PluginDir }},
	{"production", formBool, "false", truth(func(c *Config) *bool { return &c.Production }), func(c *Config) string { return strconv.FormatBool(c.Production) }},
	{"log_level", formText, "info", oneOf(func(c *Config) *string { return &c.LogLevel }, "trace", "debug", "info", "warn", "error"), func(c *Config) string { return c.LogLevel }},
	{"log_json", formBool, "false", truth(func(c *Config) *bool { return &c.LogJSON }), func(c *Config) string { return strconv.FormatBool(c.LogJSON) }},
	{"journal.limit", formSize, auto, size(func(c *Config) *int64 { return &c.Journal.Limit }), func(c *Config) string { return formatSize(c.Journal.Limit) }},
	{"journal.reserve", formSize, auto, size(func(c *Config) *int64 { return &c.Journal.Reserve }), func(c *Config) string { return formatSize(c.Journal.Reserve) }},
	{"tls.cert", formText, "", path(func(c *Config) *string { return &c.TLS.Cert }), func(c *Config) string { return c.TLS.Cert }},
	{"tls.key", formText, "", path(func(c *Config) *string { return &c.TLS.Key }), func(c *Config) string { return c.TLS.Key }},
	{"mesh.name", formText, "holdfast", setMeshName, func(c *Config) string { return c.Mesh.Name }},
	{"mesh.join", formText, "", setJoin, func(c *Config) string { return c.Mesh.Join }},
	{"mesh.join_ca", formText, "", path(func(c *Config) *string { return &c.Mesh.JoinCA }), func(c *Config) string { return c.Mesh.JoinCA }},
	{"mesh.as", formText, "", setAs, func(c *Config) string { return c.Mesh.As }},
	{"mesh.join_user", formText, "", setJoinUser, func(c *Config) string { return c.Mesh.JoinUser }},
	{"retention", formText, "8760h", setRetention, func(c *Config) string { return formatRetention(c.Retention) }},
}

// env is the variable that overrides a setting, flag the option of the command line.
func (s setting) env() string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(s.name, ".", "_"))
}
func (s setting) flag() string { return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(s.name) }

func setListen(c *Config, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf(`%q is not an address; write host:port, such as "127.0.0.1:8420"`, text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no usable port; it is a number from 0 to 65535", text)
	}
	c.Listen = text
	return nil
}

func setData(c *Config, text string) error {
	if text == "" {
		return errors.New("the data directory has no name")
	}
	c.Data = text
	return nil
}

func setPluginDir(c *Config, text string) error {
	if text != "" {
		c.PluginDir = text
		return nil
	}
	binary := c.binary
	if binary == "" {
		path, err := os.Executable()
		if err != nil {
			return fmt.Errorf("the place of the binary is unknown (%w); set plugin_dir", err)
		}
		binary = path
	}
	if target, err := filepath.EvalSymlinks(binary); err == nil {
		binary = target
	}
	c.PluginDir = filepath.Join(filepath.Dir(binary), "plugins")
	return nil
}

func setMeshName(c *Config, text string) error {
	if !nameForm.MatchString(text) {
		return fmt.Errorf(`%q is not a name; names are of letters, digits, "-", "_" and ".", at most 64`, text)
	}
	c.Mesh.Name = text
	return nil
}

// setRoute takes the names; whether they are known is checked when all backends are.
func setRoute(c *Config, text string) error {
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if slices.Contains(names, "") {
		return errors.New(`the route needs names of backends, at least "local"`)
	}
	c.Route = names
	return nil
}

func truth(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*field(c) = yes
		return nil
	}
}

const off = "off"

func setRetention(c *Config, text string) (err error) {
	keep, err := parseRetention(text)
	if err == nil {
		c.Retention = keep
	}
	return err
}

// parseRetention reads how long history is kept; 0 is for ever.
func parseRetention(text string) (time.Duration, error) {
	if text == off {
		return 0, nil
	}
	d, err := ParseDuration(text)
	if err == nil && d <= 0 {
		err = fmt.Errorf(`%q keeps nothing; write "off" to keep history for ever`, text)
	}
	return d, err
}

func formatRetention(d time.Duration) string {
	if d == 0 {
		return off
	}
	return FormatDuration(d)
}

func oneOf(field func(*Config) *string, values ...string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if err := choice(text, values); err != nil {
			return err
		}
		*field(c) = text
		return nil
	}
}

// auto leaves a size to the journal, which knows its disk.
const auto = "auto"

func size(field func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text == auto {
			*field(c) = 0
			return nil
		}
		n, err := ParseSize(text)
		if err != nil {
			return err
		}
		if n == 0 {
			return errors.New(`it cannot be 0; write "auto" to leave it to the disk`)
		}
		*field(c) = n
		return nil
	}
}

func formatSize(bytes int64) string {
	if bytes == 0 {
		return auto
	}
	return FormatSize(bytes)
}
