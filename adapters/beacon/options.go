package beacon

import (
	"encoding/json"
	"time"

	"holdfast/ports"
)

// usualTimeout is below the 5 s that the host gives a Put: the backend says itself how far it came.
const (
	usualTimeout   = 4 * time.Second
	longestTimeout = time.Minute
)

// options are the backend's settings as data.
var options = []ports.Option{
	{
		Name: "beacon", Type: ports.OptionString, Example: "archive",
		Help: "the Name of the beacon that keeps the history; default: the first one that connects and offers the family, and then that one for as long as it is known",
	},
	{
		Name: "timeout", Type: ports.OptionDuration, Default: usualTimeout.String(), Example: "2s",
		Help: "how long the beacon may take for what is asked of it; the host itself waits 5s",
	},
}

type settings struct {
	beacon  string
	timeout time.Duration
}

// parseOptions checks the options; a refusal names the option.
func parseOptions(text json.RawMessage) (settings, error) {
	given := map[string]json.RawMessage{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &given); err != nil {
			return settings{}, ports.Errorf(ports.Invalid, "beacon: configure", "options are not one object: %v", err)
		}
	}
	s := settings{timeout: usualTimeout}
	for name, raw := range given {
		switch name {
		case "beacon":
			if json.Unmarshal(raw, &s.beacon) != nil {
				return settings{}, ports.InField(ports.Invalid, name, "is not the Name of a beacon; give a text, or leave it out for the first one that connects")
			}
		case "timeout":
			var text string
			var err error
			if json.Unmarshal(raw, &text) == nil {
				s.timeout, err = time.ParseDuration(text)
			}
			if text == "" || err != nil || s.timeout < 100*time.Millisecond || s.timeout > longestTimeout {
				return settings{}, ports.InField(ports.Invalid, name, "is not a duration from 100ms to %s, such as %q", longestTimeout, usualTimeout)
			}
		default:
			return settings{}, ports.InField(ports.Invalid, name, "is unknown; there are beacon and timeout")
		}
	}
	return s, nil
}
