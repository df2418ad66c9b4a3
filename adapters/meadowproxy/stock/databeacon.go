package stock

// The databeacon: what outlives its process (its connections, what it knows of their tables, which endpoints are enabled) and what does
// not (which connections are live, the allow list of its proxy, the routes that are mounted). Its works go through one queue, because
// the original has one thread.

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"holdfast/ports"
)

const op = "databeacon"

// Manner is the engine that a databeacon pretends to have behind it.
type Manner string

const (
	SQLite   Manner = "sqlite"
	Postgres Manner = "postgresql"
	MySQL    Manner = "mysql"
)

// Options are what a databeacon is started with.
type Options struct {
	Name   string // the beacon's
	Dir    string // where its own state and its databases live
	Manner Manner // SQLite when empty
	Costs  bool   // charge the times of a real one, in one queue

	// Strict is another connector for Postgres: its columns are NOT NULL with defaults, and EnsureSchema can be repeated. The recorded
	// one makes nullable columns, and fails when a table with an index on one column is there already.
	Strict bool
	// Locale has Postgres sort texts as en_US.UTF-8 does and not by their bytes; equal texts are still those with equal bytes.
	Locale bool
	// Explained gives each failed row of a bulk call an Error with text, in the shape of a whole answer. Without it the error is what
	// is left of a JavaScript error in JSON: the driver's own members, on SQLite without a text.
	Explained bool
}

// Databeacon is one database beacon. Its methods may be called at the same time.
type Databeacon struct {
	options Options
	engine  engine
	turn    chan struct{} // holds one token: whose turn it is
	closed  chan struct{}
	pace    pace

	mu       sync.Mutex
	fault    func(capability, action string, settings json.RawMessage) (string, bool)
	ensuring int
	users    map[string]int
	ended    bool

	// Only with the turn.
	saved     saved
	databases map[int64]*database
	live      map[int64]bool
	proxy     proxy
	enabled   map[endpointKey]bool
	mounts    map[string]*endpoint // by base
}

// Open starts a databeacon with what an earlier one left in the folder.
func Open(o Options) (*Databeacon, error) {
	if o.Manner == "" {
		o.Manner = SQLite
	}
	d := &Databeacon{
		options: o, turn: make(chan struct{}, 1), closed: make(chan struct{}), users: map[string]int{}, databases: map[int64]*database{},
	}
	switch o.Manner {
	case SQLite:
		d.engine = sqliteEngine{}
	case Postgres:
		d.engine = postgresEngine{strict: o.Strict, locale: o.Locale}
	case MySQL:
		d.engine = mysqlEngine{}
	default:
		return nil, ports.Errorf(ports.Invalid, op, "the manner %q is unknown", o.Manner)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := d.saved.read(d.stateFile()); err != nil {
		return nil, err
	}
	d.turn <- struct{}{}
	d.boot()
	return d, nil
}

func (d *Databeacon) stateFile() string { return filepath.Join(d.options.Dir, "databeacon.json") }

// Name is the beacon's.
func (d *Databeacon) Name() string { return d.options.Name }

// boot is the start of a process: connections that connect by themselves are live, and their enabled tables are served again.
func (d *Databeacon) boot() {
	d.live, d.enabled, d.mounts = map[int64]bool{}, map[endpointKey]bool{}, map[string]*endpoint{}
	d.proxy = newProxy()
	for _, c := range d.saved.Connections {
		if _, err := d.database(c.ID); c.AutoConnect && err == nil {
			d.connect(c)
		}
	}
}

// connect makes a connection live and serves its enabled tables.
func (d *Databeacon) connect(c *connection) {
	d.live[c.ID] = true
	for _, t := range c.Tables {
		if t.Enabled {
			d.serve(c, t)
		}
	}
}

// AddConnection makes a connection to the database in a file of the databeacon's folder, and connects. A name that is known keeps its
// number and its file.
func (d *Databeacon) AddConnection(name, file string, autoConnect bool) (int64, error) {
	<-d.turn
	defer d.pass()
	c, _, err := d.addConnection(name, file, autoConnect)
	if err != nil {
		return 0, err
	}
	d.connect(c)
	return c.ID, nil
}

func (d *Databeacon) addConnection(name, file string, autoConnect bool) (c *connection, created bool, err error) {
	if c = d.saved.named(name); c != nil {
		return c, false, nil
	}
	if file == "" {
		file = slug(name, int64(len(d.saved.Connections))+1) + ".sqlite"
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(d.options.Dir, file)
	}
	c = &connection{ID: d.saved.nextID(), Name: name, File: file, AutoConnect: autoConnect}
	d.saved.Connections = append(d.saved.Connections, c)
	if _, err = d.database(c.ID); err != nil {
		return nil, false, err
	}
	return c, true, d.save()
}

func (d *Databeacon) save() error { return d.saved.write(d.stateFile()) }

// Restart is a new process: the allow list is the default one, connections that do not connect by themselves are not live, and the
// enabled tables of the others are served, so that EnableEndpoint no longer tells their base.
func (d *Databeacon) Restart() {
	<-d.turn
	defer d.pass()
	d.boot()
}

// Database is the database of a connection, for tests that look into it or wipe it; nil for an unknown connection.
func (d *Databeacon) Database(connection int64) *sql.DB {
	<-d.turn
	defer d.pass()
	db, err := d.database(connection)
	if err != nil {
		return nil
	}
	return db.sql
}

// Copy puts a copy of a connection's database into a file, as a backup would.
func (d *Databeacon) Copy(connection int64, to string) error {
	<-d.turn
	defer d.pass()
	db, err := d.database(connection)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(db.file)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// Replace puts a copy of a database file in the place of a connection's, while the databeacon goes on: a database restored under it.
// What Database gave before is closed.
func (d *Databeacon) Replace(connection int64, from string) error {
	<-d.turn
	defer d.pass()
	db, err := d.database(connection)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := db.sql.Close(); err != nil {
		return err
	}
	delete(d.databases, connection)
	if err := os.WriteFile(db.file, data, 0o600); err != nil {
		return err
	}
	_, err = d.database(connection)
	return err
}

// Fault has f decide about each work before it is done: on a hit the work fails with what f gives and nothing is done. nil ends it.
func (d *Databeacon) Fault(f func(capability, action string, settings json.RawMessage) (failure string, hit bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Users counts the requests that came through the proxy to write, by the user that they named.
func (d *Databeacon) Users() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.users)
}

// Close ends the databeacon. Its files stay.
func (d *Databeacon) Close() error {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return nil
	}
	d.ended = true
	d.mu.Unlock()
	close(d.closed)
	<-d.turn
	var first error
	for _, db := range d.databases {
		if err := db.sql.Close(); err != nil && first == nil {
			first = err
		}
	}
	d.databases = map[int64]*database{}
	d.pass()
	return first
}

// await waits for the turn.
func (d *Databeacon) await(ctx context.Context) error {
	select {
	case <-d.closed:
		return ports.Errorf(ports.Unavailable, op, "the databeacon is closed")
	default:
	}
	select {
	case <-d.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Databeacon) pass() { d.turn <- struct{}{} }
