// Package stock holds stand-ins for the software at the other end of the mesh: a beacon client that behaves on the wire as
// ultravisor-beacon 1.0.5 does, and a hub that behaves as Ultravisor 1.3.24 does towards beacons. What those get wrong is kept
// on purpose: it is what holdfast has to live with. Both are held to recorded traffic by tests.
//
//	Beacon       registers, beats, polls or holds a socket, does work; with faults on command
//	Persistence  a QueuePersistence and ManifestStore beacon in memory, that can say what it holds
//	Hub          registers beacons, hands out work, keeps its history with the persistence beacon that joins
//	Transcript   recorded traffic, step by step, and the comparison of what was said with it
//
// It serves tests only, but those of several packages, and so is no test package itself.
package stock
