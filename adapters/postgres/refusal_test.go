package postgres

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"holdfast/internal/pgtest"
	"holdfast/internal/tcpfault"
	"holdfast/ports"
)

func TestWhyThereIsNoConnectionIsTold(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	place, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := place.User.Password()
	with := func(dsn, query string) string { return strings.Replace(dsn, "sslmode=disable", query, 1) }
	silent := tcpfault.Open(t, server.Addr())
	silent.Swallow()
	closed := tcpfault.Open(t, server.Addr())
	closed.Refuse()
	stranger := strangerWithTLS(t)
	web := answering(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	// A server with a full disk has no code for it when it cannot let anybody in.
	const refusal = "SFATAL\x00CXX000\x00Mcould not write init file\x00\x00"
	full := answering(t, func(conn net.Conn) {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(refusal))), refusal...))
	})
	const readOnly = "&default_transaction_read_only=on&target_session_attrs="
	for name, c := range map[string]struct {
		dsn  string
		says []string
		not  string
	}{
		"TLS is asked for and there is none": {with(dsn, "sslmode=verify-full"), []string{server.Addr(), "speaks no TLS; see sslmode"}, "no server answers"},
		"the certificate is of a stranger":   {with(pgtest.Through(t, dsn, stranger), "sslmode=verify-full"), []string{stranger, "is not trusted", "sslrootcert"}, "no server answers"},
		"a web server answers":               {with(pgtest.Through(t, dsn, web), "sslmode=prefer"), []string{web, "is no PostgreSQL"}, "TLS"},
		"the server is read-only":            {dsn + readOnly + "read-write", []string{"takes no writes", "name the primary"}, "no server answers"},
		"a standby was not meant":            {dsn + "&target_session_attrs=standby", []string{"not in hot standby mode"}, "no server answers"},
		"nobody answers":                     {pgtest.Through(t, dsn, silent.Addr()) + "&connect_timeout=1", []string{silent.Addr(), "no server answers in time", "check the address"}, ""},
		"nobody answers, with or without TLS": {
			with(pgtest.Through(t, dsn, silent.Addr()), "sslmode=prefer&connect_timeout=1"), []string{"no server answers in time"}, "TLS",
		},
		"the server lets nobody in":              {pgtest.Through(t, dsn, full), []string{full, "could not write init file", "whether its disk is full"}, "refused a statement"},
		"nobody is there":                        {pgtest.Through(t, dsn, closed.Addr()), []string{closed.Addr(), "no server answers: connection refused"}, ""},
		"the password is wrong, and TLS is free": {with(strings.Replace(dsn, secret, "another", 1), "sslmode=prefer"), []string{"wrong password or user"}, "TLS"},
		"two hosts, each with a reason": {
			pgtest.Through(t, dsn, closed.Addr(), server.Addr()) + readOnly + "read-write", []string{closed.Addr() + ", " + server.Addr(), "connection refused; the server takes no writes"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := openStore(t, c.dsn).Stand(t.Context(), host)
			if err == nil || ports.CodeOf(err).Permanent() || ports.CodeOf(err) == ports.Internal {
				t.Fatalf("%v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if c.not != "" && strings.Contains(err.Error(), c.not) || strings.Contains(err.Error(), secret) {
				t.Errorf("what is not so, or secret, stands in: %v", err)
			}
		})
	}
}

func TestARoleThatMayNotMakeTheTablesIsToldWhatItLacks(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	admin := session(t, pgtest.Shared(t).Superuser(t, dsn))
	run(t, admin, `ALTER SCHEMA public OWNER TO postgres`)
	run(t, admin, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	run(t, admin, `CREATE SCHEMA hidden`)
	if _, err := openStore(t, dsn, `"schema":"hidden",`).Stand(t.Context(), host); err == nil || !strings.Contains(err.Error(), "GRANT USAGE on it") {
		t.Errorf("a schema that it may not use: %v", err)
	}
	_, err := openStore(t, dsn).Stand(t.Context(), host)
	if ports.CodeOf(err) != ports.Unauthorized || !strings.Contains(err.Error(), "needs CREATE on the schema") {
		t.Errorf("%v", err)
	}
}

// strangerWithTLS is a server whose certificate nobody knows; it agrees to TLS in the manner of PostgreSQL.
func strangerWithTLS(t *testing.T) string {
	t.Helper()
	known := httptest.NewTLSServer(nil)
	t.Cleanup(known.Close)
	return answering(t, func(conn net.Conn) {
		if _, err := io.WriteString(conn, "S"); err == nil {
			_ = tls.Server(conn, known.TLS).Handshake()
		}
	})
}

// answering listens and answers each connection's first bytes.
func answering(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
				answer(conn)
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}
