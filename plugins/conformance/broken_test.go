package conformance

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/internal/reference"
	"holdfast/ports"
)

// The suite must find what is wrong. Each backend here is a right one with one defect that real stores had, and the cases
// that are meant to find it do, by name.

// whole is a backend with every power.
type whole interface {
	ports.LocalStore
	ports.Configurer
	ports.Pruner
	ports.Exporter
	ports.Drainer
	ports.Surveyor
}

// disks outlive the stores that are opened over them.
var disks reference.Disks

// right makes the backend that the defects are put into.
func right() whole { return disks.New() }

// broken is a backend in which some methods do something else.
type broken struct {
	whole
	describe  func(d ports.Description) ports.Description
	probe     func(ctx context.Context, f ports.Family) error
	position  func(ctx context.Context, f ports.Family) (ports.Position, error)
	put       func(ctx context.Context, b ports.Batch) (ports.Applied, error)
	item      func(ctx context.Context, key string) (ports.Row, error)
	items     func(ctx context.Context, q ports.ItemQuery) (ports.Page, error)
	events    func(ctx context.Context, q ports.EventQuery) (ports.Page, error)
	attempts  func(ctx context.Context, q ports.AttemptQuery) (ports.Page, error)
	manifest  func(ctx context.Context, key string) (ports.Row, error)
	manifests func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error)
	open      func(ctx context.Context, o ports.Opening) error
	commit    func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error)
	changes   func(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error)
	drain     func(ctx context.Context) error
	close     func() error
}

func (b *broken) Describe(ctx context.Context) (ports.Description, error) {
	d, err := b.whole.Describe(ctx)
	if b.describe != nil {
		d = b.describe(d)
	}
	return d, err
}

func (b *broken) Probe(ctx context.Context, f ports.Family) error {
	if b.probe != nil {
		return b.probe(ctx, f)
	}
	return b.whole.Probe(ctx, f)
}

func (b *broken) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	if b.position != nil {
		return b.position(ctx, f)
	}
	return b.whole.Position(ctx, f)
}

func (b *broken) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	if b.put != nil {
		return b.put(ctx, batch)
	}
	return b.whole.Put(ctx, batch)
}

func (b *broken) Item(ctx context.Context, key string) (ports.Row, error) {
	if b.item != nil {
		return b.item(ctx, key)
	}
	return b.whole.Item(ctx, key)
}

func (b *broken) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	if b.items != nil {
		return b.items(ctx, q)
	}
	return b.whole.Items(ctx, q)
}

func (b *broken) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	if b.events != nil {
		return b.events(ctx, q)
	}
	return b.whole.Events(ctx, q)
}

func (b *broken) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	if b.attempts != nil {
		return b.attempts(ctx, q)
	}
	return b.whole.Attempts(ctx, q)
}

func (b *broken) Manifest(ctx context.Context, key string) (ports.Row, error) {
	if b.manifest != nil {
		return b.manifest(ctx, key)
	}
	return b.whole.Manifest(ctx, key)
}

func (b *broken) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	if b.manifests != nil {
		return b.manifests(ctx, q)
	}
	return b.whole.Manifests(ctx, q)
}

func (b *broken) Open(ctx context.Context, o ports.Opening) error {
	if b.open != nil {
		return b.open(ctx, o)
	}
	return b.whole.Open(ctx, o)
}

func (b *broken) Commit(ctx context.Context, batch ports.CommitBatch) (ports.Pending, error) {
	if b.commit != nil {
		return b.commit(ctx, batch)
	}
	return b.whole.Commit(ctx, batch)
}

func (b *broken) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	if b.changes != nil {
		return b.changes(ctx, q)
	}
	return b.whole.Changes(ctx, q)
}

func (b *broken) Drain(ctx context.Context) error {
	if b.drain != nil {
		return b.drain(ctx)
	}
	return b.whole.Drain(ctx)
}

func (b *broken) Close() error {
	if b.close != nil {
		return b.close()
	}
	return b.whole.Close()
}

// defect is one way to be wrong, and the cases that find it.
type defect struct {
	name  string
	of    func(right whole) *broken
	found []string
}

var defects = slices.Concat(putDefects, batchDefects, bytesDefects, sizeDefects, readDefects, listDefects, lifeDefects, timeDefects, localDefects, restDefects)

// A case that nothing can fail says nothing.
func TestEveryCaseFindsSomething(t *testing.T) {
	t.Parallel()
	for _, c := range Cases() {
		if c.Topic == describeTopic || slices.Contains(c.Needs, "LocalStore") {
			continue
		}
		if !slices.ContainsFunc(defects, func(d defect) bool { return slices.Contains(d.found, c.Path()) }) {
			t.Errorf("no defect is meant for %s", c.Path())
		}
	}
}

func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var meant []string
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := subject(d.of)
			s.Patience = d.patience()
			for _, path := range d.found {
				report, err := Check(t.Context(), s, path, func(Result) {})
				switch {
				case err != nil:
					t.Errorf("%s: %v", path, err)
				case report.OK():
					t.Errorf("%s does not find it: %v", path, report.Results[0])
				case len(report.Results[0].Trace) == 0:
					t.Errorf("%s finds it and shows no call", path)
				}
			}
		})
		meant = append(meant, d.found...)
	}
	t.Run("and nothing in a right one", func(t *testing.T) {
		t.Parallel()
		slices.Sort(meant)
		for _, path := range slices.Compact(meant) {
			report, err := Check(t.Context(), subject(func(right whole) *broken { return &broken{whole: right} }), path, func(Result) {})
			if err != nil || report.Count(Passed) != 1 {
				t.Errorf("%s: %v, %v", path, err, report)
			}
		}
	})
}

// subject is how the suite gets at a broken store, and kills it.
func subject(of func(right whole) *broken) Subject {
	s := InProcess(func() ports.Backend { return of(right()) })
	s.Kill = func(b ports.Backend) { b.(*broken).whole.(*reference.Store).Kill() }
	return s
}

// patience is short for what hangs or waits; every other defect is found long before.
func (d *defect) patience() time.Duration {
	switch d.name {
	case "hangs on one call":
		return 200 * time.Millisecond
	case "lets reads wait for writes":
		return 2 * time.Second
	}
	return usualPatience
}

// bodies gives a batch whose bodies were changed.
func bodies(b ports.Batch, change func(r *ports.Row) []byte) ports.Batch {
	b.Rows = slices.Clone(b.Rows)
	for i := range b.Rows {
		if !b.Rows[i].Gone {
			b.Rows[i].Body = change(&b.Rows[i])
		}
	}
	return b
}

// resorted gives a page whose rows stand in another order.
func resorted(p ports.Page, compare func(a, b ports.Row) int) ports.Page {
	slices.SortStableFunc(p.Rows, compare)
	return p
}

// byTime compares where rows stand by time alone.
func byTime(a, b ports.Row) int { return cmp.Compare(sortOf(a), sortOf(b)) }
