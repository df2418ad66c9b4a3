package wire

import (
	"context"

	"google.golang.org/grpc"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// Client is the host's half: a backend behind a connection. It has the methods of every power; which of them the plugin
// offers is what it declared (ports.As), and a call of another one fails with Unimplemented.
type Client struct {
	rpc     pb.BackendClient
	commits commits
}

var (
	_ ports.LocalStore = (*Client)(nil)
	_ ports.Configurer = (*Client)(nil)
	_ ports.Pruner     = (*Client)(nil)
	_ ports.Exporter   = (*Client)(nil)
	_ ports.Drainer    = (*Client)(nil)
	_ ports.Surveyor   = (*Client)(nil)
)

// NewClient makes a client over a connection that was dialled with DialOptions. The connection stays the caller's.
func NewClient(conn grpc.ClientConnInterface) *Client {
	rpc := pb.NewBackendClient(conn)
	return &Client{rpc: rpc, commits: newCommits(rpc)}
}

// Close ends the commit streams; batches without an answer fail with BackendGone.
func (c *Client) Close() error {
	c.commits.close()
	return nil
}

func (c *Client) Describe(ctx context.Context) (ports.Description, error) {
	m, err := c.rpc.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return ports.Description{}, err
	}
	return descriptionIn(m), nil
}

func (c *Client) Configure(ctx context.Context, given ports.Configuration) error {
	_, err := c.rpc.Configure(ctx, &pb.ConfigureRequest{
		Name: given.Name, DataDir: given.DataDir, Options: given.Options, MeshSocket: given.Mesh.Socket, MeshToken: given.Mesh.Token,
	})
	return err
}

func (c *Client) Probe(ctx context.Context, f ports.Family) error {
	_, err := c.rpc.Probe(ctx, &pb.ProbeRequest{Family: families.out[f]})
	return err
}

func (c *Client) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	m, err := c.rpc.Position(ctx, &pb.PositionRequest{Family: families.out[f]})
	if err != nil || m.Position == nil {
		return ports.Position{}, err
	}
	return *positionIn(m.Position), nil
}

func (c *Client) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	m, err := c.rpc.Put(ctx, &pb.PutRequest{Family: families.out[b.Family], Rows: rowsOut(b.Rows), Position: positionOut(b.Position), After: positionOut(b.After), CatchUp: b.CatchUp})
	if err != nil {
		return ports.Applied{}, err
	}
	if m.Done < 0 || m.Done > int64(len(b.Rows)) {
		return ports.Applied{}, ports.Errorf(ports.Internal, "put", "the plugin says that %d of %d rows are in", m.Done, len(b.Rows))
	}
	applied := ports.Applied{Done: int(m.Done)}
	switch {
	case m.Error != nil:
		return applied, errorOf(m.Error)
	case applied.Done < len(b.Rows):
		return applied, ports.Errorf(ports.Internal, "put", "the plugin stopped after %d of %d rows and gave no reason", m.Done, len(b.Rows))
	}
	return applied, nil
}

func (c *Client) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	m, err := c.rpc.Stand(ctx, &pb.StandRequest{HostId: hostID})
	if err != nil {
		return ports.Standing{}, err
	}
	return standingIn(m), nil
}

// Open begins anew: what an earlier Commit still owes holds up nothing.
func (c *Client) Open(ctx context.Context, o ports.Opening) error {
	c.commits.renew()
	_, err := c.rpc.Open(ctx, openingOut(o))
	return err
}

func (c *Client) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	return c.commits.submit(ctx, &b)
}

func (c *Client) Item(ctx context.Context, key string) (ports.Row, error) {
	if err := checkText(key); err != nil {
		return ports.Row{}, err
	}
	m, err := c.rpc.Item(ctx, &pb.ItemRequest{Key: key})
	if err != nil {
		return ports.Row{}, err
	}
	return rowIn(m.Row)
}

func (c *Client) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	req, err := itemsOut(q)
	if err != nil {
		return ports.Page{}, err
	}
	m, err := c.rpc.Items(ctx, req)
	return pageOf(m, err)
}

func (c *Client) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	req, err := eventsOut(q)
	if err != nil {
		return ports.Page{}, err
	}
	m, err := c.rpc.Events(ctx, req)
	return pageOf(m, err)
}

func (c *Client) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	req, err := attemptsOut(q)
	if err != nil {
		return ports.Page{}, err
	}
	m, err := c.rpc.Attempts(ctx, req)
	return pageOf(m, err)
}

func (c *Client) Manifest(ctx context.Context, key string) (ports.Row, error) {
	if err := checkText(key); err != nil {
		return ports.Row{}, err
	}
	m, err := c.rpc.Manifest(ctx, &pb.ManifestRequest{Key: key})
	if err != nil {
		return ports.Row{}, err
	}
	return rowIn(m.Row)
}

func (c *Client) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	req, err := manifestsOut(q)
	if err != nil {
		return ports.Page{}, err
	}
	m, err := c.rpc.Manifests(ctx, req)
	return pageOf(m, err)
}

func (c *Client) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	m, err := c.rpc.Export(ctx, exportOut(q))
	return pageOf(m, err)
}

// pageOf reads the page of any list's answer.
func pageOf[M interface{ GetPage() *pb.Page }](m M, err error) (ports.Page, error) {
	if err != nil {
		return ports.Page{}, err
	}
	return pageIn(m.GetPage())
}

func (c *Client) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	m, err := c.rpc.Prune(ctx, pruneOut(q))
	if err != nil {
		return ports.Pruned{}, err
	}
	return ports.Pruned{Items: m.Items, Events: m.Events, Attempts: m.Attempts, Manifests: m.Manifests, More: m.More}, nil
}

func (c *Client) Survey(ctx context.Context) (ports.Survey, error) {
	m, err := c.rpc.Survey(ctx, &pb.SurveyRequest{})
	if err != nil {
		return ports.Survey{}, err
	}
	return surveyIn(m), nil
}

func (c *Client) Drain(ctx context.Context) error {
	_, err := c.rpc.Drain(ctx, &pb.DrainRequest{})
	return err
}
