// Package stock is a stand-in for the database beacon of the stock software, retold-databeacon 1.0.31 with meadow-endpoints behind it:
// the actions by which a hub makes tables and endpoints, and the REST dialect that it serves through MeadowProxy, on real SQLite
// databases. What the original gets wrong is kept on purpose: it is what holdfast has to live with. It is held to recorded traffic by
// tests. It speaks no socket; whoever does hands it one work at a time.
//
//	Databeacon   its connections, its actions, its REST answers; restarted, or made to fail, on command
//	Manner       which engine it pretends to have behind it: what types hold, how errors read, how values come back
//	Mesh         databeacons in this process behind ports.Mesh, for tests of what lives behind them
//
// Every value lies in a SQLite file, whatever the manner, with the declared types of the engine that is played; so a test may look
// into a database, wipe it or put an older copy in its place.
//
// Not played: the actions Aggregate and Join, filters by JSON path or by date, the control API on the beacon's own port.
//
// It serves tests only, but those of several packages, and so is no test package itself.
package stock
