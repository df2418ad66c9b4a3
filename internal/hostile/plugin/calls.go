package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/hostile"
	pb "holdfast/plugins/proto/backendv1"
)

// faulty is the service with a fault in its calls.
type faulty struct {
	pb.BackendServer
	self hostile.Program
}

const (
	lateShort = 3 * time.Second
	lateLong  = 20 * time.Second
)

// is notes the fault when it is this one and on.
func (f *faulty) is(fault hostile.Fault) bool {
	if !f.self.Is(fault) {
		return false
	}
	f.self.Note()
	return true
}

// hush does not answer while the plugin is mute, or in this way.
func (f *faulty) hush(ctx context.Context, way ...hostile.Fault) error {
	if !slices.ContainsFunc(append(way, hostile.Mute), f.is) {
		return nil
	}
	for f.self.On() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done(): // the host gave up before
			return ctx.Err()
		}
	}
	return nil
}

// beforeWrite is what goes wrong before a write takes effect, afterWrite before it is answered.
func (f *faulty) beforeWrite(keys []string) {
	for _, key := range keys {
		if strings.Contains(key, hostile.Poison) && f.is(hostile.DieOnRecord) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

func (f *faulty) afterWrite() {
	switch {
	case f.is(hostile.DieOnWrite):
		fmt.Fprintln(stderr, "a write broke the tape") // os.Stderr is a pipe of go-plugin by now, whose end is lost
		os.Exit(3)
	case f.is(hostile.LateShort):
		<-time.After(lateShort)
	case f.is(hostile.LateLong):
		<-time.After(lateLong)
	}
}

func (f *faulty) Describe(ctx context.Context, m *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d, err := f.BackendServer.Describe(ctx, m)
	if err != nil {
		return d, err
	}
	switch {
	case f.is(hostile.AnotherKind):
		d.Kind = "postgres"
	case f.is(hostile.OtherOptions):
		d.Options = []*pb.Option{{Name: "dsn", Type: pb.OptionType_OPTION_TYPE_STRING, Required: true, Help: "where it is"}}
	case f.is(hostile.NoPowers):
		d.Powers = []string{"Nothing"}
	case f.is(hostile.NoFamilies):
		d.Families = nil
	}
	return d, nil
}

func (f *faulty) Probe(ctx context.Context, m *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	if err := f.hush(ctx); err != nil {
		return nil, err
	}
	return f.BackendServer.Probe(ctx, m)
}

func (f *faulty) Position(ctx context.Context, m *pb.PositionRequest) (*pb.PositionResponse, error) {
	if err := f.hush(ctx, hostile.MutePosition); err != nil {
		return nil, err
	}
	return f.BackendServer.Position(ctx, m)
}

func (f *faulty) Stand(ctx context.Context, m *pb.StandRequest) (*pb.StandResponse, error) {
	if err := f.hush(ctx, hostile.MuteOpen); err != nil {
		return nil, err
	}
	return f.BackendServer.Stand(ctx, m)
}

func (f *faulty) Put(ctx context.Context, m *pb.PutRequest) (*pb.PutResponse, error) {
	if err := f.hush(ctx); err != nil {
		return nil, err
	}
	var keys []string
	for _, row := range m.Rows {
		keys = append(keys, row.Key)
	}
	f.beforeWrite(keys)
	answer, err := f.BackendServer.Put(ctx, m)
	f.afterWrite()
	if err != nil || len(m.Rows) == 0 {
		return answer, err
	}
	switch {
	case f.is(hostile.AnswerTwice):
		answer.Done *= 2
	case f.is(hostile.WrongDone):
		answer.Done += 1000
	case f.is(hostile.WrongBatch):
		answer.Done = -1
	case f.is(hostile.WrongDecisions):
		answer.Done = 0
	}
	return answer, nil
}

func (f *faulty) Drain(ctx context.Context, m *pb.DrainRequest) (*pb.DrainResponse, error) {
	if f.is(hostile.Deaf) {
		select {}
	}
	return f.BackendServer.Drain(ctx, m)
}
