package process

import (
	"fmt"
	"regexp"
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

// checkHandshake says whether a handshake is one that we take.
func checkHandshake(line string) error {
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
	switch {
	case number(0) != plugin.CoreProtocolVersion:
		return refuse("speaks version %s of go-plugin's protocol, this holdfast speaks %d; build it with go-plugin 1.x", parts[0], plugin.CoreProtocolVersion)
	case number(1) != wire.ProtocolVersion:
		return refuse("speaks protocol %s, this holdfast speaks %d; install the plugin that belongs to this holdfast", parts[1], wire.ProtocolVersion)
	case protocol != "grpc":
		return refuse("speaks %q, a backend speaks grpc", protocol)
	case parts[2] != "unix":
		return refuse("listens on %s, where every user of the machine could call it; a backend listens on a unix socket in $%s", parts[2], plugin.EnvUnixSocketDir)
	case len(parts[3]) > maxSocketPath:
		return refuse("listens on a socket whose path has %d bytes, the limit is %d; give the socket a shorter name", len(parts[3]), maxSocketPath)
	}
	return nil
}

// describeNoise quotes what a program printed instead of a handshake.
func describeNoise(first string) string {
	if first == "" {
		return ""
	}
	return fmt.Sprintf("; it printed %q to stdout instead", shown(first))
}
