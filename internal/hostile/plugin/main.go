// Command plugin is the plugin of package hostile.
package main

import (
	"fmt"
	"os"

	"holdfast/internal/hostile"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == beChild {
		child()
		return
	}
	self, err := hostile.Self()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	before(self)
	go alone(self)
	serve(self)
}
