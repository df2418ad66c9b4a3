package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/ports"
)

// Bytes in, bytes out: what nobody looks into comes back as it was written, also where a parser would write it otherwise.
var bytesCases = []Case{
	{
		Topic: "bytes", Name: "spelling", Reads: true, Run: func(c *C) { keepsValues(c, spellings) },
		Must: "an opaque member comes back byte for byte: white space, the order of its members, members that stand twice",
	},
	{
		Topic: "bytes", Name: "numbers", Reads: true, Run: func(c *C) { keepsValues(c, numbers) },
		Must: "numbers come back digit for digit, also beyond 2^53, beyond 64 bits, beyond a double, and with zeros at their end",
	},
	{
		Topic: "bytes", Name: "text", Reads: true, Run: func(c *C) { keepsValues(c, texts) },
		Must: "texts come back as they were spelled: escapes as escapes, characters beyond 16 bits, NUL and lone surrogates too",
	},
	{
		Topic: "bytes", Name: "blanks", Reads: true, Run: keepsBlanks,
		Must: `null, "", 0, false, {} and [] come back as they are, and a member that nobody gave is not there`,
	},
	{
		Topic: "bytes", Name: "columns", Reads: true, Run: keepsColumns,
		Must: "a member that has a column comes back as it was spelled, also null, of another type, or a number or text that the column writes otherwise",
	},
	{
		Topic: "bytes", Name: "unknown", Reads: true, Run: keepsUnknown,
		Must: "a member that has no column comes back, whatever its name",
	},
	{
		Topic: "bytes", Name: "manifest", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: keepsManifest,
		Must: "a manifest comes back as one text, byte for byte, in whatever way it is read",
	},
	{
		Topic: "bytes", Name: "listed", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, With: "lists/items", Run: listsBytes,
		Must: "a list with bodies gives work items with the same bytes as Item does",
	},
}

var spellings = []string{
	`{"b":1,   "a":2,"a":3,"x":{"z":1,"y":2}}`, "{ \"a\" : [ 1 , 2 ] ,\n\t\"b\" : { } }", "[ ]", `[1,  2,3]`, `"text"`, `true`,
	`{"1":"a","0":"b","__proto__":{"x":1},"constructor":2}`, `{"":1,"":2}`,
}

var numbers = []string{
	`9007199254740993`, `-9223372036854775808`, `18446744073709551615`, `123456789012345678901234567890`, `1e400`, `-1E-400`, `1.10`, `1.0`, `1e2`, `1E+2`, `-0`, `0.1e1`,
	`{"id":9007199254740993,"list":[1.000,1e400,-0.0]}`,
}

var texts = []string{
	`"caf\u00e9 \/ \ud83d\ude00"`, `"\u003c\u003e\u0026"`, `"漢字 😀 é e` + "\u0301" + `"`, `"a\u0000b"`, `"\ud800"`, `"\udc00 and \ud800"`, `"\t\n\u001f\b"`,
	"\"\u2028\u2029\u007f\ufffd\ufeff\"", `{"\u0061":"\u0062","é":"\u00e9"}`, `"\\u0041 \\n \" '"`,
}

// keepsValues puts each value as the opaque member, inside of one, and as a member that has no column.
func keepsValues(c *C, values []string) {
	for _, kind := range c.kinds() {
		var rows []ports.Row
		for i, v := range values {
			key := fmt.Sprintf("value-%02d", i)
			rows = append(rows, c.row(kind, key, 1, fmt.Sprintf(`%q:%s,"Unknown":%s`, opaque[kind], v, v)))
			rows = append(rows, c.row(kind, key+" inside", 1, fmt.Sprintf(`%q:{"deep": [%s ,%s]}`, opaque[kind], v, v)))
		}
		c.put(rows...)
		c.holds("opaque members", rows...)
	}
}

func keepsBlanks(c *C) {
	for _, kind := range c.kinds() {
		var rows []ports.Row
		for i, blank := range []string{`null`, `""`, `0`, `false`, `{}`, `[]`, `" "`} {
			rows = append(rows, c.row(kind, fmt.Sprint("blank-", i), 1, fmt.Sprintf(`%q:%s,%q:%s,"Unknown":%s`, word[kind], blank, opaque[kind], blank, blank)))
		}
		rows = append(rows, c.row(kind, "none", 1, ``))
		c.put(rows...)
		c.holds("blanks", rows...)
	}
}

// odd has values that a column of each type writes otherwise, or not at all.
var odd = map[ports.ColumnType][]string{
	ports.Text:    {`null`, `5`, `1.50`, `true`, `{"a":1}`, `"caf\u00e9 \/"`, `"a\u0000b"`, `"\ud800"`, `"x\ty"`, `" spaces "`, `"` + "é" + `"`, `["a"]`},
	ports.Integer: {`null`, `"7"`, `1.10`, `1e3`, `-0`, `9007199254740993`, `18446744073709551615`, `1e400`, `true`, `[]`},
	ports.Float:   {`null`, `"0.5"`, `1.0`, `-0.0`, `1e400`, `0.10`, `1E1`, `9007199254740993`},
	ports.Boolean: {`null`, `1`, `0`, `"true"`, `{}`},
}

func keepsColumns(c *C) {
	for _, kind := range c.kinds() {
		var rows, seen []ports.Row // seen: every value in the first column of its type, and every seventh of the others
		tried := map[ports.ColumnType]bool{}
		for _, column := range ports.TableOf(kind).Members {
			if named(column.Name) {
				continue
			}
			for i, v := range odd[column.Type] {
				rows = append(rows, c.row(kind, fmt.Sprintf("%s-%d", column.Name, i), 1, fmt.Sprintf(`%q:%s`, column.Name, v)))
				if !tried[column.Type] || len(rows)%7 == 0 {
					seen = append(seen, rows[len(rows)-1])
				}
			}
			tried[column.Type] = true
		}
		for part := range slices.Chunk(rows, ports.MaxBatchEntries) {
			c.put(part...)
		}
		c.holds("columns", seen...)
		escaped := c.row(kind, "escaped", 1, `"Stat\u0075s":"Running","Outc\u006fme":"Complete","EventT\u0079pe":"x"`)
		c.put(escaped)
		c.holds("names that are spelled with escapes", escaped)
	}
}

// named says whether a member says which record it is, so that it is not free.
func named(member string) bool {
	return slices.Contains([]string{"WorkItemHash", "EventGUID", "AttemptNumber", "Hash"}, member)
}

// strange are names of members that stores and languages use themselves.
var strange = []string{
	"Unknown", "$raw", "$absent", "$", "$$x", "Extra", "OrderKey", "ChangeSeq", "Deleted", "CreateDate", "IDUVQueueWorkItem", "ManifestJSON",
	"__proto__", "constructor", "toString", "length", "rowid", "with space", "with.dot", "a/b", "", "é", "漢", "😀", "status", "STATUS", "hash", "Key", "Kind", "body",
}

func keepsUnknown(c *C) {
	for _, kind := range c.kinds() {
		var all []string
		var rows []ports.Row
		for i, name := range strange {
			if kind == ports.KindManifest && name == "Hash" {
				continue
			}
			member := fmt.Sprintf(`%s:{"n": %d}`, ports.AppendQuoted(nil, name), i)
			all = append(all, member)
			rows = append(rows, c.row(kind, fmt.Sprint("unknown-", i), 1, member))
		}
		rows = append(rows, c.row(kind, "all of them", 1, strings.Join(all, ",")))
		c.put(rows...)
		c.holds("members without a column", rows...)
	}
}

func keepsManifest(c *C) {
	want := map[string]string{}
	for i, frame := range []string{
		`{"Hash":KEY, "Status" : "Complete","Output":{"b":1,"a":1,"a":2},"Log":["a\u0000b","\ud800"],"ElapsedMs":3e9}`,
		"{\"Status\":null,\n\"Hash\":KEY,\"TaskManifests\":{}, \"$raw\":1}",
		`{"z":1,"a":2,"Hash":KEY}`,
		`{"Hash":KEY,"StopTime":5,"Extra":{"a": [ ]}  }`,
	} {
		key := fmt.Sprint("m", i)
		r := c.said(ports.KindManifest, key, 1, "")
		r.Body = []byte(strings.Replace(frame, "KEY", `"`+key+`"`, 1))
		c.put(r)
		want[key] = string(r.Body)
	}
	is := func(when string, r ports.Row) {
		if string(r.Body) != want[r.Key] {
			c.Errorf("%s: the manifest %q is %s, it was put as %s", when, r.Key, r.Body, want[r.Key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		r, err := power[ports.ManifestReader](c).Manifest(c.Ctx, key)
		if err != nil {
			c.Errorf("the manifest %q: %s", key, faultText(err))
			continue
		}
		is("by its key", r)
	}
	rows, err := walk(c, 2, c.manifests(c.Backend(), ports.ManifestQuery{Bodies: true}))
	if ports.CodeOf(err) == ports.Unimplemented {
		return // the topic of lists says so
	}
	if err != nil || len(rows) != len(want) {
		c.Errorf("the list: %q (%s)", names(rows), faultText(err))
	}
	for _, r := range rows {
		is("in a list", r)
	}
}

func listsBytes(c *C) {
	var rows []ports.Row
	for i, v := range slices.Concat(spellings, numbers, texts) {
		rows = append(rows, c.row(ports.KindItem, fmt.Sprintf("value-%02d", i), 1, fmt.Sprintf(`"Settings":%s,"Result":%s,"Unknown":%s`, v, v, v)))
	}
	c.put(rows...)
	got, err := walk(c, 10, c.items(c.Backend(), ports.ItemQuery{Bodies: true}))
	if err != nil || !slices.Equal(names(got), names(inOrder(rows))) {
		c.Fatalf("the list: %q (%s)", names(got), faultText(err))
	}
	for i, want := range inOrder(rows) {
		if one, found, err := c.find(c.Backend(), want); err != nil || !found || !bytes.Equal(one.Body, got[i].Body) {
			for _, d := range differences(want, got[i]) {
				c.Errorf("in a list: %s: %s", nameOf(want), d)
			}
		}
	}
}
