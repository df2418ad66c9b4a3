package main

import (
	"holdfast/internal/hostile"
	pb "holdfast/plugins/proto/backendv1"
)

// What goes wrong in the stream of batches of a local store.

func (f *faulty) Commit(stream pb.Backend_CommitServer) error {
	return f.BackendServer.Commit(&commits{stream, f})
}

type commits struct {
	pb.Backend_CommitServer
	f *faulty
}

func (c *commits) Recv() (*pb.CommitRequest, error) {
	m, err := c.Backend_CommitServer.Recv()
	if err != nil {
		return m, err
	}
	if err := c.f.hush(c.Context()); err != nil {
		return nil, err
	}
	var keys []string
	for _, e := range m.Entries {
		keys = append(keys, e.Key)
	}
	c.f.beforeWrite(keys)
	return m, nil
}

func (c *commits) Send(m *pb.CommitResponse) error {
	f := c.f
	f.afterWrite()
	switch {
	case f.is(hostile.AnswerTwice):
		if err := c.Backend_CommitServer.Send(m); err != nil {
			return err
		}
	case f.is(hostile.WrongBatch):
		m.Id += 1000
	case f.is(hostile.WrongDecisions), f.is(hostile.WrongDone):
		m.Decisions = append(m.Decisions, &pb.Decision{Seq: 1 << 40, Outcome: pb.Outcome_OUTCOME_MISSING})
	}
	return c.Backend_CommitServer.Send(m)
}
