// Package meadowproxy keeps history in any database behind a retold-databeacon, through the beacon's MeadowProxy capability. It is a
// follower, and reaches the beacon only through ports.Mesh. Which beacon, and which of its connections, the host's assignment says:
//
//	backend "meadowproxy" "databeacon" {
//	  timeout = "4s" # how long the databeacon may take for one request
//	}
//
//	holdfast assign databeacon-1 1
//
//	               mesh: who is there, what is assigned
//	                              |
//	                 binding.go, dock.go   a seat for each family, level-triggered
//	                              |
//	                 bootstrap.go, schema.go, endpoints.go   tables, columns, paths; again after each reconnect
//	                              |
//	                 ledger.go, steps.go   which store it is, and how far: UVHoldfast, in the database itself
//	                              |
//	Probe, Put, reads --> half.go, sight.go, copy.go, readers.go   is it the store that the host knows?
//	                              |
//	                 way.go   one connection: rows become columns, requests go one work at a time
//
// What a databeacon is. Its actions make tables and endpoints; its MeadowProxy passes HTTP requests on to the REST interface of each
// table. Nothing there is transactional or conditional, filters that it does not understand are ignored, lists end at 250, errors are
// the engine's, and after a restart it has forgotten which paths it may serve and no longer tells where its endpoints are. So:
//
//   - Everything is bound to one session of one beacon and one connection. What belongs to a binding that is over is not sent.
//   - A binding is made by a bootstrap, which may be repeated at any time, and is repeated in each session and whenever an answer shows
//     that the databeacon forgot.
//   - The database itself says which store it is and how far. Every batch is compared with that before its rows and before its position,
//     and so is every Probe. A database that was emptied, replaced or set back is found out, and shows nothing before the host knows.
//     That holds for an older copy that takes its place at any moment of a batch as well, also for one that is at the same position; see
//     steps.go. Two things are not found out without a reconnect: a copy that was made during a batch and is back before this batch has
//     ended, and, in the same batch, a copy that is no older one, but went another way since: an identity may mean another record there,
//     which is overwritten. Verify shows both, and resync mends them.
//   - Works outlive this process at the beacon, so the backend is not Contained, and the host keeps keys in doubt.
//
// The record's own text always comes back byte for byte: columns are projections for people and filters, and what an engine cannot
// hold in one stands beside it; see project.go.
package meadowproxy
