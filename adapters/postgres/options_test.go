package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/ports"
)

func TestARefusedOptionIsNamedAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	const good, secret = `"dsn":"postgres://u@localhost/d"`, "s3cr3t"
	for given, field := range map[string]string{
		`{}`:                                "dsn",
		`{"dsn":7}`:                         "dsn",
		`{"dsn":""}`:                        "dsn",
		`{"dsn":"postgres://u:s3cr3t@:x/"}`: "dsn",
		`{"dsn":"password=s3cr3t host"}`:    "dsn",
		`{"dsn":"postgres://u:s3cr3t@h/d?sslmode=odd"}`:     "dsn",
		`{"dsn":"postgres://u:s3cr3t%zz@h/d"}`:              "dsn",
		`{"dsn":"postgres://u:s3cr3t@h/d?sslrootcert=/no"}`: "dsn",
		`{` + good + `,"schema":"a\"b"}`:                    "schema",
		`{` + good + `,"schema":7}`:                         "schema",
		`{` + good + `,"pool":1}`:                           "pool",
		`{` + good + `,"pool":"4"}`:                         "pool",
		`{` + good + `,"pool":65}`:                          "pool",
		`{` + good + `,"pooler":"yes"}`:                     "pooler",
		`{` + good + `,"timeout":"0s"}`:                     "timeout",
		`{` + good + `,"timeout":5}`:                        "timeout",
		`{` + good + `,"timeout":"2m"}`:                     "timeout",
		`{` + good + `,"path":"x"}`:                         "path",
	} {
		err := New().Configure(t.Context(), ports.Configuration{Options: []byte(given)})
		if ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != field {
			t.Errorf("%s: %v, want field %s", given, err, field)
		}
		if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, secret) {
			t.Errorf("%s: its secret stands in %s", given, text)
		}
	}
	b := New()
	if err := b.Configure(t.Context(), ports.Configuration{Options: []byte(`{` + good + `,"schema":"My-schema","pool":8,"pooler":true,"timeout":"10s"}`)}); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// The one table of what the server and the network say.
func TestWhatTheServerSaysHasACode(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]ports.Code{
		"57P01": ports.Unavailable, "57P02": ports.Unavailable, "57P03": ports.Unavailable, "53300": ports.Unavailable, "25006": ports.Unavailable,
		"40001": ports.Unavailable, "40P01": ports.Unavailable, "55P03": ports.Unavailable, "08006": ports.Unavailable, "08001": ports.Unavailable,
		"08P01": ports.Unavailable, "53100": ports.Full, "53200": ports.Unavailable, "58030": ports.Unavailable, "0A000": ports.Unavailable,
		"26000": ports.Unavailable, "42P05": ports.Unavailable, "3D000": ports.Unavailable, "3F000": ports.Unavailable, "28P01": ports.Unauthorized,
		"28000": ports.Unauthorized, "42501": ports.Unauthorized, "57014": ports.Deadline, "54000": ports.TooLarge, "22001": ports.Invalid, "22021": ports.Invalid,
		"23505": ports.Invalid, "23502": ports.Invalid, "42601": ports.Internal, "XX000": ports.Internal, "XX001": ports.Unavailable,
	} {
		err := fault("op", &pgconn.PgError{Code: state, Message: "said", Detail: "Key (WorkItemHash)=(of a record) exists", TableName: "T"})
		if ports.CodeOf(err) != code || !strings.Contains(err.Error(), "SQLSTATE "+state) || strings.Contains(err.Error(), "of a record") {
			t.Errorf("%s is %s: %v", state, ports.CodeOf(err), err)
		}
		if person := state == "3D000" || state == "3F000"; person != (ports.AsError(err).Field == ports.FieldObstacle) {
			t.Errorf("%s stands in the field %q", state, ports.AsError(err).Field)
		}
		if class := state[:2]; (class == "22" || class == "23" || class == "54") == strings.Contains(err.Error(), "said") {
			t.Errorf("%s says %v", state, err)
		}
	}
	for _, cause := range []error{
		io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed, &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}, errors.New("conn closed"),
		&net.DNSError{Err: "no such host", Name: "db"},
	} {
		if err := fault("op", fmt.Errorf("write failed: %w", cause)); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("%v is %s: %v", cause, ports.CodeOf(err), err)
		}
		if !again(cause) {
			t.Errorf("%v is not tried again", cause)
		}
	}
	for state, want := range map[string]bool{"40001": true, "40P01": true, "23505": true, "0A000": true, "26000": true, "57P01": true, "22001": false, "53100": false, "25006": false, "57014": false} {
		if again(&pgconn.PgError{Code: state}) != want {
			t.Errorf("%s is tried again: %v", state, !want)
		}
	}
}
