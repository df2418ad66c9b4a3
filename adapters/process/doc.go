// Package process starts backend plugins, keeps them running and stops them. A Process is a ports.LocalStore with all powers
// (ports.As tells which of them the plugin declared) that outlives its children: calls go to the present child, and fail at
// once with BackendGone while there is none.
//
//	dir, err := process.OpenRunDir("")          // private, short, swept after a crash of the host
//	p, err := process.New(process.Spec{Name: "local", Kind: "sqlite", Path: "bin/plugins/holdfast-backend-sqlite", RunDir: dir.Path(), ...})
//	p.Start()
//	err = p.Await(ctx)                          // why the first launch failed, if it did; it is tried again all the same
//	defer p.Stop(ctx)
//
// go-plugin does the handshake and the connection; starting and ending the program is done here (runner.go), because a
// plugin may print anything, hang, fork, ignore signals, or lose its host:
//
//	launch      check the files, start the program, read the handshake, Describe, Configure; failure tells what went wrong
//	executable, keepers, checksum, sight   may this file be started: what it is, who can change it, is it the one that was locked
//	program     one start of one executable: its process group, its standard streams, its end; memory bounds what it holds,
//	            strays ends what left its group
//	stdout, handshake      the handshake among what else the program prints
//	lines, entry, words, allowance   what it says on stderr, into the log, and the last of it for errors
//	child       a program that can be called; health tells whether it still answers; stop ends it within a bound
//	supervisor, backoff    the next child after a death
//	forward     ports.LocalStore and the powers
//
// Every child runs in a process group of its own and dies with the host: its stdin ends, and on Linux the kernel kills it.
// pitfalls_test.go lists what is known to break a host of plugins, with the test of each guard.
package process
