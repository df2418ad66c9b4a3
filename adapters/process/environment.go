package process

import (
	"os"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/wire"
)

// passed is what of the host's environment a plugin sees. Everything else may hold secrets, and a plugin's own settings
// reach it by Configure.
var passed = []string{"PATH", "HOME", "TZ", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR"}

// environment is a plugin's whole environment; handshake is what go-plugin adds.
func environment(handshake []string, level hclog.Level) []string {
	env := append([]string{}, handshake...)
	for _, name := range passed {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return append(env, wire.LogLevelKey+"="+level.String())
}
