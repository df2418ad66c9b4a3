// Command holdfast-backend-beacon is the plugin for history behind a native beacon; adapters/beacon has its options.
package main

import (
	"holdfast/adapters/beacon"
	"holdfast/plugins/sdk"
)

func main() { sdk.Serve(beacon.New(sdk.Mesh)) }
