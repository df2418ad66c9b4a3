package stock

// A database file and what its tables look like now.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"modernc.org/sqlite"

	"holdfast/ports"
)

// What text columns can have: collation in the manner of MySQL, localeCollation in that of Postgres.
const (
	collation       = "utf8mb4_unicode_ci"
	localeCollation = "en_US"
)

type database struct {
	sql     *sql.DB
	file    string
	version int64 // of the schema that tables are of
	tables  map[string]*table
}

// opener opens files with a driver of our own, so that the collation reaches nobody else's connections.
type opener struct {
	driver *sqlite.Driver
	dsn    string
}

func (o opener) Connect(context.Context) (driver.Conn, error) { return o.driver.Open(o.dsn) }
func (o opener) Driver() driver.Driver                        { return o.driver }

// database opens the file of a connection once.
func (d *Databeacon) database(id int64) (*database, error) {
	if db := d.databases[id]; db != nil {
		return db, nil
	}
	c := d.saved.connection(id)
	if c == nil {
		return nil, ports.Errorf(ports.NotFound, op, "there is no connection %d", id)
	}
	o := opener{driver: &sqlite.Driver{}}
	if err := o.driver.RegisterCollationUtf8(collation, compareUnicodeCI); err != nil {
		return nil, err
	}
	if err := o.driver.RegisterCollationUtf8(localeCollation, compareLocale); err != nil {
		return nil, err
	}
	pragmas := url.Values{"_pragma": {"busy_timeout(20000)", "journal_mode(MEMORY)", "synchronous(OFF)"}}
	if d.options.Manner == Postgres {
		pragmas.Add("_pragma", "case_sensitive_like(1)")
	}
	o.dsn = "file:" + (&url.URL{Path: c.File}).EscapedPath() + "?" + pragmas.Encode()
	db := &database{sql: sql.OpenDB(o), file: c.File, tables: map[string]*table{}}
	if err := db.sql.PingContext(context.Background()); err != nil {
		return nil, err
	}
	d.databases[id] = db
	return db, nil
}

// kind is what a column holds, whatever its engine calls it.
type kind int

const (
	kindID kind = iota
	kindText
	kindInteger
	kindDecimal
	kindBool
	kindDate
)

type table struct {
	name    string
	columns []*column
	indexes []*index
	id      *column // its single primary key
}

type column struct {
	name     string
	declared string
	kind     kind
	size     int64 // of a text; 0: no bound of its own
	notNull  bool
	standard *string // its default, as declared
	primary  bool
}

type index struct {
	name    string
	unique  bool
	columns []string
}

func (t *table) column(name string) *column {
	for _, c := range t.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// over finds the unique index over just these columns.
func (t *table) over(columns []string) string {
	for _, x := range t.indexes {
		if x.unique && strings.Join(x.columns, "\n") == strings.Join(columns, "\n") {
			return x.name
		}
	}
	return "PRIMARY"
}

// table is how a table looks now; nil when there is none.
func (db *database) table(name string) (*table, error) {
	var version int64
	if err := db.sql.QueryRowContext(context.Background(), "PRAGMA schema_version").Scan(&version); err != nil {
		return nil, err
	}
	if version != db.version {
		db.version, db.tables = version, map[string]*table{}
	}
	if t := db.tables[name]; t != nil {
		return t, nil
	}
	t := &table{name: name}
	err := db.each("SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info(?) ORDER BY cid", []any{name}, func(rows *sql.Rows) error {
		c := &column{}
		var pk int
		if err := rows.Scan(&c.name, &c.declared, &c.notNull, &c.standard, &pk); err != nil {
			return err
		}
		c.kind, c.size = kindOf(c.declared)
		if c.primary = pk > 0; c.primary {
			c.kind, t.id = kindID, c
		}
		t.columns = append(t.columns, c)
		return nil
	})
	if err != nil || len(t.columns) == 0 {
		return nil, err
	}
	err = db.each(`SELECT l.name, l."unique", i.name FROM pragma_index_list(?) AS l JOIN pragma_index_info(l.name) AS i WHERE l.origin = 'c' ORDER BY l.seq, i.seqno`,
		[]any{name}, func(rows *sql.Rows) error {
			var x index
			var c string
			if err := rows.Scan(&x.name, &x.unique, &c); err != nil {
				return err
			}
			if n := len(t.indexes); n == 0 || t.indexes[n-1].name != x.name {
				t.indexes = append(t.indexes, &x)
			}
			last := t.indexes[len(t.indexes)-1]
			last.columns = append(last.columns, c)
			return nil
		})
	if err != nil {
		return nil, err
	}
	db.tables[name] = t
	return t, nil
}

// names lists the tables, those of the stand-in aside.
func (db *database) names() (names []string, err error) {
	err = db.each("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ? ORDER BY name",
		[]any{sequences}, func(rows *sql.Rows) error {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
			return nil
		})
	return names, err
}

func (db *database) each(query string, args []any, f func(*sql.Rows) error) error {
	rows, err := db.sql.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

var sized = regexp.MustCompile(`\((\d+)`)

// kindOf reads a declared type.
func kindOf(declared string) (k kind, size int64) {
	plain := strings.ToLower(declared)
	switch {
	case strings.Contains(plain, "char"), strings.Contains(plain, "text"), plain == "":
		if m := sized.FindStringSubmatch(plain); m != nil {
			size, _ = strconv.ParseInt(m[1], 10, 64)
		}
		return kindText, size
	case strings.Contains(plain, "time"), strings.Contains(plain, "date"):
		return kindDate, 0
	case strings.Contains(plain, "bool"):
		return kindBool, 0
	case strings.Contains(plain, "real"), strings.Contains(plain, "num"), strings.Contains(plain, "dec"), strings.Contains(plain, "double"),
		strings.Contains(plain, "float"):
		return kindDecimal, 0
	}
	return kindInteger, 0
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
