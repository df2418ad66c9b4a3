package config

import (
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
)

// Config is the whole configuration, every value in effect.
type Config struct {
	File      string // the file it was read from; "" for none
	Listen    string // host:port
	Data      string // the data directory
	Ack       string // AckLocal or AckJournaled
	Route     []string
	PluginDir string
	LogLevel  string // trace, debug, info, warn or error
	LogJSON   bool
	// Production wants every plugin's files pinned, and writable by nobody else.
	Production bool
	Journal    Journal
	Retention  time.Duration // finished history older than this is pruned; 0 keeps it for ever
	Backends   []*Backend    // in the order of the file; exactly one is Local
	Tokens     []Token
	TLS        TLS
	Mesh       Mesh

	places  map[string]place // of settings and of other values in the file, by name
	binary  string
	lookup  func(string) (string, bool)
	sources map[string][]byte // file contents by name, for snippets
	shown   map[string]bool   // option names: may a snippet show the value?
}

// When a write is acknowledged.
const (
	AckLocal     = "local"     // when the local store decided it
	AckJournaled = "journaled" // when the journal holds it
)

// Journal bounds the journals of both families, each by itself. 0 stands for "auto": the journal decides by its disk.
type Journal struct {
	Limit   int64 // bytes at most
	Reserve int64 // bytes of free disk that intake leaves alone
}

// Backend is one backend block.
type Backend struct {
	Kind   string
	Name   string
	Local  bool   // it is the local store
	Plugin string // path of the executable
	Args   []string
	Memory int64 // bytes that the plugin and its children may hold together

	Retention time.Duration // of its own, of one that is not the local store; 0 keeps everything

	body   hcl.Body             // the options, not checked yet
	where  hcl.Range            // the block's header
	ranges map[string]hcl.Range // of the host's own attributes that stand in the block
	own    bool                 // stands in the operator's file, not in the defaults
}

// Token lets callers in.
type Token struct {
	Name   string
	Role   string // RoleRead, RoleWrite or RoleAdmin
	Secret Secret
}

// What a token may do; each role includes those before it.
const (
	RoleRead  = "read"
	RoleWrite = "write"
	RoleAdmin = "admin"
)

// Secret is a text that never shows by accident: every way to print it gives stars.
type Secret string

const hidden = "***"

func (Secret) String() string               { return hidden }
func (Secret) GoString() string             { return hidden }
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal gives the secret itself.
func (s Secret) Reveal() string { return string(s) }

// Followers are the backends that are kept equal to the local store: all others, in the order of the file.
func (c *Config) Followers() []*Backend {
	return slices.DeleteFunc(slices.Clone(c.Backends), func(b *Backend) bool { return b.Local })
}

// LocalBackend is the backend with local = true; nil only when the diagnostics of Load have errors.
func (c *Config) LocalBackend() *Backend {
	i := slices.IndexFunc(c.Backends, func(b *Backend) bool { return b.Local })
	if i < 0 {
		return nil
	}
	return c.Backends[i]
}

// Loopback says whether only this machine can reach the listen address.
func (c *Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Scheme is what the listener speaks: "http" or "https".
func (c *Config) Scheme() string {
	if c.TLS.On() {
		return "https"
	}
	return "http"
}

// URL is where a client on this machine reaches the host.
func (c *Config) URL() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return c.Scheme() + "://" + c.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return c.Scheme() + "://" + net.JoinHostPort(host, port)
}

// pluginPath is where the executable of a kind is when the block does not say.
func (c *Config) pluginPath(kind string) string {
	return filepath.Join(c.PluginDir, "holdfast-backend-"+kind)
}
