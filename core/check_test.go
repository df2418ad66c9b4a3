package core

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"holdfast/ports"
)

// refused takes a line in as the API does, and gives the refusal; nil when it is accepted.
func refused(line []byte) *ports.Error {
	c, err := ParseCall(line)
	if err == nil && c.Action.IsWrite() {
		_, err = check(&c)
	}
	return ports.AsError(err)
}

// both writes a line with Action before Settings, and behind.
func both(action ports.Action, settings string) [][]byte {
	return [][]byte{
		fmt.Appendf(nil, `{"Action":%q,"Settings":%s}`, action, settings),
		fmt.Appendf(nil, `{"Settings":%s,"Action":%q}`, settings, action),
	}
}

func TestTheDoorRefusesWithTheFieldTheLimitAndTheSize(t *testing.T) {
	t.Parallel()
	key := func(n int) string { return strings.Repeat("é", n) }
	deep := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	for name, c := range map[string]struct {
		action      ports.Action
		settings    string
		code        ports.Code
		field       string
		limit, size int64
	}{
		"a key at its limit":     {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"` + key(512) + `"}}`, "", "", 0, 0},
		"a key over its limit":   {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"` + key(513) + `"}}`, ports.TooLarge, "WorkItem.WorkItemHash", 512, 513},
		"an escaped key":         {ports.UpdateWorkItem, `{"WorkItemHash":"` + strings.Repeat(`\ud83d\ude00`, 513) + `","Patch":{}}`, ports.TooLarge, "WorkItemHash", 512, 513},
		"a run's key":            {ports.RemoveManifest, `{"RunHash":"` + key(513) + `"}`, ports.TooLarge, "RunHash", 512, 513},
		"a GUID":                 {ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventGUID":"` + key(513) + `"}}`, ports.TooLarge, "Event.EventGUID", 512, 513},
		"a NUL":                  {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a\u0000b"}}`, ports.Invalid, "WorkItem.WorkItemHash", 0, 0},
		"a lone surrogate":       {ports.UpsertManifest, `{"Manifest":{"Hash":"a\udc00"}}`, ports.Invalid, "Manifest.Hash", 0, 0},
		"an empty key":           {ports.AppendEvent, `{"Event":{"WorkItemHash":""}}`, ports.Invalid, "Event.WorkItemHash", 0, 0},
		"no key":                 {ports.InsertAttempt, `{"Attempt":{}}`, ports.Invalid, "Attempt.WorkItemHash", 0, 0},
		"a null key":             {ports.UpdateWorkItem, `{"WorkItemHash":null,"Patch":{}}`, ports.Invalid, "WorkItemHash", 0, 0},
		"a number as key":        {ports.RemoveManifest, `{"RunHash":7}`, ports.Invalid, "RunHash", 0, 0},
		"no record":              {ports.UpsertWorkItem, `{}`, ports.Invalid, "WorkItem", 0, 0},
		"a null record":          {ports.AppendEvent, `{"Event":null}`, ports.Invalid, "Event", 0, 0},
		"a list as record":       {ports.UpsertManifest, `{"Manifest":[]}`, ports.Invalid, "Manifest", 0, 0},
		"no patch":               {ports.UpdateAttemptOutcome, `{"WorkItemHash":"a","AttemptNumber":1}`, ports.Invalid, "Patch", 0, 0},
		"a member twice":         {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Status":1,"Status":2}}`, ports.Invalid, "WorkItem.Status", 0, 0},
		"an own member twice":    {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Own":1,"\u004fwn":2}}`, ports.Invalid, "WorkItem.Own", 0, 0},
		"a member twice, inside": {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Settings":{"b":1,"b":2}}}`, "", "", 0, 0},
		"depth at its limit":     {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Deep":` + deep(399) + `}}`, "", "", 0, 0},
		"depth over its limit":   {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Deep":` + deep(400) + `}}`, ports.Invalid, "WorkItem", 400, 401},
		"a manifest, too deep":   {ports.UpsertManifest, `{"Manifest":{"Hash":"a","Deep":` + deep(5000) + `}}`, ports.Invalid, "Manifest", 400, 401},
		"another hash":           {ports.UpdateWorkItem, `{"WorkItemHash":"a","Patch":{"WorkItemHash":"b"}}`, ports.Invalid, "Patch.WorkItemHash", 0, 0},
		"the same hash":          {ports.UpdateWorkItem, `{"WorkItemHash":"a","Patch":{"WorkItemHash":"\u0061"}}`, "", "", 0, 0},
		"another number":         {ports.UpdateAttemptOutcome, `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{"AttemptNumber":2}}`, ports.Invalid, "Patch.AttemptNumber", 0, 0},
		"the same number":        {ports.UpdateAttemptOutcome, `{"WorkItemHash":"a","AttemptNumber":2,"Patch":{"AttemptNumber":2}}`, "", "", 0, 0},
		"number 0":               {ports.InsertAttempt, `{"Attempt":{"WorkItemHash":"a","AttemptNumber":0}}`, "", "", 0, 0},
		"number 1.5":             {ports.InsertAttempt, `{"Attempt":{"WorkItemHash":"a","AttemptNumber":1.5}}`, ports.Invalid, "Attempt.AttemptNumber", 0, 0},
		"number x":               {ports.InsertAttempt, `{"Attempt":{"WorkItemHash":"a","AttemptNumber":"x"}}`, ports.Invalid, "Attempt.AttemptNumber", 0, 0},
		"number 1.5, patched":    {ports.UpdateAttemptOutcome, `{"WorkItemHash":"a","AttemptNumber":1.5,"Patch":{}}`, ports.Invalid, "AttemptNumber", 0, 0},
		"no member of ours":      {ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a"},"QueueMetadata":{"b":1,"b":2},"WorkItemHash":7}`, "", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range both(c.action, c.settings) {
				e := refused(line)
				switch {
				case e == nil && c.code == "":
				case e == nil:
					t.Errorf("it is accepted: %.100s", line)
				case e.Code != c.code || e.Field != c.field || e.Limit != c.limit || e.Size != c.size:
					t.Errorf("it is %s in %q (%d of %d): %v\n%.100s", e.Code, e.Field, e.Size, e.Limit, e, line)
				}
			}
		})
	}
}

func TestARecordOfTheLargestSizeIsAcceptedAndOneByteMoreIsNot(t *testing.T) {
	t.Parallel()
	frame := len(`{"WorkItemHash":"a","Result":""}`)
	settings := make([]byte, 0, ports.MaxRecordBytes+1000)
	for _, more := range []int{0, 1} {
		settings = append(settings[:0], `{"WorkItem":{"WorkItemHash":"a","Result":"`...)
		settings = append(settings, bytes.Repeat([]byte("x"), ports.MaxRecordBytes-frame+more)...)
		settings = append(settings, `"},"QueueMetadata":{"beside":"it does not count"}}`...)
		c, err := check(&Call{Action: ports.UpsertWorkItem, Settings: settings})
		e := ports.AsError(err)
		switch {
		case more == 0 && (e != nil || len(c.entry.Record) != ports.MaxRecordBytes):
			t.Errorf("%d bytes: %v", len(c.entry.Record), e)
		case more == 1 && (e == nil || e.Code != ports.TooLarge || e.Field != "WorkItem" || e.Limit != ports.MaxRecordBytes || e.Size != ports.MaxRecordBytes+1):
			t.Errorf("one byte more: %v", e)
		}
	}
}

func TestALineThatIsNoCallIsRefused(t *testing.T) {
	t.Parallel()
	for line, field := range map[string]string{
		``:      "",
		`7`:     "",
		`{`:     "",
		`[{}]`:  "",
		`{} {}`: "",
		"{\"Action\":\"QP_UpsertWorkItem\",\"Settings\":{\"a\":\"\xff\"}}": "",
		`{"Action":"QP_UpsertWorkItem","Settings":{"a":01}}`:               "",
		`{"Settings":{}}`:                                                        "Action",
		`{"Action":7,"Settings":{}}`:                                             "Action",
		`{"Action":"QP_Nothing","Settings":{}}`:                                  "Action",
		`{"Action":"QP_UpsertWorkItem"}`:                                         "Settings",
		`{"Action":"QP_UpsertWorkItem","Settings":[]}`:                           "Settings",
		`{"Action":"QP_UpsertWorkItem","Settings":{},"Settings":{}}`:             "Settings",
		`{"Action":"QP_UpsertWorkItem","Action":"QP_AppendEvent"}`:               "Action",
		`{"Action":"` + strings.Repeat("long", 100) + `","Settings":{}}`:         "Action",
		`{"Deep":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`: "",
	} {
		e := refused([]byte(line))
		if e == nil || e.Code != ports.Invalid || e.Field != field {
			t.Errorf("%.80s: %v", line, e)
		} else if len(e.Error()) > 600 {
			t.Errorf("%.80s: the reason has %d bytes", line, len(e.Error()))
		}
	}
	long := append([]byte(`{"Action":"`), make([]byte, ports.MaxLineBytes)...)
	if e := refused(long); e == nil || e.Code != ports.TooLarge || e.Field != "line" || e.Limit != ports.MaxLineBytes || e.Size != int64(len(long)) {
		t.Errorf("a line that is too long: %v", e)
	}
}

func TestARefusedWriteIsCountedAndNeverJournaled(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{}}`), Refused)
		// What a hub sends again must not end its sweep.
		a := s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"IDBeaconWorkItem":7}}`), RefusedQuietly)
		if !a.Success() || !a.Failed() || a.HTTPStatus() != 200 {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
		imported := call(ports.UpdateWorkItem, `{"WorkItemHash":"","Patch":{}}`)
		imported.Source.Import = true
		s.does(imported, RefusedQuietly)
		if f := s.host.Status().Families[0]; f.Writes.Refused != 3 || f.Head != 0 {
			t.Errorf("the family is %+v", f)
		}
	})
}

func TestTheMarksOfAHubsStoreAreTakenOff(t *testing.T) {
	t.Parallel()
	engine := `"GUIDBeaconWorkItem":"x","CreateDate":"d","CreatingIDUser":0,"UpdateDate":"d","UpdatingIDUser":0,"Deleted":0,"DeleteDate":null,"DeletingIDUser":0`
	for _, c := range []struct {
		action         ports.Action
		settings, want string
		class          ports.Class
	}{
		{ports.UpsertWorkItem, `{"WorkItem":{"IDBeaconWorkItem":7,"WorkItemHash":"a","Status":"x",` + engine + `,"Own":{ "b":1}}}`, `{"WorkItemHash":"a","Status":"x","Own":{ "b":1}}`, ports.Reflush},
		{ports.UpsertManifest, `{"Manifest":{"Hash":"m","Live":false,"Output":[ ]}}`, `{"Hash":"m","Output":[ ]}`, ports.Reflush},
		{ports.UpsertManifest, `{"Manifest":{"Hash":"m","Live":null}}`, `{"Hash":"m"}`, ports.Reflush},
		{ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a", "CreateDate" : "d"}}`, `{"WorkItemHash":"a", "CreateDate" : "d"}`, ports.Live},
		{ports.UpdateWorkItem, `{"WorkItemHash":"a","Patch":{"IDBeaconWorkItem":7}}`, `{"IDBeaconWorkItem":7}`, ports.Live},
	} {
		made, err := check(&Call{Action: c.action, Settings: []byte(c.settings)})
		if err != nil || string(made.entry.Record) != c.want || made.entry.Class != c.class {
			t.Errorf("%s %s\nbecomes %s %s: %v\nwant    %s %s", c.action, c.settings, made.entry.Class, made.entry.Record, err, c.class, c.want)
		}
	}
}

func TestAttemptNumbersBelowOneAreOne(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]int64{`0`: 1, `-7`: 1, `null`: 1, `1`: 1, `12`: 12, `9223372036854775807`: 1<<63 - 1} {
		for action, settings := range map[ports.Action]string{
			ports.InsertAttempt:        `{"Attempt":{"WorkItemHash":"a","AttemptNumber":` + number + `}}`,
			ports.UpdateAttemptOutcome: `{"WorkItemHash":"a","AttemptNumber":` + number + `,"Patch":{}}`,
		} {
			made, err := check(&Call{Action: action, Settings: []byte(settings)})
			if err != nil || made.entry.Number != want {
				t.Errorf("%s %s: %d: %v", action, settings, made.entry.Number, err)
			}
		}
	}
}
