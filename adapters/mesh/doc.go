// Package mesh is the hub of a beacon mesh: stock beacons connect to it, take work and report, and holdfast reaches the
// backends that live behind them through it.
//
//	beacons                     the hub                                               who has work
//	           socket.go   +------------------------------------------------+
//	WebSocket <----------> | registry.go  who is there, by Name             |  dispatch.go
//	           frames.go   |     |                                          | <------------ ports.Mesh: followers, reads
//	                       |     v                                          |
//	polling   <----------> | works.go     waiting -> handed -> sent -> done | <------------ POST /Beacon/Work/Dispatch
//	           routes.go   |              slots of each beacon              |
//	                       |     |                                          |
//	                       |     v                                          |
//	tools     <----------> | record.go    what outside callers had done ----+--> the Door
//	           history.go  |              reads of history <----------------+--- the core
//	                       +------------------------------------------------+
//
// What may be counted on:
//
//   - A beacon is its Name. It keeps its BeaconID for as long as the hub knows it; a lost socket makes it Offline and
//     deletes nothing. An older socket that closes never removes its successor.
//   - A work is completed once: by a report, by its caller's deadline, or because its beacon went away. What comes later is
//     told apart, gives the slot back, and changes nothing.
//   - A beacon never has more works than its MaxConcurrent, those included whose caller has given up; a slot comes back with
//     the report, or a while after nobody can expect one any more.
//   - A probe goes before a read, a read before a live write, a live write before catching up, which never takes the last slot.
//   - Pollers get work, silent beacons go Offline, and a beacon that the hub does not know is told 401, so that it registers
//     again. Pings find half-open sockets. A refused upgrade is refused before it.
//   - Everything has a limit (Limits), and reaching one is a typed refusal: beacons, sockets, frames, bodies, waiting works.
//
// The package is one Hub:
//
//	hub, err := mesh.New(mesh.Config{Name: "holdfast", Core: mesh.Over(host), Logger: logger})
//	go hub.Run(ctx)                              // until ctx ends; then every socket is closed and every caller answered
//	http.Serve(listener, hub.Beside(api))        // the hub's routes, and the API's
//	backends := mesh.Mesh(hub)                   // hub is a ports.Mesh
//
// And the other way round a Member: a beacon of somebody else's hub, which so keeps its history here. member.go tells of it.
package mesh
