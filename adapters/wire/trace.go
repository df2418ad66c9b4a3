package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/ports"
)

// A trace shows an author what crossed to his plugin and back, in the words of the protocol.

// keptExchanges is how many calls a trace keeps, the last ones, and keptText how much of each side of one.
const (
	keptExchanges = 50
	keptText      = 8 << 10
)

// Exchange is one call, or one message of a stream, and its answer.
type Exchange struct {
	Call    string // the method, such as "Put"
	Request string // the message as JSON, its bytes that are JSON shown as JSON; "" for an answer in a stream
	Answer  string // "" after an error, and for what was sent into a stream
	Err     string // the code and the text
}

// Trace keeps the last calls of the connections that were dialled with its options. A nil Trace keeps nothing.
type Trace struct {
	mu   sync.Mutex
	list []Exchange
}

// DialOptions stand before those of the package, so that errors are told as callers get them.
func (t *Trace) DialOptions() []grpc.DialOption {
	if t == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(t.unary), grpc.WithChainStreamInterceptor(t.stream)}
}

// Exchanges gives what was kept, in the order of the answers.
func (t *Trace) Exchanges() []Exchange {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// note keeps an exchange. Messages are written down at once: their owners go on to use them.
func (t *Trace) note(method string, request, answer any, err error) {
	e := Exchange{Call: path.Base(method), Request: message(request), Answer: message(answer)}
	if err != nil {
		e.Err, e.Answer = string(ports.CodeOf(err))+": "+err.Error(), ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) == keptExchanges {
		t.list = slices.Delete(t.list, 0, 1)
	}
	t.list = append(t.list, e)
}

func (t *Trace) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if !ours(method) {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	t.note(method, req, reply, err)
	return err
}

func (t *Trace) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	switch {
	case !ours(method):
		return stream, err
	case err != nil:
		t.note(method, nil, nil, err)
		return nil, err
	}
	return tracedStream{stream, t, method}, nil
}

// tracedStream notes what goes into a stream and what comes out of it, each by itself.
type tracedStream struct {
	grpc.ClientStream
	trace  *Trace
	method string
}

func (s tracedStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	s.trace.note(s.method, m, nil, err)
	return err
}

func (s tracedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if !errors.Is(err, io.EOF) {
		s.trace.note(s.method, nil, m, err)
	}
	return err
}

// message writes a message as JSON that people read, cut.
func message(m any) string {
	p, is := m.(proto.Message)
	if !is {
		return ""
	}
	var b bytes.Buffer
	if size := proto.Size(p); size > keptExchanges*keptText { // nobody reads that; only what it is
		return fmt.Sprintf("(a %s of %d bytes)", p.ProtoReflect().Descriptor().Name(), size)
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(p)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	if err := json.Compact(&b, raw); err != nil { // protojson varies its blanks on purpose
		return fmt.Sprintf("(%v)", err)
	}
	text := readable(b.String(), texts(p.ProtoReflect(), nil))
	if len(text) <= keptText {
		return text
	}
	return strings.ToValidUTF8(text[:keptText], "") + fmt.Sprintf("... (%d more bytes)", len(text)-keptText)
}

// texts collects the fields of type bytes that hold JSON.
func texts(m protoreflect.Message, found [][]byte) [][]byte {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
		case field.Kind() == protoreflect.BytesKind && !field.IsList():
			if raw := value.Bytes(); json.Valid(raw) {
				found = append(found, raw)
			}
		case field.Message() != nil && field.IsList():
			for i := range value.List().Len() {
				found = texts(value.List().Get(i).Message(), found)
			}
		case field.Message() != nil:
			found = texts(value.Message(), found)
		}
		return true
	})
	return found
}

// readable puts JSON in the place of the base64 that stands for it.
func readable(text string, found [][]byte) string {
	pairs := make([]string, 0, 2*len(found))
	for _, raw := range found {
		pairs = append(pairs, `"`+base64.StdEncoding.EncodeToString(raw)+`"`, string(raw))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
