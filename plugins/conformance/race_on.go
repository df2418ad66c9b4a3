//go:build race

package conformance

// raced says that the race detector watches: a record of 64 MiB takes half a minute then.
const raced = true
