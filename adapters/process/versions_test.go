package process

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// second stands for a second version of the service. Its methods are those of the first under another name, so that neither
// side can take one for the other.
var second = wire.Version{
	Call: func(conn grpc.ClientConnInterface) wire.Remote { return wire.NewClient(callsSecond{conn}) },
	Serve: func(r grpc.ServiceRegistrar, b ports.Backend, log hclog.Logger) {
		wire.Register(servesSecond{r}, b, log)
	},
}

func ofSecond(name string) string {
	return strings.Replace(name, "holdfast.backend.v1.", "holdfast.backend.v2.", 1)
}

type callsSecond struct{ grpc.ClientConnInterface }

func (c callsSecond) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, ofSecond(method), args, reply, opts...)
}

func (c callsSecond) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(ctx, desc, ofSecond(method), opts...)
}

type servesSecond struct{ grpc.ServiceRegistrar }

func (s servesSecond) RegisterService(desc *grpc.ServiceDesc, impl any) {
	renamed := *desc
	renamed.ServiceName = ofSecond(desc.ServiceName)
	s.ServiceRegistrar.RegisterService(&renamed, impl)
}

// The plugin of this test is one program in three builds: for version 1, for version 2, and for both.
func TestAHostAndAPluginSpeakTheHighestVersionThatBothKnow(t *testing.T) {
	t.Parallel()
	first := wire.Versions[1]
	hosts := map[string]map[int]wire.Version{"1": {1: first}, "2": {2: second}, "1 and 2": {1: first, 2: second}}
	for _, c := range []struct {
		plugin, host string
		speaks       int
		refusal      string
	}{
		{"", "1", 1, ""},
		{"", "1 and 2", 1, ""},
		{"speaks-1-and-2", "1", 1, ""},
		{"speaks-1-and-2", "1 and 2", 2, ""},
		{"speaks-1-and-2", "2", 2, ""},
		{"speaks-2", "1 and 2", 2, ""},
		{"speaks-2", "1", 0, "plugin: PATH speaks protocol 2, this holdfast speaks 1; install a newer holdfast, or an older version of the plugin"},
		{"", "2", 0, "plugin: PATH speaks protocol 1, this holdfast speaks 2; install a newer version of the plugin, or the older holdfast that it was made for"},
		{"speaks-9", "1 and 2", 0, "plugin: PATH speaks protocol 9, this holdfast speaks 1 and 2; install a newer holdfast, or an older version of the plugin"},
	} {
		t.Run(c.plugin+" at a host of "+c.host, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, hclog.NewNullLogger(), c.plugin)
			spec.speaks = hosts[c.host]
			p := prepare(t, spec)
			p.Start()
			err := p.Await(t.Context())
			if c.refusal != "" {
				want := "start tape: " + strings.ReplaceAll(c.refusal, "PATH", spec.Path)
				if err == nil || err.Error() != want || ports.CodeOf(err) != ports.Invalid {
					t.Errorf("it says (%s):\n%v\nand not:\n%s", ports.CodeOf(err), err, want)
				}
				eventually(t, 5*time.Second, "it is parked", func() bool { return p.Status().State == GivenUp })
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Status().Speaks; got != c.speaks {
				t.Errorf("they speak %d, want %d", got, c.speaks)
			}
			if err := put(t.Context(), p, "a"); err != nil {
				t.Error(err)
			}
			if _, err := p.Item(t.Context(), "b"); ports.CodeOf(err) != ports.NotFound || !strings.Contains(err.Error(), `there is no "b"`) {
				t.Errorf("an error of the backend: %v", err)
			}
			pending, err := p.Commit(t.Context(), ports.CommitBatch{Family: ports.Queue, Through: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pending.Wait(t.Context()); err != nil {
				t.Errorf("a stream: %v", err)
			}
		})
	}
}
