package conformance

import (
	"context"
	"sync"

	"holdfast/ports"
)

// Stores that do something else with a Put than they say.
var putDefects = []defect{
	{
		name: "forgets the position", found: []string{"position/stored", "position/moved-alone", "durability/position"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				b.Position = nil
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "has one position for both families", found: []string{"position/stored"},
		of: func(right whole) *broken {
			b := &broken{whole: right}
			b.position = func(ctx context.Context, _ ports.Family) (ports.Position, error) {
				return right.Position(ctx, ports.Queue)
			}
			b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
				if batch.Position != nil {
					if _, err := right.Put(ctx, ports.Batch{Family: ports.Queue, Position: batch.Position}); err != nil {
						return ports.Applied{}, err
					}
				}
				return right.Put(ctx, batch)
			}
			return b
		},
	},
	{
		name: "moves the position before the rows are in", found: []string{"position/stopped"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if b.Position != nil {
					if _, err := right.Put(ctx, ports.Batch{Family: b.Family, Position: b.Position, After: b.After}); err != nil {
						return ports.Applied{}, err
					}
				}
				b.After = nil
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "ignores After", found: []string{"position/elsewhere"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				b.After = nil
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "answers before it stores", found: []string{"durability/closed", "durability/position", "durability/drained", "durability/killed"},
		of: answersEarly,
	},
	{
		name: "merges instead of replacing", found: []string{"put/replaced"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					if present, err := right.Item(ctx, r.Key); r.Kind == ports.KindItem && err == nil {
						return mergedWith(present.Body, r.Body)
					}
					return r.Body
				}))
			}}
		},
	},
	{
		name: "keeps the newest state", found: []string{"order/last-wins"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				n := len(b.Rows)
				var newer []ports.Row
				for _, r := range b.Rows {
					if present, err := right.Item(ctx, r.Key); r.Kind != ports.KindItem || err != nil || present.Change.Seq <= r.Change.Seq {
						newer = append(newer, r)
					}
				}
				b.Rows = newer
				applied, err := right.Put(ctx, b)
				if err == nil {
					applied.Done = n
				}
				return applied, err
			}}
		},
	},
	{
		name: "counts Done wrongly", found: []string{"put/stopped"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				if err != nil {
					applied.Done = 0 // as if it took batches whole or not at all
				}
				return applied, err
			}}
		},
	},
	{
		name: "hides what it refuses", found: []string{"put/stopped"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				if ports.CodeOf(err) == ports.Invalid {
					return ports.Applied{Done: len(b.Rows)}, nil
				}
				return applied, err
			}}
		},
	},
	{
		name: "removes what belongs to a removed item", found: []string{"put/removed"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				for _, r := range b.Rows {
					page, listErr := right.Events(ctx, ports.EventQuery{Key: r.Key})
					if err != nil || listErr != nil || r.Kind != ports.KindItem || !r.Gone {
						continue
					}
					for i := range page.Rows {
						page.Rows[i].Gone, page.Rows[i].Body = true, nil
					}
					if _, err := right.Put(ctx, ports.Batch{Family: ports.Queue, Rows: page.Rows}); err != nil {
						return applied, err
					}
				}
				return applied, err
			}}
		},
	},
	{
		name: "appends every event again", found: []string{"put/repeated"},
		of: appendsAgain,
	},
	{
		name: "cuts long keys", found: []string{"limits/key"},
		of: func(right whole) *broken {
			cut := func(key string) string { return key[:min(len(key), 1024)] }
			b := &broken{whole: right}
			b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
				batch = bodies(batch, func(r *ports.Row) []byte {
					r.Key = cut(r.Key)
					return r.Body
				})
				return right.Put(ctx, batch)
			}
			b.item = func(ctx context.Context, key string) (ports.Row, error) {
				row, err := right.Item(ctx, cut(key))
				row.Key = key
				return row, err
			}
			return b
		},
	},
	{
		name: "quotes what it refuses", found: []string{"errors/secrecy"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				if err != nil && applied.Done < len(b.Rows) {
					err = ports.Errorf(ports.CodeOf(err), "put", "cannot store %s", b.Rows[applied.Done].Body)
				}
				return applied, err
			}}
		},
	},
	{
		name: "calls a bad record its own defect", found: []string{"errors/permanent", "put/stopped"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				if err != nil {
					err = ports.Errorf(ports.Internal, "put", "unexpected end of input")
				}
				return applied, err
			}}
		},
	},
}

// mergedWith gives a record over what is present.
func mergedWith(present, given []byte) []byte {
	was, err := ports.ParseRecord(ports.Items, present)
	if err != nil {
		return given
	}
	for _, m := range members(given) {
		was.Set(m.Name, m.Value)
	}
	return was.JSON()
}

// answersEarly keeps batches in memory until somebody asks for what is in them.
func answersEarly(right whole) *broken {
	var mu sync.Mutex
	var waiting []ports.Batch
	store := func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		for _, b := range waiting {
			_, _ = right.Put(ctx, b)
		}
		waiting = nil
	}
	b := &broken{whole: right}
	b.put = func(_ context.Context, batch ports.Batch) (ports.Applied, error) {
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, batch)
		return ports.Applied{Done: len(batch.Rows)}, nil
	}
	b.position = func(ctx context.Context, f ports.Family) (ports.Position, error) {
		store(ctx)
		return right.Position(ctx, f)
	}
	b.item = func(ctx context.Context, key string) (ports.Row, error) {
		store(ctx)
		return right.Item(ctx, key)
	}
	return b
}

// appendsAgain has an event as often as it was put.
func appendsAgain(right whole) *broken {
	var mu sync.Mutex
	times := map[string]int{}
	b := &broken{whole: right}
	b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range batch.Rows {
			times[r.GUID]++
		}
		return right.Put(ctx, batch)
	}
	b.events = func(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
		page, err := right.Events(ctx, q)
		mu.Lock()
		defer mu.Unlock()
		var rows []ports.Row
		for _, r := range page.Rows {
			for range times[r.GUID] {
				rows = append(rows, r)
			}
		}
		page.Rows = rows
		return page, err
	}
	return b
}
