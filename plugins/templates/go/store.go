// Command holdfast-backend-tape keeps history in memory: put your store in the place of its map.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// Store keeps rows as they came, so that every byte comes back. Each process has a store of its own, with an id of its own.
type Store struct {
	sdk.Readers // Item, Items, Events, Attempts, Manifest, Manifests and Export, made of read
	mu          sync.Mutex
	id          string
	maxBody     int64
	rows        sdk.Memory // of each key: an item with its events and attempts, or a manifest
	at          map[ports.Family]ports.Position
}

func (s *Store) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "tape", Version: "0.1", Summary: "Keeps history in memory.", Families: ports.Families, Contained: true,
		Options: []ports.Option{{Name: "max_body", Type: ports.OptionSize, Default: "64MiB", Help: "the largest record that it takes"}},
		OptOuts: []ports.OptOut{{Of: "durability", Reason: "memory ends with its process"}},
	}, nil
}

func (s *Store) Configure(_ context.Context, c ports.Configuration) error {
	options := map[string]int64{"max_body": ports.MaxRecordBytes}
	if err := json.Unmarshal(c.Options, &options); err != nil || options["max_body"] < 1 {
		return ports.InField(ports.Invalid, "max_body", "must be a size above 0")
	}
	s.id, s.maxBody, s.Readers = rand.Text(), options["max_body"], s.read
	s.rows, s.at = sdk.Memory{}, map[ports.Family]ports.Position{}
	return nil
}

func (s *Store) Probe(context.Context, ports.Family) error { return nil }
func (s *Store) Close() error                              { return nil }

func (s *Store) Position(_ context.Context, f ports.Family) (ports.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ports.Position{StoreID: s.id, Epoch: s.at[f].Epoch, Seqs: s.at[f].Seqs}, nil
}

func (s *Store) Put(_ context.Context, b ports.Batch) (ports.Applied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.at[b.Family]; b.After != nil && (b.After.StoreID != s.id || !at.Covers(*b.After) || !b.After.Covers(at)) {
		return ports.Applied{}, ports.InField(ports.Conflict, ports.FieldPosition, "this is store %s at %v", s.id, at.Seqs)
	}
	for i, r := range b.Rows {
		if size := int64(len(r.Body)); size > s.maxBody {
			return ports.Applied{Done: i}, ports.OverLimit("Body", "bytes", s.maxBody, size)
		}
		s.rows.Put(r)
	}
	if b.Position != nil {
		s.at[b.Family] = *b.Position // together with the rows
	}
	return ports.Applied{Done: len(b.Rows)}, nil
}

func (s *Store) read(_ context.Context, key string) ([]ports.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows.Of(key), nil
}
