// Package conformance is the suite that says whether a backend keeps the contract of ports.Backend, in whatever language it
// is written. The same cases run in three ways:
//
//	in-process     func TestConformance(t *testing.T) { conformance.Run(t, conformance.InProcess(func() ports.Backend { return tape.New() })) }
//	subprocess     conformance.Run(t, Subject{Open: ...}) over a started plugin
//	any executable holdfast plugin check PATH, which calls Check and prints its Report
//
// A topic is a file, a case is one row in its table: a name, the rule in one sentence, what it needs, and a function. Each
// case gets a backend of its own with nothing in it. A call that hangs fails its case and is given up, a panic does the same,
// and the next case gets a new backend. A case that failed tells what is wrong and the last calls before it.
//
// What a backend does not offer (a power that it does not declare, a family that it does not keep) is left out and listed;
// what it offers and does not keep to the letter, it declares in Description.OptOuts with a reason. A backend that declares
// nothing is asked everything, and what it keeps is seen through whatever reader it has. In the end there is one line:
//
//	certified holdfast.backend.v1: 79/79, opt-outs: LocalStore (not offered), durability (memory ends with its process)
//
// Topics for every backend:
//
//	describe probe     what it says of itself, whether it can take a write
//	put position order plain states, how far the store is, who wins
//	readers lists      records by key, lists with their filters and orders
//	paging             every border, while records change, half at one backend and half at another
//	bytes limits       what nobody looks into comes back as it was written, up to the largest
//	errors deadlines   refusals by code, calls whose time is over
//	concurrency        many callers at a time
//	durability drain   what outlives the process, and how it ends
//
// and for local stores: decide, hub, commit, epochs, changes, freshness, copying, prune, export and survey.
package conformance
