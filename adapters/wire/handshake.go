package wire

import (
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"holdfast/ports"
)

// What host and plugin agree on before the first call. The contract in plugins/proto states the same for other languages.
const (
	CookieKey       = "HOLDFAST_PLUGIN"
	CookieValue     = "5d1c9b6e0f7a4c2d8e3b1a9f6c7d0e24"
	ProtocolVersion = 1         // of the service; the newest that is spoken here
	PluginName      = "backend" // the one thing that go-plugin is asked to dispense

	// LogLevelKey is the environment variable with the least level of the log lines that the host shows.
	LogLevelKey = "HOLDFAST_LOG_LEVEL"
)

// Version is one version of the service, from both sides.
type Version struct {
	Call  func(conn grpc.ClientConnInterface) Remote                             // the host's
	Serve func(r grpc.ServiceRegistrar, backend ports.Backend, log hclog.Logger) // the plugin's
}

// Remote is a backend behind a connection, whatever version of the service is spoken there.
type Remote interface {
	ports.LocalStore
	ports.Configurer
	ports.Pruner
	ports.Exporter
	ports.Surveyor
	ports.Drainer
}

// Versions has every version that is spoken here, by its number. The host offers them all and the plugin takes the highest
// that both know, so a new one stands beside the old ones for as long as there are plugins that know no other.
var Versions = map[int]Version{
	ProtocolVersion: {
		Call:  func(conn grpc.ClientConnInterface) Remote { return NewClient(conn) },
		Serve: Register,
	},
}
