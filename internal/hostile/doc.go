// Package hostile is a plugin that goes wrong on purpose, to find out what a host stands. It is a real store, adapters/sqlite
// behind the wire of the SDK, with one fault. Tests build the program in plugin/ and give it a name of the form
// holdfast-backend-FAULT, one link for each fault: a fault before the handshake has no option to come from.
//
//	dir/holdfast-backend-mute        the program: a SQLite backend that answers health checks and no call
//	dir/holdfast-backend-mute.on     while this file is there it goes wrong, else it is as good as any
//	dir/holdfast-backend-mute.seen   when it did: one time a line
//
// So a test decides when a fault begins and ends, and knows its evidence to the millisecond. Whatever a fault takes of the
// machine is bounded: memory, files, the lives of children.
package hostile
