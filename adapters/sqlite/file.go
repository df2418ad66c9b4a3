package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	modernc "modernc.org/sqlite"

	"holdfast/ports"
)

// A file is opened in this order: what is there is looked at, then the writer's connection makes or mends the tables, then
// readers may come. Everything that a connection needs stands in its DSN, so that a replaced connection has it too.

const (
	readers        = 4
	walLimit       = 64 << 20 // beyond this the WAL is cut, waiting for readers if it must
	walKept        = 16 << 20 // what a checkpoint leaves of a longer WAL
	roomKept       = 4 << 20  // free space that commits leave alone, so that prune and checkpoints can work
	roomTight      = 16 << 20 // below this the WAL is written back after every commit
	sqliteHeader   = "SQLite format 3\x00"
	journalModeWAL = "wal"
)

// role is what a connection is for.
type role int

const (
	reads  role = iota
	writes      // in a file that has a database
	founds      // one in an empty file, and then writes in it
)

// dsn gives a connection's data source. The order in which pragmas run is the engine's: busy_timeout, then by name.
func dsn(path string, busy time.Duration, r role) string {
	q := url.Values{}
	pragma := func(name string, value any) { q.Add("_pragma", fmt.Sprintf("%s(%v)", name, value)) }
	pragma("busy_timeout", busy.Milliseconds())
	pragma("foreign_keys", 0)
	pragma("synchronous", "FULL")
	if r == founds {
		pragma("auto_vacuum", "INCREMENTAL") // the engine writes it whenever it is told, and a file that is only looked at stays as it is
	}
	if r != reads {
		pragma("journal_mode", "WAL")
		pragma("journal_size_limit", walKept)
		pragma("temp_store", "MEMORY") // a full /tmp is no reason to refuse a write
		q.Set("_txlock", "immediate")
	} else {
		pragma("query_only", 1)
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// file is an open database file.
type file struct {
	path    string
	id      fs.FileInfo // of the opened file: a path that leads elsewhere later is noticed
	storeID string
	readers *sql.DB

	snapshots *snapshots
	opener    atomic.Pointer[string] // the host that opened the store last; nil: none did since the file was opened
}

// look refuses what cannot be a database of ours before the engine touches it, and makes an empty file, private to us,
// where there is none.
func look(path string) (fs.FileInfo, error) {
	const op = "sqlite: open"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ports.Errorf(ports.Unavailable, op, "the folder %s does not exist; create it or mount it", filepath.Dir(path))
		}
		return nil, fault(op, path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault(op, path, err)
	}
	head := make([]byte, len(sqliteHeader))
	n, err := io.ReadFull(f, head)
	if n > 0 && !bytes.Equal(head[:n], []byte(sqliteHeader)) || n > 0 && err != nil {
		return nil, ports.Errorf(ports.Unavailable, op,
			"%s is not an SQLite database; it was left as it is: move it away or name another path", path)
	}
	return info, nil
}

// openFile opens a store's file and gives the writer's connection beside it.
func openFile(s settings) (*file, *link, error) {
	const op = "sqlite: open"
	info, err := look(s.path)
	if err != nil {
		return nil, nil, err
	}
	r := writes
	if info.Size() == 0 {
		r = founds
	}
	l, err := dial(dsn(s.path, s.busy, r))
	if err != nil {
		return nil, nil, fault(op, s.path, err)
	}
	f := &file{path: s.path, id: info}
	if err := f.begin(l, s); err != nil {
		return nil, nil, errors.Join(fault(op, s.path, err), l.close())
	}
	return f, l, nil
}

func (f *file) begin(l *link, s settings) error {
	mode, err := l.word("PRAGMA journal_mode")
	if err != nil {
		return err
	}
	if mode != journalModeWAL {
		return ports.Errorf(ports.Unavailable, "sqlite: open",
			"%s cannot use a write-ahead log (journal mode is %s); put it on a local disk", f.path, mode)
	}
	if f.storeID, err = migrate(l, f.path); err != nil {
		return err
	}
	connector, err := modernc.NewConnector(dsn(s.path, s.busy, reads))
	if err != nil {
		return err
	}
	f.readers = sql.OpenDB(connector)
	f.readers.SetMaxOpenConns(readers)
	f.readers.SetMaxIdleConns(readers)
	f.snapshots = newSnapshots(f, s)
	return nil
}

// here says whether the path still leads to the file that is open. A file that was moved or replaced under the store
// would take writes that nobody finds again.
func (f *file) here() error {
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.id) {
		return nil
	}
	return ports.Errorf(ports.Unavailable, "sqlite", "%s was removed or replaced while it was open; it is opened again", f.path)
}

// free is the free space under the file for an ordinary user; a file system that does not tell has enough.
func (f *file) free() int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(f.path), &s); err != nil {
		return 1 << 62
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize) //nolint:unconvert // its type differs between systems
}

// walSize is the length of the write-ahead log.
func (f *file) walSize() int64 {
	info, err := os.Stat(f.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// bytes is what the store takes on disk.
func (f *file) bytes() int64 {
	total := f.walSize()
	if info, err := os.Stat(f.path); err == nil {
		total += info.Size()
	}
	return total
}
