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
//   - A beacon never has more works than its MaxConcurrent, those included whose caller has given up: a slot comes back with
//     the report, or when the connection is lost over which one could come. New work waits meanwhile, or goes to another beacon.
//   - A probe goes before a read, a read before a live write, a live write before catching up, which never takes the last slot.
//   - Pollers get work, silent beacons go Offline, and a beacon that the hub does not know is told 401, so that it registers
//     again. A beacon that answers no ping gets no new work; one that is at a work keeps its socket all the same, for a client
//     with one thread reports only afterwards. A refused upgrade is refused before it.
//   - What a hub that was killed left open in the history, its next start ends: by a report that comes soon, or as unknown.
//   - Everything has a limit (Limits), and reaching one is a typed refusal: beacons, sockets, frames, bodies, waiting works.
//
// A hub of one machine needs no configuration. Others are let in by a login or by a secret:
//
//	mesh {
//	  name        = "holdfast"                     # HubInstanceID in what beacons get
//	  join_secret = env("HOLDFAST_JOIN_SECRET")    # JoinSecret in a beacon's configuration
//	  user "worker" {
//	    password = "pbkdf2-sha256$600000$..."      # by HashPassword, or the password itself
//	  }
//	}
//
// A stock client that has a join secret and no login gets a cookie all the same, and is by it, over HTTP too, the beacon that it
// showed the secret for (guests.go). A socket with a wrong secret is rejected behind the upgrade, since the secret comes in its
// first frame, and a stock client that was rejected there waits for ever; a socket that cannot be let in at all is refused before
// it, and its client goes on.
//
// Of the stock hub it leaves out: works that outlive their caller (Enqueue, Run, retries, Cancel), bindings of affinity keys to
// the beacon that was first (a key is a beacon's Name, or says nothing), staged files, logins through an Authentication beacon,
// and the event streams of its pages. Asking for them is answered, not passed over.
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
