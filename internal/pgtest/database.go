package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The role that owns a test's databases, and no more than those, and its password.
const (
	role     = "holdfast"
	password = "correct-horse"
)

// Addr is where the server listens, on the loopback interface.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN is how a role reaches a database at an address: this server's Addr(), or that of something that stands before it.
func DSN(addr, user, secret, database string) string {
	u := url.URL{Scheme: "postgres", Host: addr, User: url.UserPassword(user, secret), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// superuser is how the kit itself reaches a database: through the socket, without a password.
func (s *Server) superuser(port int, database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", s.dir, port, database)
}

// Superuser is how a superuser reaches the database of a DSN, for what a test does behind a backend's back.
func (s *Server) Superuser(t testing.TB, dsn string) string {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return s.superuser(s.port, conf.Database)
}

// Database makes an empty database and gives its DSN, with a role that owns the database and is no superuser. On the shared server it
// is dropped at the end of the test.
func (s *Server) Database(t testing.TB) (dsn string) {
	t.Helper()
	s.mu.Lock()
	s.databases++
	name, place := "t"+strconv.Itoa(s.databases), s.place
	s.mu.Unlock()
	if err := s.Exec("CREATE DATABASE " + name + " OWNER " + role + place); err != nil {
		t.Fatal(err)
	}
	if s.shared {
		t.Cleanup(func() {
			if err := s.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
	}
	return DSN(s.Addr(), role, password, name)
}

// Exec runs statements as a superuser, each in a transaction of its own.
func (s *Server) Exec(statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.superuser(s.port, "postgres"))
	if err != nil {
		return err
	}
	for _, text := range statements {
		if _, err := conn.Exec(ctx, text); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", text, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// Through gives a DSN that reaches the same database at other addresses: those of what stands before the server (a Bouncer, a
// tcpfault.Link), or of several servers of which one is the right one.
func Through(t testing.TB, dsn string, addrs ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = strings.Join(addrs, ",")
	return u.String()
}
