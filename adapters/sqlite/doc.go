// Package sqlite keeps history in one SQLite file. It is the usual local store, and can be a follower as well.
//
//	backend "sqlite" "local" {
//	  local        = true
//	  path         = "history.db" # below the data directory unless absolute
//	  busy_timeout = "5s"         # how long a write waits for another program that holds the file
//	}
//
// One goroutine writes, through one connection; it takes what is queued, in order, and commits it as one transaction:
//
//	Commit, Put, Prune, Open --> queue --> writer --> position check, Decide, fold --> BEGIN IMMEDIATE ... COMMIT
//	readers                  --> pool of read-only connections, short statements
//	Changes, Position        --> read-only connections with kept statements, one snapshot a call
//
// Within a transaction every record is written once, in its final state, and of a present one only the columns that
// changed. A cache of recently written records saves most look-ups.
//
// The file has the four UV tables (ports/schema.go), UVGone with the tombstones and UVHoldfast with what the store knows of
// itself: its StoreID, and for each host a nonce, marks, epochs and the last decisions that were not simply "stored". It
// runs in WAL mode with synchronous=FULL, so what Commit reported survives a power cut. A file that is not a database, or
// one of a newer holdfast, is refused and left as it is. A file whose tables a databeacon made is taken over: missing
// columns and indexes are added. (Such a file gives pages back to itself, not to the disk: only a file made here has
// auto_vacuum=incremental.)
//
// To back up a live file use VACUUM INTO or `holdfast export`; copying history.db without history.db-wal loses commits.
package sqlite
