// Package postgres keeps history in a PostgreSQL database. It is the local store of more than one machine, and can be a
// follower as well.
//
//	backend "postgres" "local" {
//	  local   = true
//	  dsn     = env("HOLDFAST_DSN") # postgres://user@a,b/history: several hosts are tried for the one that takes writes
//	  schema  = "history"           # default: the first of the role's search_path
//	  pool    = 4                   # connections at most
//	  pooler  = false               # true behind PgBouncer in transaction mode
//	  timeout = "3s"                # how long one transaction may take; large records get more
//	}
//
// One goroutine writes, through one connection at a time; it takes what is queued, in order, and commits it as one transaction of
// two round trips:
//
//	Commit, Put, Prune, Open --> queue --> writer --> begin, fence, rows of the batch's keys FOR UPDATE in key order
//	                                             <--  Decide, fold (in Go)
//	                                              --> one INSERT and few UPDATEs a table (unnest), marks, commit
//	readers, Changes, Export --> database.view: a snapshot (REPEATABLE READ, READ ONLY) on one of pool - 1 connections
//
//	options.go   settings                      connect.go  pool, backoff, startup parameters
//	schema.go    tables, versions              adopt.go    tables that a databeacon made
//	layout.go    columns of a table in order   cells.go    what the server sends as Go values
//	store.go     Backend: open, Probe, Drain   view.go     snapshots for readers: view, reading.query
//	fault.go     SQLSTATE -> ports codes       refusal.go  why there is no connection
//	keys.go      rows of UVHoldfast
//	writer.go, commit.go, put.go               behind the line (adapters/line): the transaction, what goes into it
//	fold.go, load.go, flush.go                 the rows of a transaction: read once, decided, written once
//	early.go, graves.go, odd.go, nobody.go     beside records
//	standing.go, position.go                   Stand, Open, Position
//
// Every host writes under its own HostID: it has a nonce, marks, epochs and decisions of its own in UVHoldfast, and the row of its
// nonce, locked first, is the fence of its transactions. A write to another host's record is applied: who commits last wins.
//
// As a follower the database belongs to one host: two that follow would each find the other's position and begin from zero, until
// their hosts stop that. As a local store it serves any number.
//
// Every wait has a limit that does not depend on the server: connecting, a transaction, a lock. When a call's time is over its
// statement is canceled and its connection used again; only a server that does not answer that either loses it. No connection is
// opened beyond the pool's size.
//
// Text is text COLLATE "C": it compares bytewise. What it cannot hold (NUL, lone surrogates) stands in Extra, see ports.Record.Project;
// so does a text too long for its index. Tables that a databeacon made are adopted and widened, never narrowed.
package postgres
