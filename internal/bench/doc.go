// Package bench measures how fast holdfast is, in one run, beside what it is measured against:
//
//	go test -run '^$' -bench . -benchtime 1x -timeout 1h ./internal/bench
//
// It prints one table. Every figure is the median of interleaved rounds, [least-most] behind it, and a ratio is taken within
// a round: compare ratios of one run, never figures of two. Targets are printed beside the figures, met or missed, and never
// asserted: a benchmark on a busy machine must not break a build. -bench selects the parts: Writes, Lists, Journal, Plugin.
// Flags stand behind -args: -rounds N, -json FILE, and -long (or BENCH_LONG=1), which adds lists over a million items.
// HOLDFAST_BIN names the binary to measure, with plugins/ beside it; without it the host and the sqlite plugin are built.
//
// What it compares:
//
//   - bare: modernc through database/sql, prepared statements, batches of 1,024, synchronous=FULL, the whole schema of ports
//     with our columns and indexes, values decoded before the clock starts.
//   - one process: a net/http server that parses a call, puts it into the next group commit of the same statements, and
//     answers; no journal, no plugin. It runs in a process of its own, as the host does.
//   - holdfast: the built binary with the sqlite plugin, once for each ack.
//
// All begin with an empty file and write the same items, so that their files have the same size at every step. The load comes
// from net/http clients in the process of the benchmark, which takes its part of the machine: about a third of every rate
// over HTTP on two cores. An item is six writes: one upsert of 36 members, two events, two patches, one outcome of an attempt;
// 709 bytes a line. In bulk the lines of 64 items are interleaved.
package bench
