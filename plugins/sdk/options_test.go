package sdk_test

import (
	"encoding/json"
	"testing"
	"time"

	"holdfast/plugins/sdk"
	"holdfast/ports"
)

func TestOptionsFillAStructAndRefuseByName(t *testing.T) {
	t.Parallel()
	type options struct {
		Drive string       `json:"drive"`
		Wait  sdk.Duration `json:"wait"`
		Size  int64        `json:"size"`
		Fast  bool         `json:"fast"`
	}
	defaults := options{Drive: "/dev/st0", Wait: sdk.Duration(time.Second)}
	for _, c := range []struct {
		given  string
		want   options
		refuse string
	}{
		{"", defaults, ""},
		{"{}", defaults, ""},
		{`{"drive":"/dev/st1","wait":"250ms","size":9007199254740993,"fast":true}`, options{"/dev/st1", sdk.Duration(250 * time.Millisecond), 9007199254740993, true}, ""},
		{`{"wait":"soon"}`, defaults, `wait: must be a duration such as "250ms"`},
		{`{"size":"12"}`, defaults, "size: is a string, it must be a int64"},
		{`{"drive":7}`, defaults, "drive: is a number, it must be a string"},
		{`{"pace":7}`, defaults, "pace: is unknown"},
		{"[]", defaults, "the options are not one object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
	} {
		got := defaults
		err := sdk.Options(ports.Configuration{Options: json.RawMessage(c.given)}, &got)
		if c.refuse == "" && (err != nil || got != c.want) {
			t.Errorf("%s gives %+v, %v", c.given, got, err)
		}
		if c.refuse != "" && (err == nil || err.Error() != c.refuse || ports.CodeOf(err) != ports.Invalid) {
			t.Errorf("%s is refused with %v", c.given, err)
		}
	}
}
