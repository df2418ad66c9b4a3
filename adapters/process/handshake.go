//go:build unix

package process

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// cookie is what tells a plugin that it was started by a host of its own.
var cookie = plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue}

// handshakeForm is what the one line looks like that matters among all that a program prints.
var handshakeForm = regexp.MustCompile(`^\d+\|\d+\|[a-z]+\|[^|]+(\||$)`)

// check says whether a handshake is one that we take.
func (o *output) check(line string) error {
	parts := strings.Split(strings.TrimSpace(line), "|")
	number := func(i int) int {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return -1 // more digits than a number has; it matches nothing
		}
		return n
	}
	refuse := func(format string, args ...any) error {
		return ports.InField(ports.Invalid, "plugin", format, args...)
	}
	protocol := "netrpc"
	if len(parts) > 4 {
		protocol = parts[4]
	}
	switch version := number(1); {
	case number(0) != plugin.CoreProtocolVersion:
		return refuse("speaks version %s of go-plugin's protocol, this holdfast speaks %d; build it with go-plugin 1.x", parts[0], plugin.CoreProtocolVersion)
	case slices.Contains(o.speaks, version):
	case version > slices.Max(o.speaks):
		return refuse("speaks protocol %s, this holdfast speaks %s; install a newer holdfast, or an older version of the plugin", parts[1], spell(o.speaks))
	default:
		return refuse("speaks protocol %s, this holdfast speaks %s; install a newer version of the plugin, or the older holdfast that it was made for", parts[1], spell(o.speaks))
	}
	switch {
	case protocol != "grpc":
		return refuse("speaks %q, a backend speaks grpc", protocol)
	case parts[2] != "unix":
		return refuse("listens on %s, where every user of the machine could call it; a backend listens on a unix socket in $%s", parts[2], plugin.EnvUnixSocketDir)
	case len(parts[3]) > maxSocketPath:
		return refuse("listens on a socket whose path has %d bytes, the limit is %d; give the socket a shorter name", len(parts[3]), maxSocketPath)
	case resolved(filepath.Dir(parts[3])) != resolved(o.folder):
		return refuse("listens on %s; a backend listens on a unix socket in $%s, which is %s", shown(parts[3]), plugin.EnvUnixSocketDir, o.folder)
	}
	return nil
}

// socketOf gives the path in a handshake that was taken.
func socketOf(line string) string { return strings.Split(line, "|")[3] }

// spell writes numbers as people read them: "1", "1 and 2", "1, 2 and 3".
func spell(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// describeNoise quotes what a program printed instead of a handshake.
func describeNoise(first string) string {
	if first == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q to stdout instead", shown(first))
}
