package beacon

import "holdfast/ports"

// Why a native beacon does not keep a part of the contract.
const (
	noRemoval  = "a beacon has no action that removes a queue record, and its events are never changed; manifests are removed and replaced"
	noLists    = "a beacon's lists are cut without a word and have no cursor; it answers reads by key"
	noSpelling = "a beacon keeps values, not their spelling: what comes back otherwise than it was put is answered with unimplemented, and the router asks the next backend"
)

// optOuts is what of the contract a native beacon cannot keep.
var optOuts = []ports.OptOut{
	{Of: "put/removed", Reason: noRemoval},
	{Of: "put/in-order", Reason: noRemoval},
	{Of: "put/replaced", Reason: noRemoval},
	{Of: "order/last-wins", Reason: noRemoval},
	{Of: "order/stamps", Reason: noRemoval},
	{Of: "concurrency/own-writes", Reason: noRemoval},
	{Of: "concurrency/one-key", Reason: noRemoval},
	{Of: "paging/changes", Reason: noRemoval},
	{Of: "paging/cursors", Reason: noRemoval},
	{Of: "paging/elsewhere", Reason: noLists},
	{Of: "paging/bytes", Reason: "a beacon gives the events of a key all at once, however large they are"},
	{Of: "durability/closed", Reason: noRemoval},
	{Of: "durability/killed", Reason: noRemoval},
	{Of: "durability/drained", Reason: noRemoval},
	{Of: "lists", Reason: noLists},
	{Of: "bytes/spelling", Reason: noSpelling},
	{Of: "bytes/numbers", Reason: noSpelling},
	{Of: "bytes/text", Reason: noSpelling},
	{Of: "bytes/unknown", Reason: noSpelling},
	{Of: "bytes/manifest", Reason: noSpelling},
	{Of: "limits/record", Reason: "a record travels to a beacon inside of a work, and a work has 64 MiB in all"},
	{Of: "position/store-id", Reason: "each family may stand behind a beacon of its own, and has an id of its own"},
}
