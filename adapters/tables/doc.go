// Package tables is what the stores that keep records in SQL tables have in common: which columns a record stands in, and how it
// comes back from them. No statement is here: those are each engine's own.
//
//	layout.go   the columns of a table in one fixed order, what a record puts into them, and in which two states of it differ
//	row.go      the columns of a row as a record again, with and without its opaque bodies
//	page.go     a page of rows, and where the next one begins
//	schema.go   all columns of a table, and what the rows of another program's are given
//	keys.go     what a store knows of itself, one row of UVHoldfast for each thing
//	position.go how far it is
//	batch.go    whether a batch is the next one
//	odd.go      the decisions that a batch must be told again when it comes twice
package tables
