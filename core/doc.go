// Package core holds the rules of holdfast: what is accepted, when it is answered, how it reaches the local store, who
// answers a read, and what the operator is told. It does no I/O of its own: journals, state and backends come in through
// ports, and so does the clock.
//
//	Call --> Door: check, ignore, stamp --> Journal --> commit loop --> local store
//	           |                                            |
//	           +------------- Promise.Wait <--- decision ---+
//	Call --> Router: who is fresh enough? --> local store --> Answer
//
// A Host is one running core. Begin accepts a call and returns at once with a Promise; Promise.Wait gives its Answer, at
// most two seconds later. Run drives everything in the background until its context ends.
package core
