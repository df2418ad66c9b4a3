package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"holdfast/ports"
)

const (
	// windowBytes is what may be under way before the other side has read it. gRPC's 64 KiB would stop a batch sixty times.
	windowBytes = 8 << 20
	// bufferBytes is what a connection collects before it writes to the socket.
	bufferBytes = 128 << 10
)

// DialOptions are those of a connection that a Client uses.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(ports.MaxMessageBytes), grpc.MaxCallSendMsgSize(ports.MaxMessageBytes)),
		grpc.WithInitialWindowSize(windowBytes), grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithWriteBufferSize(bufferBytes), grpc.WithReadBufferSize(bufferBytes),
		grpc.WithChainUnaryInterceptor(unaryCall), grpc.WithChainStreamInterceptor(streamCall),
	}
}

// ServerOptions are those of a server that Register is used with. A panic in a handler becomes Internal, its stack goes to
// the log, and the process lives on.
func ServerOptions(log hclog.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(ports.MaxMessageBytes), grpc.MaxSendMsgSize(ports.MaxMessageBytes),
		grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(windowBytes),
		grpc.WriteBufferSize(bufferBytes), grpc.ReadBufferSize(bufferBytes),
		grpc.ChainUnaryInterceptor(unaryHandle(log)), grpc.ChainStreamInterceptor(streamHandle(log)),
	}
}

// ours says whether a method is of one of our services, of any version; go-plugin's own share the connection and keep their
// statuses.
func ours(method string) bool { return strings.HasPrefix(method, "/holdfast.") }

func unaryCall(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	if ours(method) {
		return fromStatus(err)
	}
	return err
}

func streamCall(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if !ours(method) {
		return stream, err
	}
	if err != nil {
		return nil, fromStatus(err)
	}
	return calledStream{stream}, nil
}

// calledStream gives a stream's errors as ours; io.EOF stays what it is.
type calledStream struct{ grpc.ClientStream }

func (s calledStream) SendMsg(m any) error { return exceptEOF(s.ClientStream.SendMsg(m)) }
func (s calledStream) RecvMsg(m any) error { return exceptEOF(s.ClientStream.RecvMsg(m)) }

func exceptEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return fromStatus(err)
}

func unaryHandle(log hclog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any, err error) {
		if !ours(info.FullMethod) {
			return handle(ctx, req)
		}
		err = guard(log, info.FullMethod, func() (err error) {
			reply, err = handle(ctx, req)
			return err
		})
		if err != nil {
			return nil, toStatus(err)
		}
		return reply, nil
	}
}

func streamHandle(log hclog.Logger) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if !ours(info.FullMethod) {
			return handle(server, stream)
		}
		return toStatus(guard(log, info.FullMethod, func() error { return handle(server, stream) }))
	}
}

// guard runs part of a handler and turns its panic into an error.
func guard(log hclog.Logger, what string, run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a handler", "call", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = ports.Errorf(ports.Internal, "", "the plugin panicked: %v", p)
		}
	}()
	return run()
}
