// Package beacon keeps history behind a native beacon: one that offers the capability QueuePersistence, ManifestStore or both.
// It is a follower, and reaches the beacon only through ports.Mesh.
//
//	backend "beacon" "beacon" {
//	  beacon  = "archive" # the beacon's Name; default: the first one that offers the family, and then that one
//	  timeout = "4s"      # how long the beacon may take for what is asked of it
//	}
//
//	          +-- fleet.go  who is there
//	Probe --> |
//	Put   --> half.go  which beacon, and is it the store that it was? --> put.go  keys side by side, a key in order
//	reads --> |            |                                                 |  turns.go   none behind a later Put
//	          |            |                                                 |  write.go   items, events once, attempts
//	          |            v                                                 |  known.go   what is in already
//	          |        compare.go  the last 32 keys, after each reconnect    v
//	          |        ledger.go   a small file beside the host's            call.go, reply.go  one work, and what its answer means
//	          +-- read.go  records by key
//
// What a stock beacon keeps. It knows no position, no StoreID and no removal of queue records; an upsert lays members over
// those that are there, an update of an unknown key is swallowed, events are only ever appended. Some keep a record as it is,
// others only the columns that they know, and write values in their own way. So:
//
//   - Items go whole, by QP_UpsertWorkItem. Manifests go whole, by MS_UpsertManifest.
//   - Each item, event and manifest carries one more member, HoldfastRow: what its first write fixed, who changed it last,
//     which members were put, and a sum over them. A read answers a record only when what the beacon gives back, less what
//     was not put, has that sum; else it fails with Unimplemented and the router asks the next backend. Nothing that a beacon
//     lost or respelled is ever shown as the record.
//   - An event is sent only when QP_GetEvents does not show it. It is shown by an entry with its EventGUID; or, at a beacon
//     that keeps no GUIDs, by one without any that has its content and that no other event of the key has claimed. Two events
//     of a key with the same content are told apart there only as long as the first one is remembered.
//   - Attempts are inserted and then patched, so that a beacon that ignores the second insert has the row as well. There is no
//     action that reads them.
//   - The position and a generation (the StoreID) of each family are kept in beacon-NAME.json in the data directory, with
//     digests of the last 32 keys that were put. After each reconnect those keys are read; one missing or different means
//     that the beacon came back empty or older: a new generation begins, and the host copies everything from zero.
//   - Removals of queue records have no action and are refused for good; a record that is not there counts as removed.
//
// Works outlive this process at the beacon, so the backend is not Contained, and the host keeps keys in doubt.
package beacon
