// Package pins reads and writes the lock file of a configuration: the SHA-256 of every file that its plugins are started
// from. The form is that of `sha256sum`, so that `sha256sum -c plugins.lock` checks it too:
//
//	9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  /opt/tape/holdfast-backend-tape
//
// Paths are absolute, and the lines are in their order.
package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"holdfast/ports"
)

// Name is what the file is called. It stands beside the configuration.
const Name = "plugins.lock"

// Pins has the SHA-256 in hex of each file, by its path.
type Pins map[string]string

var lineForm = regexp.MustCompile(`^(\\?)([0-9a-f]{64}) [ *](.+)$`)

// Read reads a lock file. One that is not there pins nothing.
func Read(file string) (Pins, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Pins{}, nil
	}
	if err != nil {
		return nil, ports.Errorf(ports.Unavailable, "", "the lock cannot be read: %v", err)
	}
	all := Pins{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		parts := lineForm.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil {
			return nil, ports.Errorf(ports.Invalid, "", "%s:%d is no line of a lock; look at the file, then write it anew with `holdfast plugin lock`", file, number)
		}
		name := parts[3]
		if parts[1] != "" {
			name = unescape.Replace(name)
		}
		all[name] = parts[2]
	}
	return all, nil
}

// Write replaces a lock file whole: whoever reads it finds the old one or the new one.
func (p Pins) Write(file string) error {
	if err := renameio.WriteFile(file, []byte(p.String()), 0o644); err != nil {
		return ports.Errorf(ports.Unavailable, "", "the lock cannot be written: %v", err)
	}
	return nil
}

// String is the text of the file. A name with a line break or a backslash in it is written as sha256sum does.
func (p Pins) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		mark, shown := "", name
		if strings.ContainsAny(name, "\\\n\r") {
			mark, shown = `\`, escape.Replace(name)
		}
		fmt.Fprintf(&b, "%s%s  %s\n", mark, p[name], shown)
	}
	return b.String()
}

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)
