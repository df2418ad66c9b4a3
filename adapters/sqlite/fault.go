package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	modernc "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"holdfast/ports"
)

// fault gives an engine's error its code: what may be tried again, what needs room, what needs a person. The file's path
// stands in every one that a person has to act on.
func fault(op, path string, err error) error {
	var known *ports.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var e *modernc.Error
	if !errors.As(err, &e) {
		return otherFault(op, path, err)
	}
	code, hint := ports.Internal, ""
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		code, hint = ports.Unavailable, "another program holds "+path
	case lib.SQLITE_FULL:
		code, hint = ports.Full, "no room for "+path
	case lib.SQLITE_IOERR:
		code, hint = ports.Unavailable, "the disk under "+path+" fails"
		if e.Code() == lib.SQLITE_IOERR_SHMSIZE { // how a full disk shows itself in the WAL's index
			code, hint = ports.Full, "no room for "+path
		}
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH, lib.SQLITE_NOLFS:
		code, hint = ports.Unavailable, path+" cannot be opened for writing"
	case lib.SQLITE_NOMEM:
		code = ports.Unavailable
	case lib.SQLITE_CORRUPT: // the store's fault, never a record's
		code, hint = ports.Unavailable, path+" is damaged; it was left as it is: restore a backup or start with another path"
	case lib.SQLITE_NOTADB:
		code, hint = ports.Unavailable, path+" is not an SQLite database; it was left as it is: move it away or name another path"
	case lib.SQLITE_CONSTRAINT:
		code = ports.Invalid
	case lib.SQLITE_TOOBIG:
		code = ports.TooLarge
	case lib.SQLITE_INTERRUPT:
		code = ports.Canceled
	}
	if hint != "" {
		return &ports.Error{Code: code, Op: op, Message: hint + ": " + e.Error(), Cause: err}
	}
	return &ports.Error{Code: code, Op: op, Message: e.Error(), Cause: err}
}

func otherFault(op, path string, err error) error {
	code := ports.CodeOf(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = ports.Full
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		code = ports.Unavailable
	}
	return &ports.Error{Code: code, Op: op, Message: path + ": " + err.Error(), Cause: err}
}

// broken says whether the connection that gave an error must be replaced: after a failed sync what the engine has in memory
// is no longer proof of what the disk has.
func broken(err error) bool {
	var e *modernc.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_IOERR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_NOMEM, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY:
		return true
	}
	return false
}

// timedOut gives a query's error the caller's reason when the caller's context ended it.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
