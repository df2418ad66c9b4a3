// Command holdfast-backend-sqlite is the plugin for history in one SQLite file; adapters/sqlite has its options.
package main

import (
	"holdfast/adapters/sqlite"
	"holdfast/plugins/sdk"
)

func main() { sdk.Serve(sqlite.New()) }
