package conformance

import (
	"fmt"
	"strings"
)

// readable makes a value of the port fit for JSON that people read: a body is JSON itself, not base64.
func readable(value any) any { return value }

// traced writes exchanges as people read them.
func traced(list []Exchange) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "  %s\n    asked    %s\n", e.Call, e.Request)
		if e.Err != "" {
			fmt.Fprintf(&b, "    refused  %s\n", e.Err)
			continue
		}
		fmt.Fprintf(&b, "    answered %s\n", e.Answer)
	}
	return b.String()
}
