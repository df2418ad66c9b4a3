// Package e2e runs the real thing: a built holdfast host with its real plugins, in processes that a test may kill, and
// compares what it answers with the reference model.
//
//	host := e2e.Start(t)                       // builds once, starts, waits until ready; stopped and checked at the end
//	host.Client().Do(t, "QP_UpsertWorkItem", settings)
//	host.Kill()                                // SIGKILL, plugins left to notice
//	host.Restart(t)
//	e2e.Compare(t, host.Client(), model)
//
// Mirrored gives the host further SQLite files beside its local store, each of which a test may kill, freeze and take away
// alone:
//
//	host := e2e.StartWith(t, e2e.Mirrored("mirror"))
//	host.Hold(t, "mirror")                     // killed, and not to be started
//	host.Free(t, "mirror")
//	host.AwaitEqual(t)
//	host.Verify(t, "local", "mirror")
//
// HOLDFAST_BIN names a built binary, with plugins/ beside it; without it the host and the sqlite plugin are built.
// HOLDFAST_SOAK=1 makes the tests that kill at random moments long.
package e2e
