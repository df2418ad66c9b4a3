// Command holdfast-backend-postgres is the plugin for history in a PostgreSQL database; adapters/postgres has its options.
package main

import (
	"holdfast/adapters/postgres"
	"holdfast/plugins/sdk"
)

func main() { sdk.Serve(postgres.New()) }
