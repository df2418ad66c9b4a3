package sqlite

import (
	"context"
	"errors"

	"holdfast/ports"
)

// Survey counts what the store holds; see ports.Surveyor. What was not counted when the deadline came counts as nothing.
func (s *Store) Survey(ctx context.Context) (ports.Survey, error) {
	f, err := s.open(ctx)
	if err != nil {
		return ports.Survey{}, err
	}
	survey := ports.Survey{Counts: map[ports.Kind]int64{}, Bytes: f.bytes()}
	for _, l := range layouts {
		var n int64
		err := f.readers.QueryRowContext(ctx, `SELECT count(*) FROM "`+l.Table.Name+`"`).Scan(&n)
		if errors.Is(timedOut(ctx, err), context.DeadlineExceeded) {
			survey.Partial = true
			return survey, nil
		}
		if err != nil {
			return ports.Survey{}, s.readFault(ctx, "sqlite: survey", err)
		}
		survey.Counts[l.Table.Kind] = n
	}
	return survey, nil
}
