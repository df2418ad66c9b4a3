package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/ports"
)

// Why no connection was made, in words that say where to look. The driver tries every host of the dsn, each with TLS and without it
// where the dsn leaves that open, and joins what became of each attempt.

const opConnect = "postgres: connect"

// connectFault is fault for an attempt to connect.
func connectFault(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*ports.Error](err); ok {
		return known
	}
	e, refused := errors.AsType[*pgconn.ConnectError](err)
	if !refused {
		return fault(opConnect, err)
	}
	told := &ports.Error{Code: ports.Unavailable, Op: opConnect}
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		if why := serverFault(opConnect, said); why.Code != ports.Internal { // no statement of ours was sent
			told.Code, told.Field = why.Code, why.Field
		}
	}
	told.Message = strings.Join(refusals(e), "; ")
	if e.Config != nil {
		told.Message = fmt.Sprintf("database %q of %s: %s", e.Config.Database, strings.Join(addresses(e.Config), ", "), told.Message)
	}
	return told
}

// addresses are those that the dsn names, each once.
func addresses(c *pgconn.Config) []string {
	_, first := pgconn.NetworkAddress(c.Host, c.Port)
	all := []string{first}
	for _, f := range c.Fallbacks {
		if _, next := pgconn.NetworkAddress(f.Host, f.Port); !slices.Contains(all, next) {
			all = append(all, next)
		}
	}
	return all
}

// refusals are the reasons of the attempts, each once. That a server speaks no TLS is one only where nothing else is: without it
// another attempt came further.
func refusals(e *pgconn.ConnectError) (reasons []string) {
	noTLS := false
	for _, attempt := range triesOf(e) {
		text := refusal(attempt)
		if e.Config != nil && e.Config.Password != "" && strings.Contains(text, e.Config.Password) {
			text = "it cannot be used"
		}
		if text == speaksNoTLS {
			noTLS = true
		} else if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if noTLS && len(reasons) == 0 {
		return []string{speaksNoTLS}
	}
	return reasons
}

// triesOf takes joined errors apart.
func triesOf(err error) (all []error) {
	for each := err; each != nil; each = errors.Unwrap(each) {
		joined, ok := each.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		for _, one := range joined.Unwrap() {
			all = append(all, triesOf(one)...)
		}
		return all
	}
	return []error{err}
}

const speaksNoTLS = "the server speaks no TLS; see sslmode in the dsn"

// refusal is the reason of one attempt.
func refusal(err error) string {
	var untrusted *tls.CertificateVerificationError
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	switch said, ok := errors.AsType[*pgconn.PgError](err); {
	case ok:
		why := serverFault(opConnect, said)
		if why.Code == ports.Internal {
			return fmt.Sprintf("the server lets nobody in (SQLSTATE %s): %s; its log says more, and whether its disk is full", said.Code, said.Message)
		}
		return why.Message
	case errors.Is(err, pgconn.ErrReadOnlyConnection), errors.Is(err, pgconn.ErrStandbyConnection):
		return takesNoWrites
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return speaksNoTLS
	case errors.As(err, &untrusted):
		return "the server's certificate is not trusted: " + innermost(untrusted) + "; see sslmode and sslrootcert in the dsn"
	case errors.As(err, &tooLong), strings.Contains(err.Error(), "invalid message length"), strings.Contains(err.Error(), "unknown message type"):
		return "what answers there is no PostgreSQL; check the address and the port, and what lies between"
	case timedOut(err):
		return "no server answers in time; check the address, and what lies between"
	}
	var dialed *net.OpError
	var name *net.DNSError
	if errors.As(err, &name) || errors.As(err, &dialed) && dialed.Op == "dial" {
		return "no server answers: " + reasonOf(err)
	}
	return reasonOf(err)
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || errors.As(err, &network) && network.Timeout()
}

// reasonOf is the system's own reason of a lost or refused connection, without what the driver says around it.
func reasonOf(err error) string {
	var number syscall.Errno
	var name *net.DNSError
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &name):
		return "no such host " + name.Name
	case timedOut(err):
		return "it did not answer in time"
	case errors.Is(err, context.Canceled):
		return "given up"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it was closed"
	}
	return innermost(err)
}

// innermost is the text of the error that the others are wrapped around; what they add may be the whole dsn.
func innermost(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}
