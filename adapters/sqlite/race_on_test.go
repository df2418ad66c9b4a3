//go:build race

package sqlite

// slowdown divides the sizes of tests: the engine is Go code, and the race detector makes it ten times slower.
const slowdown = 10
