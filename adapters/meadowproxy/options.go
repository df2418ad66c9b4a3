package meadowproxy

import (
	"encoding/json"
	"time"

	"holdfast/ports"
)

// longestTimeout bounds what may be asked for.
const longestTimeout = 2 * time.Minute

// options are the backend's settings as data. Which beacon and which of its connections it is, the host's assignment says.
var options = []ports.Option{
	{
		Name: "timeout", Type: ports.OptionDuration, Default: usualTimeout.String(), Example: "2s",
		Help: "how long the databeacon may take for one request; the host itself waits 5s for a whole batch",
	},
}

type settings struct{ timeout time.Duration }

// parseOptions checks the options; a refusal names the option.
func parseOptions(text json.RawMessage) (settings, error) {
	given := map[string]json.RawMessage{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &given); err != nil {
			return settings{}, ports.Errorf(ports.Invalid, "meadowproxy: configure", "options are not one object: %v", err)
		}
	}
	s := settings{timeout: usualTimeout}
	for name, raw := range given {
		if name != "timeout" {
			return settings{}, ports.InField(ports.Invalid, name, "is unknown; there is timeout, and the databeacon is said by `holdfast assign BEACON CONNECTION`")
		}
		var text string
		var err error
		if json.Unmarshal(raw, &text) == nil {
			s.timeout, err = time.ParseDuration(text)
		}
		if text == "" || err != nil || s.timeout < 100*time.Millisecond || s.timeout > longestTimeout {
			return settings{}, ports.InField(ports.Invalid, name, "is not a duration from 100ms to %s, such as %q", longestTimeout, usualTimeout)
		}
	}
	return s, nil
}
