package sdk

import (
	"os"
	"sync"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/wire"
)

// stderr is the process's own, which the host reads; Serve lets go-plugin put another in its place.
var stderr = os.Stderr

// Logger is where a plugin logs: what is written appears in the host's log under the backend's name, with its level, and the
// last lines in `holdfast status` after a death. Secrets and record bodies do not belong there.
var Logger = sync.OnceValue(func() hclog.Logger {
	level := hclog.LevelFromString(os.Getenv(wire.LogLevelKey))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	return hclog.New(&hclog.LoggerOptions{Level: level, Output: stderr, JSONFormat: true})
})
