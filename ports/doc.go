// Package ports is the vocabulary of holdfast: what a record is, what may be written, what a write does to what is
// already there, what can be asked, and what a backend, a journal and the host's state must offer. Everything else in the
// project speaks in these words, and this package imports nothing but the standard library.
//
//	record, schema, projection    a record keeps each member's JSON as its caller wrote it; a column is a projection of it
//	write, decide                 the seven writes, and the one place that decides what each does (design: "Decisions")
//	query                         what can be asked, pages and their cursors
//	backend                       Backend, LocalStore and the optional powers, obtained with As
//	journal, state                what was promised, and what the host remembers
//	error                         the codes, and which of them are worth another try
//
// Read backend.go first, then decide.go.
package ports
