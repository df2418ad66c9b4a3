// Package bench measures how fast holdfast is, in one run, beside what it is measured against:
//
//	go test -run '^$' -bench . -benchtime 1x -timeout 1h ./internal/bench
//
// It prints one table. Every figure is the median of interleaved rounds, [least-most] behind it, and a ratio is taken within
// a round: compare ratios of one run, never figures of two. Targets are printed beside the figures, met or missed, and never
// asserted: a benchmark on a busy machine must not break a build. -bench selects the parts: Writes, Followers, Beacons, Lists, Journal, Plugin.
// Flags stand behind -args: -rounds N, -json FILE, and -long (or BENCH_LONG=1), which adds lists over a million items.
// HOLDFAST_BIN names the binary to measure, with plugins/ beside it; without it the host and the sqlite plugin are built.
//
// What it compares:
//
//   - bare: modernc through database/sql, prepared statements, batches of 1,024, synchronous=FULL, the tables, columns and
//     indexes of the store, values decoded before the clock starts (workload.Bare).
//   - one process: a net/http server that parses a call, puts it into the next group commit of the same statements, and
//     answers; no journal, no plugin. It runs in a process of its own, as the host does.
//   - holdfast: the built binary with the sqlite plugin, once for each ack.
//   - bare copy: the rows of a file into a new one, in the order of their changes, by one upsert for each (BareBatch at once).
//   - a mirror: a second sqlite backend that follows. How far it is behind is seen in its file; the writes beside it are
//     measured without it, while it has everything, while it is filled from zero, and again while it has everything.
//   - a beacon: a stock one in a process of its own, behind the backend of that kind in the mirror's place. It leaves, 50,000 changes
//     are made (-backlog N), and it comes back: the writes beside its catching up, and those before, while it was away, and afterwards.
//   - a plugin: from its launch to the first answer that counts, a call and a batch that do nothing, and a thousand writes into
//     SQLite here and behind the boundary. From the death of the local store's plugin to the first write that is decided, 50 times:
//     each in a host of its own, because only the first death of a plugin that was well is followed at once.
//
// Whatever is compared with bare begins with an empty file and writes the same items, so that their files have the same size at every step. The load comes
// from net/http clients in the process of the benchmark, on the same processors: about a third of the cost of every write over
// HTTP is theirs. An item is six writes of about 800 bytes a line (workload.Lines), those of 64 items interleaved in bulk.
//
// Bare needs one processor and holdfast two, so other work on the machine lowers the ratios. The part about processor time
// tells what a write costs whatever else runs.
package bench
