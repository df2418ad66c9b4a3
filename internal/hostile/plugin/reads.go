package main

import (
	"context"

	"holdfast/internal/hostile"
	pb "holdfast/plugins/proto/backendv1"
)

// What goes wrong in reads.

// spoil changes rows that are on their way to a reader.
func (f *faulty) spoil(rows ...*pb.Row) {
	if len(rows) == 0 {
		return
	}
	switch {
	case f.is(hostile.Garbage):
		for _, row := range rows {
			row.Body = []byte("{\"WorkItemHash\":\x00}, ]\"")
		}
	case f.is(hostile.WrongKey):
		for _, row := range rows {
			row.Key = "another"
			row.Body = []byte(`{"WorkItemHash":"another","Hash":"another"}`)
		}
	}
}

func (f *faulty) Item(ctx context.Context, m *pb.ItemRequest) (*pb.ItemResponse, error) {
	if err := f.hush(ctx); err != nil {
		return nil, err
	}
	answer, err := f.BackendServer.Item(ctx, m)
	if err == nil {
		f.spoil(answer.Row)
	}
	return answer, err
}

func (f *faulty) Items(ctx context.Context, m *pb.ItemsRequest) (*pb.ItemsResponse, error) {
	return spoiled(f, ctx, m, f.BackendServer.Items)
}

func (f *faulty) Events(ctx context.Context, m *pb.EventsRequest) (*pb.EventsResponse, error) {
	return spoiled(f, ctx, m, f.BackendServer.Events)
}

func (f *faulty) Attempts(ctx context.Context, m *pb.AttemptsRequest) (*pb.AttemptsResponse, error) {
	return spoiled(f, ctx, m, f.BackendServer.Attempts)
}

func (f *faulty) Manifest(ctx context.Context, m *pb.ManifestRequest) (*pb.ManifestResponse, error) {
	if err := f.hush(ctx); err != nil {
		return nil, err
	}
	answer, err := f.BackendServer.Manifest(ctx, m)
	if err == nil {
		f.spoil(answer.Row)
	}
	return answer, err
}

func (f *faulty) Manifests(ctx context.Context, m *pb.ManifestsRequest) (*pb.ManifestsResponse, error) {
	return spoiled(f, ctx, m, f.BackendServer.Manifests)
}

func (f *faulty) Changes(ctx context.Context, m *pb.ChangesRequest) (*pb.ChangesResponse, error) {
	if err := f.hush(ctx); err != nil {
		return nil, err
	}
	answer, err := f.BackendServer.Changes(ctx, m)
	if err == nil {
		f.spoil(answer.Rows...)
	}
	return answer, err
}

// spoiled is a list with the faults of reads.
func spoiled[Q any, A interface{ GetPage() *pb.Page }](f *faulty, ctx context.Context, m Q, read func(context.Context, Q) (A, error)) (A, error) {
	if err := f.hush(ctx); err != nil {
		var none A
		return none, err
	}
	answer, err := read(ctx, m)
	if err == nil {
		f.spoil(answer.GetPage().GetRows()...)
	}
	return answer, err
}
