package sdk

import (
	"context"
	"os"
	"sync"

	"google.golang.org/grpc"
)

// go-plugin puts pipes in the place of os.Stdout and os.Stderr, whose other ends are read over a stream of their own. What
// is in a pipe when the plugin dies is lost, and that is what says why. So once go-plugin has done so, before the first call
// is handled, both become the stderr that the host reads directly.

var direct = sync.OnceFunc(func() { os.Stdout, os.Stderr = stderr, stderr })

func directPrints() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			direct()
			return handle(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			direct()
			return handle(server, stream)
		}),
	}
}
