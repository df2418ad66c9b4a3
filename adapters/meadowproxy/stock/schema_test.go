package stock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ensured1 runs EnsureSchema with a list of tables in JSON.
func ensured1(t *testing.T, d *Databeacon, connection int64, tables string) ensured {
	t.Helper()
	return must[ensured](t, d, "DataBeaconSchema", "EnsureSchema",
		settings{"IDBeaconConnection": connection, "SchemaName": "s", "SchemaJSON": json.RawMessage(`{"Tables":` + tables + `}`)})
}

func refusedSchema(t *testing.T, d *Databeacon, connection int64, tables string) string {
	t.Helper()
	return fails(t, d, "DataBeaconSchema", "EnsureSchema",
		settings{"IDBeaconConnection": connection, "SchemaJSON": json.RawMessage(`{"Tables":` + tables + `}`)})
}

const (
	idColumnJSON = `{"Column":"IDThing","Type":"AutoIdentity","Size":"Default"}`
	thing        = `{"Scope":"Thing","Schema":[` + idColumnJSON + `,{"Column":"Mark","Type":"String","Size":"64"}],"Indexes":[{"Name":"IX_Mark","Columns":["Mark"],"Unique":true}]}`
)

func TestEnsureSchemaTellsOddThingsTheSecondTime(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Manner: SQLite}, {Manner: Postgres, Strict: true}, {Manner: MySQL}} {
		t.Run(string(o.Manner), func(t *testing.T) {
			t.Parallel()
			d := open(t, o)
			id := connect(t, d, "c")
			first := ensured1(t, d, id, "["+thing+"]")
			if !slices.Equal(first.TablesCreated, []string{"Thing"}) || len(first.IndicesCreated) != 0 {
				t.Errorf("the first: %+v", first)
			}
			second := ensured1(t, d, id, "["+thing+"]")
			if len(second.TablesCreated) != 0 || !slices.Equal(second.IndicesCreated, []string{"IX_Mark"}) || !second.Success {
				t.Errorf("the second: %+v", second)
			}
		})
	}
}

func TestEnsureSchemaOnlyGoesForward(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	id := connect(t, d, "c")
	ensured1(t, d, id, "["+thing+"]")
	wider := `[{"Scope":"Thing","Schema":[` + idColumnJSON + `,{"Column":"More","Type":"Integer","Size":"int"}],"Indexes":[{"Columns":["More","IDThing"]}]}]`
	got := ensured1(t, d, id, wider)
	if !slices.Equal(got.ColumnsAdded, []string{"Thing.More"}) || !slices.Equal(got.IndicesCreated, []string{"IX_Thing_0"}) || !slices.Contains(got.SkippedDestructive, "drop-column:Thing.Mark") {
		t.Errorf("%+v", got)
	}
	if again := ensured1(t, d, id, wider); len(again.ColumnsAdded) != 0 || len(again.IndicesCreated) != 0 {
		t.Errorf("again: %+v", again)
	}
	looked := must[struct {
		Tables []struct {
			Exists         bool
			MissingColumns []string
		}
	}](t, d, "DataBeaconSchema", "IntrospectSchema", settings{"IDBeaconConnection": id, "SchemaJSON": json.RawMessage(`{"Tables":[` +
		strings.Replace(thing, `"Mark","Type"`, `"Absent","Type"`, 1) + `,{"Scope":"Other","Schema":[` + idColumnJSON + `]}]}`)})
	if len(looked.Tables) != 2 || !looked.Tables[0].Exists || !slices.Equal(looked.Tables[0].MissingColumns, []string{"Absent"}) || looked.Tables[1].Exists {
		t.Errorf("%+v", looked)
	}
}

func TestEnsureSchemaCannotBeRepeatedOnPostgresAsRecorded(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Manner: Postgres})
	id := connect(t, d, "c")
	ensured1(t, d, id, "["+thing+"]")
	wider := strings.Replace(thing, `"Size":"64"}`, `"Size":"64"},{"Column":"More","Type":"Integer"}`, 1)
	other := strings.ReplaceAll(strings.ReplaceAll(thing, "Thing", "Other"), "IX_Mark", "IX_Other")
	if got := refusedSchema(t, d, id, "["+wider+","+other+"]"); got != `column "mark" does not exist` {
		t.Errorf("it failed with %q", got)
	}
	// What came before the failing statement stays: the new table, and the columns of the table whose index failed.
	tables := must[struct{ Tables []knownTable }](t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": id})
	if text := string(encode(tables)); !strings.Contains(text, "More") || !strings.Contains(text, `"MeadowType":"AutoIdentity"`) || strings.Count(text, "AutoIdentity") != 2 {
		t.Errorf("introspection found %s", text)
	}
}

func TestWhatMySQLCannotMake(t *testing.T) {
	t.Parallel()
	table := func(columns, indexes string) string {
		return `{"Scope":"Bad","Schema":[` + idColumnJSON + columns + `],"Indexes":[` + indexes + `]}`
	}
	column := func(name, size string) string {
		return fmt.Sprintf(`,{"Column":%q,"Type":"String","Size":%q}`, name, size)
	}
	for _, c := range []struct{ name, table, want string }{
		{"a text of 256", table(column("A", "256"), ""), "Column length too big for column 'A' (max = 255)"},
		{"a reserved name", table(column("Key", "20"), ""), "right syntax to use near 'Key'"},
		{"an index over a text without a length", table(column("A", "Default"), `{"Columns":["A"]}`), "without a key length"},
		{"an index that is too long", table(column("A", "255")+column("B", "255")+column("C", "255")+column("D", "255"), `{"Columns":["A","B","C","D"]}`), "max key length is 3072 bytes"},
		{"a row that is too large", table(strings.Join(many(65), ""), ""), "Row size too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := open(t, Options{Manner: MySQL})
			id := connect(t, d, "c")
			if got := refusedSchema(t, d, id, "["+thing+","+c.table+"]"); !strings.Contains(got, c.want) {
				t.Errorf("it failed with %q, want %q", got, c.want)
			}
			// Tables before the failing one stay.
			enable(t, d, id, "Thing")
			failed := fails(t, d, "DataBeaconManagement", "EnableEndpoint", settings{"IDBeaconConnection": id, "TableName": "Bad"})
			if failed != "Table Bad not introspected." {
				t.Errorf("the failing table: %q", failed)
			}
		})
	}
}

// many gives that many columns of 255 characters.
func many(n int) (columns []string) {
	for i := range n {
		columns = append(columns, fmt.Sprintf(`,{"Column":"C%d","Type":"String","Size":"255"}`, i))
	}
	return columns
}

func TestVersion1CannotBeMadeOnMySQL(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Manner: MySQL})
	id := connect(t, d, "c")
	failed := fails(t, d, "DataBeaconSchema", "EnsureSchema", settings{"IDBeaconConnection": id, "SchemaJSON": version1(t)})
	if !strings.HasPrefix(failed, "Column length too big for column 'HealthReason'") {
		t.Errorf("it failed with %q", failed)
	}
}

func TestASchemaThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	id := connect(t, d, "c")
	for _, c := range []struct {
		settings settings
		want     string
	}{
		{settings{"SchemaJSON": settings{"Tables": []string{}}}, "IDBeaconConnection is required."},
		{settings{"IDBeaconConnection": 9, "SchemaJSON": settings{"Tables": []string{}}}, "Connection 9 not found."},
		{settings{"IDBeaconConnection": id}, "SchemaJSON with a Tables array is required."},
		{settings{"IDBeaconConnection": id, "SchemaJSON": `{"Tables":[]}`}, "SchemaJSON with a Tables array is required."},
		{settings{"IDBeaconConnection": id, "SchemaJSON": settings{"Tables": 1}}, "SchemaJSON with a Tables array is required."},
	} {
		if got := fails(t, d, "DataBeaconSchema", "EnsureSchema", c.settings); got != c.want {
			t.Errorf("%v failed with %q, want %q", c.settings, got, c.want)
		}
	}
}

func TestAnIndexOfPostgresHasALargestEntry(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Manner: Postgres})
	id := connect(t, d, "c")
	ensured1(t, d, id, `[`+strings.Replace(thing, `"Size":"64"`, `"Size":"Default"`, 1)+`]`)
	enable(t, d, id, "Thing")
	want{200, ""}.check(t, "2000", call(t, d, "POST", "/1.0/c/Thing", `{"Mark":"`+strings.Repeat("m", 2000)+`"}`))
	want{500, "54000"}.check(t, "2704", call(t, d, "POST", "/1.0/c/Thing", `{"Mark":"`+strings.Repeat("m", 2704)+`"}`))
}
