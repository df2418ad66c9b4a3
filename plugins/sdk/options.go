package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// Options puts the options of a configuration into a struct whose fields have their names as `json` tags. What is not given
// keeps its value, so defaults stand in the struct before. A value of another type, and a name that no field has, is refused
// with Invalid and the option's name.
//
//	o := struct {
//		Drive string       `json:"drive"`
//		Wait  sdk.Duration `json:"wait"`
//	}{Wait: sdk.Duration(5 * time.Second)}
//	if err := sdk.Options(c, &o); err != nil {
//		return err
//	}
func Options(c ports.Configuration, into any) error {
	given := map[string]json.RawMessage{}
	if len(c.Options) > 0 {
		if err := json.Unmarshal(c.Options, &given); err != nil {
			return ports.Errorf(ports.Invalid, "", "the options are not one object: %v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: given[name]})
		if err != nil {
			return ports.Wrap(ports.Internal, "options", err)
		}
		reader := json.NewDecoder(bytes.NewReader(one))
		reader.DisallowUnknownFields()
		if err := reader.Decode(into); err != nil {
			return ports.InField(ports.Invalid, name, "%s", wrong(err))
		}
	}
	return nil
}

// wrong says why a value does not fit, without the value.
func wrong(err error) string {
	if kind, mismatch := errors.AsType[*json.UnmarshalTypeError](err); mismatch {
		return "is a " + kind.Value + ", it must be a " + kind.Type.String()
	}
	if strings.Contains(err.Error(), "unknown field") {
		return "is unknown"
	}
	return err.Error()
}

// Duration is a time.Duration in an options struct; it comes as text such as "250ms".
type Duration time.Duration

func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return ports.Errorf(ports.Invalid, "", `must be a duration such as "250ms"`)
	}
	*d = Duration(parsed)
	return nil
}
