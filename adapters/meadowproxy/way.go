package meadowproxy

import (
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// engine is the database behind a databeacon, as EnsureSchema names it. It decides what a column can hold.
type engine string

const (
	engineSQLite   engine = "sqlite"
	enginePostgres engine = "postgresql"
	engineMySQL    engine = "mysql"
	engineMSSQL    engine = "mssql"
)

// folds says whether the engine takes texts for equal that differ in case, in accents or in spaces at their end.
func (e engine) folds() bool { return e == engineMySQL || e == engineMSSQL }

// column is a column as it was introspected. Its native type is that of the engine, in lower case: "character varying", "text".
// Its size is in characters, 0 where the engine gives none.
type column struct {
	native string
	size   int64
}

// way is one connection of one beacon in one session, with its tables and endpoints made: where rows go. Everybody uses it at once.
type way struct {
	mesh       ports.Mesh
	beacon     string // its Name; every work is addressed to it
	connection int64
	engine     engine                       // what EnsureSchema said
	bases      map[string]string            // the endpoint base by the name of the table: "/1.0/slug/UVManifest"
	columns    map[string]map[string]column // by table and name, as introspected: tables that others made are used within their widths
	slots      int                          // works at a time
	timeout    time.Duration                // of one work; 0 is usualTimeout
	known      *known                       // which row has which identity; newKnown
	whole      atomic.Bool                  // the interface does not shorten rows
}

// column gives a column of a table; ok is false for one that the table does not have.
func (w *way) column(table, name string) (c column, ok bool) {
	c, ok = w.columns[table][name]
	return c, ok
}

// forget drops what is known of the rows. Whoever finds that the database is another one, or an older copy, must call it: an
// identity that is used for a row which does not have it any more would hit another row.
func (w *way) forget() { w.known.forget() }

// usualTimeout is how long a beacon may take for one work.
const usualTimeout = 4 * time.Second
