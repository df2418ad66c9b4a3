// Package tables is what the stores that keep records in SQL tables have in common: which columns a record stands in, and how it
// comes back from them. No query is here: those are each engine's own.
//
//	layout.go   the columns of a table in one fixed order, what a record puts into them, and in which two states of it differ
//	row.go      the columns of a row as a record again, with and without its opaque bodies
//	put.go      the state that a row of a Put gives its record; which records leave tombstones
//	listing.go  which index a list goes along, and what must be tested row by row
//	page.go     a page of rows, and where the next one begins
//	schema.go   all columns of a table, and what the rows of another program's are given
//	keys.go     what a store knows of itself, one row of UVHoldfast for each thing
//	position.go how far it is
//	batch.go    whether a batch is the next one
//	changes.go  how far a page of changes goes, and which positions are none of the store's
//	sweep.go    a pass over finished records, for Prune
//	odd.go      the decisions that a batch must be told again when it comes twice
package tables
