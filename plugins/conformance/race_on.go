//go:build race

package conformance

// raced: the race detector makes a record of 64 MiB take half a minute.
const raced = true
