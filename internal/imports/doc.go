// Package imports holds the rule of who may import whom, as a test: the picture of the architecture that cannot go stale.
//
//	ports -> nothing         core -> ports          adapters/wire -> ports, plugins/proto
//	driven adapters -> ports (process also -> wire,  httpapi -> core, ports
//	                   the two SQL stores -> line, tables)
//	plugins/sdk -> ports, wire                       plugins/NAME -> one adapter, plugins/sdk
//	cmd -> everything        internal -> only for cmd and tests        nobody -> cmd
package imports
