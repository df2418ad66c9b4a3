// Package reference is a backend that keeps history in memory, the plainest that there can be: a full local store with every
// power, clear rather than fast. It shows what the contract of ports.Backend asks for, and proves that the conformance suite
// can be passed by something that is not SQLite.
//
//	var disks reference.Disks
//	s := disks.New()
//	err := s.Configure(ctx, ports.Configuration{DataDir: dir})
//
// What it keeps belongs to its DataDir and outlives it: another store of the same Disks, configured with the same DataDir,
// goes on with it after Close or Kill. Nothing outlives the process.
//
//	disk      what is kept, and how an effect or a row changes it
//	commit    Stand, Open and Commit; what a write does is up to ports.Decide
//	put       Put and Position
//	changes   what changed after a position
//	list      the readers; page cuts their lists
//	walk      Export and Prune
package reference
