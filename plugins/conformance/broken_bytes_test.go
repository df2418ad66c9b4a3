package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"holdfast/ports"
)

// Stores that look into what they only keep.
var bytesDefects = []defect{
	{
		name: "rewrites numbers", found: []string{"bytes/numbers", "bytes/spelling", "bytes/columns", "bytes/text"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					var decoded map[string]any
					if json.Unmarshal(r.Body, &decoded) != nil {
						return r.Body
					}
					again, err := json.Marshal(decoded)
					if err != nil {
						return r.Body
					}
					return again
				}))
			}}
		},
	},
	{
		name: "takes white space out", found: []string{"bytes/spelling", "bytes/manifest"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					var dense bytes.Buffer
					if json.Compact(&dense, r.Body) != nil {
						return r.Body
					}
					return dense.Bytes()
				}))
			}}
		},
	},
	{
		name: "takes null for absent", found: []string{"bytes/blanks", "bytes/columns"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					return rebuilt(members(r.Body), func(m ports.Member) bool { return string(m.Value) != "null" })
				}))
			}}
		},
	},
	{
		name: "keeps only members that it knows", found: []string{"bytes/unknown", "put/replaced", "put/stored"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					return rebuilt(members(r.Body), func(m ports.Member) bool {
						_, known := ports.TableOf(r.Kind).Place([]byte(m.Name))
						return known
					})
				}))
			}}
		},
	},
}

// rebuilt makes a body of some of its members.
func rebuilt(list []ports.Member, keep func(m ports.Member) bool) []byte {
	var kept []string
	for _, m := range list {
		if keep(m) {
			kept = append(kept, string(ports.AppendQuoted(nil, m.Name))+":"+string(m.Value))
		}
	}
	return []byte("{" + strings.Join(kept, ",") + "}")
}
