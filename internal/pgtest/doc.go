// Package pgtest gives tests a real PostgreSQL that is thrown away: the machine's own binaries, or Debian's package, fetched into .tools
// and run from there. It works for root too, whom PostgreSQL refuses: the server then runs as another user.
//
//	dsn := pgtest.Shared(t).Database(t)          // a database of the test's own, on the one server of this process
//
//	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "20"}})
//	dsn := server.Database(t)
//	err := server.Stop(pgtest.Immediate)         // or Fast, or Kill(): what a test does to it
//	err = server.Resume()                        // at the same address, with what it had committed
//	standby := server.Standby(t, pgtest.Sync)    // then server.Kill() and standby.Promote()
//	disk := server.TinyDisk(t, 32)               // on which later databases lie; disk.Fill(), disk.Free()
//
//	bouncer := pgtest.StartBouncer(t, server, 4) // transaction pooling
//	link := tcpfault.Open(t, server.Addr())      // a bad network
//	dsn = pgtest.Through(t, dsn, link.Addr())    // the same database, reached through one of those
//
// Each server lies in a short private folder of the temporary directory. A keeper, which reads a pipe that only this process holds, ends
// the servers and removes the folder when this process is gone, however that came; so no test has to stop anything.
package pgtest
