// Package sdk makes a ports.Backend a plugin. An author writes a backend and this main:
//
//	package main
//
//	import (
//		"holdfast/plugins/sdk"
//		"example.org/tape"
//	)
//
//	func main() { sdk.Serve(tape.New(sdk.Logger())) }
//
// The methods that the backend has beyond ports.Backend become its declared powers; an author who wants to declare fewer
// sets Description.Powers. A ports.Configurer gets the options before anything else is called; Options puts them into a
// struct. Readers makes every reader and the export out of one function that gives the rows of a key.
//
// Serve takes care of the rest of the contract: the handshake, message limits, the error codes, panics in calls, Drain, the
// end of the host, and signals, which the host answers for its plugins. What the author prints appears in the host's log.
package sdk
