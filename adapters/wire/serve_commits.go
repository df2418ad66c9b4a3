package wire

import (
	"context"
	"errors"
	"io"
	"sync"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// answersAhead is how many batches a store may hold before the next one is read.
const answersAhead = 16

// handed is a batch that the store has, or could not be given.
type handed struct {
	id      uint64
	entries []ports.Entry
	pending ports.Pending
	err     error
	entered bool // counts at the gate until it is answered
}

// Commit hands batches to the store in the order in which they come and answers in the same order as they become durable.
func (s *server) Commit(stream pb.Backend_CommitServer) error {
	store, has := s.backend.(ports.LocalStore)
	if !has {
		return ports.Errorf(ports.Unimplemented, "", "this backend is no LocalStore")
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	flight := make(chan handed, answersAhead)
	var answerErr error
	var answering sync.WaitGroup
	answering.Go(func() {
		defer cancel() // when an answer cannot be sent, nothing more need be read
		answerErr = s.answer(ctx, stream, flight)
	})
	readErr := s.hand(ctx, stream, store, flight)
	close(flight)
	answering.Wait()
	if errors.Is(readErr, io.EOF) {
		readErr = nil
	}
	return errors.Join(answerErr, readErr)
}

// hand reads batches until the stream ends.
func (s *server) hand(ctx context.Context, stream pb.Backend_CommitServer, store ports.LocalStore, flight chan<- handed) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		h := handed{id: m.Id}
		if h.err = s.begin(); h.err == nil {
			h.entered = true
			h.err = guard(s.log, "Commit", func() error {
				b, err := batchIn(m)
				if err == nil {
					h.entries = b.Entries
					h.pending, err = store.Commit(ctx, b)
				}
				return err
			})
		}
		flight <- h // answer takes everything until flight is closed
	}
}

// answer sends one answer for each batch. Once one cannot be sent, it still leaves the gate for those behind it.
func (s *server) answer(ctx context.Context, stream pb.Backend_CommitServer, flight <-chan handed) (failed error) {
	for h := range flight {
		if failed == nil {
			failed = stream.Send(s.answerOf(ctx, &h))
		}
		if h.entered {
			s.gate.leave()
		}
	}
	return failed
}

func (s *server) answerOf(ctx context.Context, h *handed) *pb.CommitResponse {
	answer := &pb.CommitResponse{Id: h.id}
	if h.err == nil {
		h.err = guard(s.log, "Commit", func() error {
			decisions, err := h.pending.Wait(ctx)
			if err == nil {
				answer.Decisions, err = decisionsOut(h.entries, decisions)
			}
			return err
		})
	}
	if h.err != nil {
		answer.Error = detailOf(ports.AsError(h.err))
	}
	return answer
}
