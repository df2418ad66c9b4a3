package stock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestValuesAreTakenAsTheEngineTakesThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 129)
	big := strings.Repeat("y", 65536)
	stored := func(column, as string) want { return want{200, `"` + column + `":` + as} }
	cases := []struct {
		name, column, sent      string
		sqlite, postgres, mysql want
	}{
		{"a number in a text", "RetryAfter", "1767225600000", stored("RetryAfter", `"1767225600000.0"`), stored("RetryAfter", `"1767225600000"`), stored("RetryAfter", `"1767225600000"`)},
		{"true", "CancelRequested", "true", stored("CancelRequested", "1"), stored("CancelRequested", "true"), stored("CancelRequested", "1")},
		{"1 as a boolean", "CancelRequested", "1", stored("CancelRequested", "1"), stored("CancelRequested", "true"), stored("CancelRequested", "1")},
		{"a share", "Health", "0.745", stored("Health", "0.745"), stored("Health", `"0.75"`), stored("Health", `"0.75"`)},
		{"a whole share", "Health", "1", stored("Health", "1"), stored("Health", `"1.00"`), stored("Health", `"1.00"`)},
		{"no share", "Health", "null", stored("Health", "null"), stored("Health", "null"), stored("Health", "null")},
		{"null where a text may be missing", "Result", "null", stored("Result", "null"), stored("Result", "null"), stored("Result", "null")},
		{"null where a text must be", "RunID", "null", want{500, "NOT NULL constraint failed: UVQueueWorkItem.RunID"}, want{500, "23502"}, want{500, "ER_BAD_NULL_ERROR"}},
		{"an object", "Result", `{"a": [1]}`, want{500, "Provided value cannot be bound to SQLite parameter"}, stored("Result", `"{\"a\":[1]}"`), stored("Result", `"[object Object]"`)},
		{"an object in an object", "Settings", `{}`, want{500, "ERR_INVALID_ARG_TYPE"}, stored("Settings", `"{}"`), stored("Settings", `"[object Object]"`)},
		{"an unknown column", "StalledAt", `"x"`, want{500, "table UVQueueWorkItem has no column named StalledAt"}, want{500, "42703"}, want{500, "ER_BAD_FIELD_ERROR"}},
		{"a text that is too long", "RunID", strconv.Quote(long), stored("RunID", strconv.Quote(long)), want{500, "22001"}, want{500, "ER_DATA_TOO_LONG"}},
		{"characters count, not bytes", "RunID", strconv.Quote(strings.Repeat("\u6f22", 128)), want{200, ""}, want{200, ""}, want{200, ""}},
		{"a text over 65535 bytes", "Result", strconv.Quote(big), want{200, ""}, want{200, ""}, want{500, "ER_DATA_TOO_LONG"}},
		{"NUL", "Result", `"a\u0000b"`, stored("Result", `"a\u0000b"`), want{500, "22021"}, stored("Result", `"a\u0000b"`)},
		{"an integer beyond 32 bits", "QueueWaitMs", "3000000000", stored("QueueWaitMs", "3000000000"), want{500, "22003"}, want{500, "ER_WARN_DATA_OUT_OF_RANGE"}},
		{"an integer beyond 53 bits", "QueueWaitMs", "1152921504606846976", want{500, "ERR_OUT_OF_RANGE"}, want{500, "22003"}, want{500, "ER_WARN_DATA_OUT_OF_RANGE"}},
		{"a text in an integer", "Priority", `"x"`, stored("Priority", `"x"`), want{500, "22P02"}, want{500, "ER_TRUNCATED_WRONG_VALUE_FOR_FIELD"}},
		{"a fraction in an integer", "Priority", "1.5", stored("Priority", "1.5"), want{500, "22P02"}, stored("Priority", "2")},
		{"trailing spaces", "RunID", `"r "`, stored("RunID", `"r "`), stored("RunID", `"r "`), stored("RunID", `"r"`)},
		{"a date of the caller's", "CreateDate", `"1999-01-01"`, want{200, `"CreateDate":"20`}, want{200, `"CreateDate":"20`}, want{200, `"CreateDate":"20`}},
	}
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		for i, c := range cases {
			w := map[Manner]want{SQLite: c.sqlite, Postgres: c.postgres, MySQL: c.mysql}[m]
			body := fmt.Sprintf(`{"WorkItemHash":"wi-%d",%q:%s}`, i, c.column, c.sent)
			w.check(t, c.name, call(t, d, "POST", base+"UVQueueWorkItem", body))
		}
	})
}

func TestWhatARowIsNotGivenHasTheTablesDefaults(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		row := post(t, d, base+"UVQueueWorkItem", `{"WorkItemHash":"wi","IDUVQueueWorkItem":77}`)
		health := map[Manner]any{SQLite: 0.0, Postgres: "0.00", MySQL: "0.00"}[m]
		canceled := map[Manner]any{SQLite: 0.0, Postgres: false, MySQL: 0.0}[m]
		for name, wanted := range map[string]any{"IDUVQueueWorkItem": 1.0, "Status": "", "Settings": "", "MaxAttempts": 0.0, "Health": health, "CancelRequested": canceled, "Deleted": 0.0} {
			if row[name] != wanted {
				t.Errorf("%s is %v, want %v", name, row[name], wanted)
			}
		}
		layout := map[Manner]int{SQLite: len("2026-01-02 03:04:05"), Postgres: len(isoMillis), MySQL: len(isoMillis)}[m]
		if date, _ := row["CreateDate"].(string); len(date) != layout {
			t.Errorf("CreateDate is %q", date)
		}
	})
}

func TestUniqueKeysAreKeptAsTheEngineComparesThem(t *testing.T) {
	t.Parallel()
	refusals := map[Manner]string{
		SQLite:   `"UNIQUE constraint failed: UVQueueWorkItem.WorkItemHash","Code":"ERR_SQLITE_ERROR"`,
		Postgres: `"duplicate key value violates unique constraint \"IX_UVQueueWorkItem_Hash\"","Code":"23505"`,
		MySQL:    `for key 'IX_UVQueueWorkItem_Hash'","Code":"ER_DUP_ENTRY"`,
	}
	cases := []struct {
		one, two string
		alike    []Manner
	}{
		{"same", "same", manners},
		{"case", "CASE", []Manner{MySQL}},
		{"spaces", "spaces ", []Manner{MySQL}},
		{"accent", "\u00e1ccent", []Manner{MySQL}},
		{"emoji \U0001F600", "emoji \U0001F47B", []Manner{MySQL}},
		{"other 1", "other 2", nil},
	}
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		for _, c := range cases {
			post(t, d, base+"UVQueueWorkItem", string(encode(map[string]any{"WorkItemHash": c.one})))
			w := want{status: 200}
			if slices.Contains(c.alike, m) {
				w = want{500, refusals[m]}
			}
			w.check(t, c.two, call(t, d, "POST", base+"UVQueueWorkItem", string(encode(map[string]any{"WorkItemHash": c.two}))))
		}
	})
}

func TestARefusedRowUsesUpAnIdentityOnServers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		post(t, d, base+"UVQueueWorkItem", `{"WorkItemHash":"wi-1"}`)
		want{status: 500}.check(t, "again", call(t, d, "POST", base+"UVQueueWorkItem", `{"WorkItemHash":"wi-1"}`))
		row := post(t, d, base+"UVQueueWorkItem", `{"WorkItemHash":"wi-2"}`)
		wanted := map[Manner]float64{SQLite: 2, Postgres: 3, MySQL: 3}[m]
		if row["IDUVQueueWorkItem"] != wanted {
			t.Errorf("the identity is %v, want %v", row["IDUVQueueWorkItem"], wanted)
		}
	})
}

func TestBodiesThatAreNoRecord(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	item := base + "UVQueueWorkItem"
	for _, c := range []struct {
		method, path, body string
		want               want
	}{
		{"POST", item, "", want{500, "a valid record is required"}},
		{"POST", item, "7", want{500, "a valid record is required"}},
		{"POST", item, "{", want{400, `{"code":"InvalidContent","message":`}},
		{"POST", item, `[{"WorkItemHash":"lost"}]`, want{200, `"WorkItemHash":""`}}, // a row of defaults
		{"POST", item + "s", `{"WorkItemHash":"x"}`, want{500, "a valid array of records"}},
		{"PUT", item, `{"Status":"X"}`, want{500, `"Automated update missing default identifier","StatusCode":500`}},
		{"PUT", item, `{"IDUVQueueWorkItem":0,"Status":"X"}`, want{400, "a valid record ID is required"}},
		{"PUT", item, `{"IDUVQueueWorkItem":-1,"Status":"X"}`, want{400, "a valid record ID is required"}},
		{"PUT", item, `{"IDUVQueueWorkItem":99,"Status":"X"}`, want{404, `{"Error":"Record not Found","StatusCode":404,"Record":`}},
		{"PUT", item, `{"IDUVQueueWorkItem":1,"Nope":"X"}`, want{500, `"no such column: Nope"`}},
		{"PUT", item, `{"IDUVQueueWorkItem":1,"Result":{}}`, want{500, "SQLite parameter 1."}},
		{"PUT", item + "/1", `{"Status":"Y"}`, want{200, `"Status":"Y"`}},
		{"PATCH", item + "/1", `{"Status":"Z"}`, want{200, `"Status":"Z"`}},
		{"PUT", item + "/99", `{"Status":"Z"}`, want{404, "Record not Found"}},
		{"DELETE", item, `{}`, want{500, "a valid record ID is required"}},
		{"DELETE", item, `{"IDUVQueueWorkItem":1}`, want{200, `{"Count":1}`}},
	} {
		c.want.check(t, c.method+" "+c.path+" "+c.body, call(t, d, c.method, c.path, c.body))
	}
}

func TestAPutChangesOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ Manner, d *Databeacon, base string) {
		before := post(t, d, base+"UVQueueWorkItem", `{"WorkItemHash":"wi","RunID":"r","Status":"Pending"}`)
		a := call(t, d, "PUT", base+"UVQueueWorkItem", `{"IDUVQueueWorkItem":1,"Status":"Running","CreateDate":"1999-01-01"}`)
		after := decode[map[string]any](t, a.Body)
		if after["Status"] != "Running" || after["RunID"] != "r" || after["CreateDate"] != before["CreateDate"] {
			t.Errorf("%v became %v", before, after)
		}
	})
}

func TestADeletedRowIsOutOfSightAndKeepsItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ Manner, d *Databeacon, base string) {
		item := base + "UVQueueWorkItem"
		post(t, d, item, `{"WorkItemHash":"wi"}`)
		for _, c := range []struct {
			method, path, body string
			want               want
		}{
			{"DELETE", item + "/1", "", want{200, `{"Count":1}`}},
			{"DELETE", item + "/1", "", want{404, `"Record not found."`}},
			{"GET", item + "/1", "", want{404, `"Record not Found"`}},
			{"GET", item + "s", "", want{200, "[]"}},
			{"GET", item + "s/By/WorkItemHash/wi", "", want{200, "[]"}},
			{"GET", item + "s/Count", "", want{200, `{"Count":0}`}},
			{"PUT", item, `{"IDUVQueueWorkItem":1,"Status":"X"}`, want{404, "Record not Found"}},
			{"POST", item, `{"WorkItemHash":"wi"}`, want{500, "IX_UVQueueWorkItem_Hash"}},
			{"GET", item + "s/FilteredTo/FBV~Deleted~EQ~1", "", want{200, `"WorkItemHash":"wi"`}},
			{"GET", item + "s/FilteredTo/FBV~WorkItemHash~EQ~wi~FBV~Deleted~GE~0", "", want{200, `"WorkItemHash":"wi"`}},
			{"GET", item + "/Undelete/1", "", want{200, `{"Count":1}`}},
			{"GET", item + "/Undelete/1", "", want{404, "Record not found."}},
			{"PUT", item, `{"IDUVQueueWorkItem":1,"Status":"X"}`, want{200, `"Status":"X"`}},
		} {
			if strings.Contains(c.want.text, "IX_") && d.options.Manner == SQLite {
				c.want.text = "UNIQUE constraint failed"
			}
			c.want.check(t, c.method+" "+c.path, call(t, d, c.method, c.path, c.body))
		}
	})
}

func TestABulkCallIsA200WhateverBecomesOfItsRows(t *testing.T) {
	t.Parallel()
	bare := map[Manner]string{
		SQLite:   `"Error":{"code":"ERR_SQLITE_ERROR","errcode":2067,"errstr":"constraint failed"}`,
		Postgres: `"code":"23505","detail":"Key (\"WorkItemHash\")=(wi-1) already exists."`,
		MySQL:    `"Error":{"code":"ER_DUP_ENTRY","errno":1062,"sql":"...","sqlState":"23000","sqlMessage":"Duplicate entry 'wi-1' for key 'IX_UVQueueWorkItem_Hash'"}`,
	}
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		items := base + "UVQueueWorkItems"
		a := call(t, d, "POST", items, `[{"WorkItemHash":"wi-1"},{"WorkItemHash":"wi-1","Status":"S"},{"WorkItemHash":"wi-2"},{"WorkItemHash":"wi-3","Nope":1}]`)
		want{200, bare[m]}.check(t, "bulk post", a)
		rows := decode[[]map[string]any](t, a.Body)
		if len(rows) != 4 {
			t.Fatalf("%d elements", len(rows))
		}
		for i, failed := range []bool{false, true, false, true} {
			if (rows[i]["Error"] != nil) != failed || (rows[i]["IDUVQueueWorkItem"] == nil) != failed {
				t.Errorf("element %d is %v", i, rows[i])
			}
		}
		if len(rows[1]) != 3 || rows[1]["Status"] != "S" {
			t.Errorf("a refused element is %v, want what was sent with an error", rows[1])
		}
		a = call(t, d, "PUT", items, `[{"IDUVQueueWorkItem":1,"Status":"Running"},{"IDUVQueueWorkItem":99,"Status":"Lost"},{"IDUVQueueWorkItem":1,"Nope":1}]`)
		rows = decode[[]map[string]any](t, a.Body)
		if a.Status != 200 || len(rows) != 3 || rows[0]["Status"] != "Running" || len(rows[1]) != 1 || rows[2]["Status"] != "Running" || rows[2]["Error"] == nil {
			t.Errorf("bulk put: %d %s", a.Status, a.Body)
		}
		want{200, `{"Error":{"StatusCode":404,"SuppressSoftwareTrace":true}}`}.check(t, "bulk put", a)
	})
}

func TestABulkErrorCanBeExplained(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{Explained: true})
	a := call(t, d, "POST", base+"UVQueueWorkItems", `[{"WorkItemHash":"wi"},{"WorkItemHash":"wi"}]`)
	want{200, `"Error":{"Error":"UNIQUE constraint failed: UVQueueWorkItem.WorkItemHash","Code":"ERR_SQLITE_ERROR"`}.check(t, "bulk", a)
}

func TestAnUpsertKnowsNoKeyButTheIdentity(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	item := base + "UVQueueWorkItem"
	for _, c := range []struct {
		path, body string
		want       want
	}{
		{"/Upsert", `{"WorkItemHash":"wi"}`, want{200, `"IDUVQueueWorkItem":1`}},
		{"/Upsert", `{"WorkItemHash":"wi","Status":"X"}`, want{500, "Record upsert unknown failure"}},
		{"/Upsert", `{"IDUVQueueWorkItem":1,"Status":"X"}`, want{200, `"WorkItemHash":"wi"`}},
		{"/Upserts", `[{"WorkItemHash":"wi"},{"WorkItemHash":"wi-2"}]`, want{200, `[{"Value":"UVQueueWorkItem #2","IDUVQueueWorkItem":2,"UpdateDate":`}},
		{"/Upserts/Detailed", `[{"WorkItemHash":"wi"},{"WorkItemHash":"wi-3"}]`, want{200, `{"Counts":{"Total":2,"Succeeded":1,"Errored":1},"UpsertedRecords":[{`}},
	} {
		a := call(t, d, "PUT", item+c.path, c.body)
		c.want.check(t, c.path+" "+c.body, a)
		if strings.HasPrefix(c.path, "/Upserts") && a.Headers["x-meadow-upsert-errored"] != "1" {
			t.Errorf("the headers are %v", a.Headers)
		}
	}
}
