package wire

import (
	"context"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// The optional powers, served.

func (s *server) Stand(ctx context.Context, m *pb.StandRequest) (*pb.StandResponse, error) {
	return power(s, func(p ports.LocalStore) (*pb.StandResponse, error) {
		standing, err := p.Stand(ctx, m.HostId)
		return standingOut(standing), err
	})
}

func (s *server) Open(ctx context.Context, m *pb.OpenRequest) (*pb.OpenResponse, error) {
	return power(s, func(p ports.LocalStore) (*pb.OpenResponse, error) {
		return &pb.OpenResponse{}, p.Open(ctx, openingIn(m))
	})
}

func (s *server) Item(ctx context.Context, m *pb.ItemRequest) (*pb.ItemResponse, error) {
	return power(s, func(p ports.ItemReader) (*pb.ItemResponse, error) {
		row, err := p.Item(ctx, m.Key)
		return &pb.ItemResponse{Row: rowsOut([]ports.Row{row})[0]}, err
	})
}

func (s *server) Items(ctx context.Context, m *pb.ItemsRequest) (*pb.ItemsResponse, error) {
	return power(s, func(p ports.ItemReader) (*pb.ItemsResponse, error) {
		page, err := p.Items(ctx, itemsIn(m))
		return &pb.ItemsResponse{Page: pageOut(page)}, err
	})
}

func (s *server) Events(ctx context.Context, m *pb.EventsRequest) (*pb.EventsResponse, error) {
	return power(s, func(p ports.EventReader) (*pb.EventsResponse, error) {
		page, err := p.Events(ctx, eventsIn(m))
		return &pb.EventsResponse{Page: pageOut(page)}, err
	})
}

func (s *server) Attempts(ctx context.Context, m *pb.AttemptsRequest) (*pb.AttemptsResponse, error) {
	return power(s, func(p ports.AttemptReader) (*pb.AttemptsResponse, error) {
		page, err := p.Attempts(ctx, attemptsIn(m))
		return &pb.AttemptsResponse{Page: pageOut(page)}, err
	})
}

func (s *server) Manifest(ctx context.Context, m *pb.ManifestRequest) (*pb.ManifestResponse, error) {
	return power(s, func(p ports.ManifestReader) (*pb.ManifestResponse, error) {
		row, err := p.Manifest(ctx, m.Key)
		return &pb.ManifestResponse{Row: rowsOut([]ports.Row{row})[0]}, err
	})
}

func (s *server) Manifests(ctx context.Context, m *pb.ManifestsRequest) (*pb.ManifestsResponse, error) {
	return power(s, func(p ports.ManifestReader) (*pb.ManifestsResponse, error) {
		page, err := p.Manifests(ctx, manifestsIn(m))
		return &pb.ManifestsResponse{Page: pageOut(page)}, err
	})
}

func (s *server) Export(ctx context.Context, m *pb.ExportRequest) (*pb.ExportResponse, error) {
	return power(s, func(p ports.Exporter) (*pb.ExportResponse, error) {
		page, err := p.Export(ctx, exportIn(m))
		return &pb.ExportResponse{Page: pageOut(page)}, err
	})
}

func (s *server) Prune(ctx context.Context, m *pb.PruneRequest) (*pb.PruneResponse, error) {
	return power(s, func(p ports.Pruner) (*pb.PruneResponse, error) {
		pruned, err := p.Prune(ctx, pruneIn(m))
		return &pb.PruneResponse{
			Items: pruned.Items, Events: pruned.Events, Attempts: pruned.Attempts, Manifests: pruned.Manifests, More: pruned.More,
		}, err
	})
}

func (s *server) Survey(ctx context.Context, _ *pb.SurveyRequest) (*pb.SurveyResponse, error) {
	return power(s, func(p ports.Surveyor) (*pb.SurveyResponse, error) {
		survey, err := p.Survey(ctx)
		return surveyOut(survey), err
	})
}
