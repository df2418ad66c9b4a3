package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// maxFaultText is how much of an error's text crosses: it travels in a header, and a database likes to quote what it refuses.
const maxFaultText = 4 << 10

// statusCodes says which gRPC code carries which of ours. The detail beside it decides; this is for people and other tools.
var statusCodes = map[ports.Code]grpccodes.Code{
	ports.Invalid:       grpccodes.InvalidArgument,
	ports.TooLarge:      grpccodes.OutOfRange,
	ports.NotFound:      grpccodes.NotFound,
	ports.Conflict:      grpccodes.FailedPrecondition,
	ports.Unauthorized:  grpccodes.Unauthenticated,
	ports.Unavailable:   grpccodes.Unavailable,
	ports.BackendGone:   grpccodes.Unavailable,
	ports.Unimplemented: grpccodes.Unimplemented,
	ports.Canceled:      grpccodes.Canceled,
	ports.Deadline:      grpccodes.DeadlineExceeded,
	ports.Full:          grpccodes.ResourceExhausted,
	ports.Internal:      grpccodes.Internal,
}

// bareCodes says what a status without a detail means: it comes from gRPC itself, or from a plugin that does not care.
var bareCodes = map[grpccodes.Code]ports.Code{
	grpccodes.InvalidArgument:    ports.Invalid,
	grpccodes.OutOfRange:         ports.TooLarge,
	grpccodes.ResourceExhausted:  ports.TooLarge, // the transport's word for a message over the limit
	grpccodes.NotFound:           ports.NotFound,
	grpccodes.FailedPrecondition: ports.Conflict,
	grpccodes.AlreadyExists:      ports.Conflict,
	grpccodes.Unauthenticated:    ports.Unauthorized,
	grpccodes.PermissionDenied:   ports.Unauthorized,
	grpccodes.Unavailable:        ports.BackendGone, // the transport's word for a connection that broke
	grpccodes.Unimplemented:      ports.Unimplemented,
	grpccodes.Canceled:           ports.Canceled,
	grpccodes.DeadlineExceeded:   ports.Deadline,
}

// toStatus makes an error ready to be returned by a handler.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	e := ports.AsError(err)
	detail := detailOf(e)
	bare := status.New(statusCodeOf(e.Code), detail.Message)
	full, detailErr := bare.WithDetails(detail)
	if detailErr != nil {
		return bare.Err()
	}
	return full.Err()
}

func statusCodeOf(c ports.Code) grpccodes.Code {
	if code, known := statusCodes[c]; known {
		return code
	}
	return grpccodes.Internal
}

// fromStatus gives the error that a call of the service failed with. A status that is no status (an error of the caller's
// own context, say) keeps its meaning too.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*ports.Error](err); known {
		return err
	}
	s, isStatus := status.FromError(err)
	if !isStatus {
		return ports.AsError(err)
	}
	for _, d := range s.Details() {
		if detail, ok := d.(*pb.ErrorDetail); ok {
			e := errorOf(detail)
			e.Cause = causeOf(e.Code, err)
			return e
		}
	}
	code, listed := bareCodes[s.Code()]
	if !listed {
		code = ports.Internal
	}
	e := &ports.Error{Code: code, Message: s.Message()}
	e.Cause = causeOf(code, err)
	return e
}

// causeOf keeps context errors recognisable for errors.Is, as they are without a wire.
func causeOf(c ports.Code, err error) error {
	switch c {
	case ports.Deadline:
		return fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
	case ports.Canceled:
		return fmt.Errorf("%w (%w)", context.Canceled, err)
	}
	return err
}

// detailOf makes an error's message. Its text may quote anything, so it is made valid and short here.
func detailOf(e *ports.Error) *pb.ErrorDetail {
	code, known := codes.out[e.Code]
	if !known {
		code = pb.Code_CODE_INTERNAL
	}
	return &pb.ErrorDetail{
		Code: code, Op: clean(e.Op), Field: clean(e.Field), Message: clean(e.Message), Limit: e.Limit, Size: e.Size,
	}
}

func errorOf(m *pb.ErrorDetail) *ports.Error {
	if m == nil {
		return ports.Errorf(ports.Internal, "", "the plugin gave no reason")
	}
	code, known := codes.in[m.Code]
	if !known {
		code = ports.Internal
	}
	return &ports.Error{Code: code, Op: m.Op, Field: m.Field, Message: m.Message, Limit: m.Limit, Size: m.Size}
}

func clean(text string) string {
	if len(text) > maxFaultText {
		cut := maxFaultText
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
