package sqlite

import (
	"encoding/json"
	"path/filepath"
	"time"

	"holdfast/ports"
)

const (
	defaultPath = "history.db"
	defaultBusy = 5 * time.Second
)

// options are the store's settings as data.
var options = []ports.Option{
	{
		Name: "path", Type: ports.OptionString, Default: defaultPath, Example: "/var/lib/holdfast/history.db",
		Help: "the database file, below the data directory unless absolute; its folder must exist, on a local disk",
	},
	{
		Name: "busy_timeout", Type: ports.OptionDuration, Default: defaultBusy.String(), Example: "10s",
		Help: "how long a write waits for another program that holds the file",
	},
}

type settings struct {
	path string
	busy time.Duration
}

// parseOptions checks the options; a refusal names the option.
func parseOptions(c ports.Configuration) (settings, error) {
	given := map[string]json.RawMessage{}
	if len(c.Options) > 0 {
		if err := json.Unmarshal(c.Options, &given); err != nil {
			return settings{}, ports.Errorf(ports.Invalid, "sqlite: configure", "options are not one object: %v", err)
		}
	}
	s := settings{path: defaultPath, busy: defaultBusy}
	for name, raw := range given {
		var text string
		switch name {
		case "path":
			if json.Unmarshal(raw, &text) != nil || text == "" {
				return settings{}, ports.InField(ports.Invalid, name, "is not the name of a file")
			}
			s.path = text
		case "busy_timeout":
			var err error
			if json.Unmarshal(raw, &text) == nil {
				s.busy, err = time.ParseDuration(text)
			}
			if text == "" || err != nil || s.busy < 0 || s.busy > time.Minute {
				return settings{}, ports.InField(ports.Invalid, name, "is not a duration from 0s to 1m, such as %q", defaultBusy)
			}
		default:
			return settings{}, ports.InField(ports.Invalid, name, "is unknown; there are path and busy_timeout")
		}
	}
	if !filepath.IsAbs(s.path) {
		s.path = filepath.Join(c.DataDir, s.path)
	}
	return s, nil
}
