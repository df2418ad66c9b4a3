// Package acceptance holds what a caller and an operator rely on against the real thing: the built host, its plugin in a
// process of its own, real files on real disks, real kills. Each file is one promise.
//
//	go test ./internal/acceptance/                     a few minutes; the full disk needs root
//	HOLDFAST_SOAK=1 go test ./internal/acceptance/     ten times the rounds, and whatever may happen at random
package acceptance
