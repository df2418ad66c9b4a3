// Command holdfast-backend-meadowproxy is the plugin for history behind a retold-databeacon; adapters/meadowproxy has its options.
package main

import (
	"holdfast/adapters/meadowproxy"
	"holdfast/plugins/sdk"
)

func main() { sdk.Serve(meadowproxy.New(sdk.Mesh)) }
