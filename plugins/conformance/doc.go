// Package conformance is the suite that says whether a backend keeps the contract of ports.Backend, in whatever language it
// is written. The same cases run in three ways:
//
//	in-process     func TestConformance(t *testing.T) { conformance.Run(t, conformance.InProcess(func() ports.Backend { return tape.New() })) }
//	subprocess     conformance.Run(t, Subject{Open: ...}) over a started plugin
//	any executable holdfast plugin check PATH, which calls Check and prints its Report
//
// A topic is a file, a case is one row in its table: a name, the rule in one sentence, what it needs, and a function. Each
// case gets a backend of its own with nothing in it. What a backend does not offer (a power that it does not declare, a family that it does not
// keep) is left out and listed; what it offers and does not keep to the letter, it declares in Description.OptOuts with a
// reason. A backend that declares nothing is asked everything.
package conformance
