package main

import (
	"holdfast/adapters/sqlite"
	"holdfast/plugins/sdk"
)

func main() { sdk.Serve(sqlite.New()) }
